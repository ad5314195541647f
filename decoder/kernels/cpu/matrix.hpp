// SPDX-License-Identifier: Apache-2.0
// Matrix products of the cpu backend by oneDNN. A product is cut into pieces of whole output rows which the team deals; each
// piece is one single-threaded oneDNN product. A processor for which oneDNN has no bf16 product gets the same results
// in f32: the weights are widened as they are read.
// Owned by the backend, used by its thread; run() neither allocates nor fails.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <memory>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cpu/team.hpp"

namespace plumb::decoder::cpu {

class Matrices {
  public:
    /// `widen`: never use bf16 arithmetic, also where the processor has it. The team must live longer.
    static Result<std::unique_ptr<Matrices>> make(Team& team, bool widen);

    /// bf16 weights are multiplied as they are (true) or widened (false).
    [[nodiscard]] bool native_bf16() const noexcept { return native_bf16_; }

    [[nodiscard]] Status prepare(Linear& linear, std::size_t rows);
    void run(const Block& in, std::span<const Product> group) noexcept;

  private:
    /// What one thread hands to oneDNN: handles it may point elsewhere, and its scratch memory.
    struct Call {
        dnnl::memory source, weights, bias, destination, scratchpad;
        std::vector<std::byte> scratch;
        std::vector<dnnl_exec_arg_t> arguments;
    };
    /// A piece of `outputs` rows of the matrix, for a block of so many tokens.
    struct Kernel {
        std::size_t outputs = 0;
        dnnl::primitive primitive;
        std::vector<Call> calls; // per thread
    };
    struct Plan {
        std::size_t rows = 0;
        std::size_t pieces = 0;
        Kernel piece; // every piece but the last
        Kernel last;
    };
    /// All plans of one shape; a row count beyond `kept` replaces the last.
    struct Shape {
        std::size_t outputs = 0, inputs = 0;
        Type type = Type::f32;
        bool bias = false;
        std::vector<std::unique_ptr<Plan>> plans;
    };
    static constexpr std::size_t kept = 3;

    explicit Matrices(Team& team) : team_(team) {}
    [[nodiscard]] bool widens(const Linear& linear) const noexcept {
        return linear.weight.type == Type::bf16 && !native_bf16_;
    }
    [[nodiscard]] std::size_t piece_outputs(std::size_t outputs, std::size_t row_bytes,
                                            std::size_t rows) const noexcept;
    [[nodiscard]] Kernel make_kernel(const Shape& shape, std::size_t outputs, std::size_t rows) const;
    [[nodiscard]] Result<std::unique_ptr<Plan>> make_plan(const Shape& shape, std::size_t rows) const;
    [[nodiscard]] std::size_t shape_of(const Linear& linear);
    [[nodiscard]] const Plan* plan_of(const Linear& linear, std::size_t rows) const noexcept;
    void run_piece(const Block& in, const Product& product, const Plan& plan, std::size_t piece, int thread) noexcept;
    void run_widened(const Block& in, const Product& product, std::size_t piece, int thread) noexcept;

    Team& team_;
    dnnl::engine engine_;
    dnnl::stream stream_;
    bool native_bf16_ = false;
    std::vector<Shape> shapes_;
    std::vector<std::vector<float>> widened_; // per thread, one piece of weights
};

} // namespace plumb::decoder::cpu

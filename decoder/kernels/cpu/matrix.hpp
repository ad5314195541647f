// SPDX-License-Identifier: Apache-2.0
// Matrix products of the cpu backend. Those with several tokens are oneDNN's: cut into pieces of whole output rows which the
// team deals, each piece one single-threaded product. One token (where oneDNN reads a third slower than memory gives,
// docs/internals/benchmarks.md), packed types, and bf16 that meets f32 inputs (on a processor for which oneDNN has no bf16 product,
// and in a model of mixed types) take the way of packed_products.hpp.
// Owned by the backend, used by its thread; run() neither allocates nor fails.
#pragma once

#include "decoder/kernels/cpu/onednn.hpp"
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cpu/packed_products.hpp"
#include "decoder/kernels/cpu/team.hpp"

namespace plumb::decoder::cpu {

class Matrices {
  public:
    /// `widen`: never use bf16 arithmetic, also where the processor has it. The team must live longer.
    static Result<std::unique_ptr<Matrices>> make(Team& team, bool widen);

    /// bf16 weights are multiplied as they are (true) or widened (false).
    [[nodiscard]] bool native_bf16() const noexcept { return native_bf16_; }

    [[nodiscard]] Status prepare(Linear& linear, std::size_t rows);
    void run(const Block& tokens, std::span<const Product> group) noexcept;

    /// Products with a stack always take the way of packed_products.hpp: how many tokens an expert gets is not known before.
    [[nodiscard]] Status prepare(const Stack& stack);
    /// Rows offsets[e] … offsets[e + 1] of `in` times matrix e, into the same rows of `out`.
    void run_stack(const Block& in, const Stack& stack, const std::int32_t* offsets, const Block& out) noexcept;

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
    static constexpr std::size_t kept = 4;

    explicit Matrices(Team& team) : team_(team), packed_(team) {}
    /// Whether oneDNN has products of the type at all.
    [[nodiscard]] bool offered(Type type) const noexcept {
        return type == Type::f32 || (type == Type::bf16 && native_bf16_);
    }
    [[nodiscard]] std::size_t piece_outputs(std::size_t outputs, std::size_t row_bytes) const noexcept;
    [[nodiscard]] Kernel make_kernel(const Shape& shape, std::size_t outputs, std::size_t rows) const;
    [[nodiscard]] Result<std::unique_ptr<Plan>> make_plan(const Shape& shape, std::size_t rows) const;
    [[nodiscard]] std::size_t shape_of(const Linear& linear);
    [[nodiscard]] const Plan* plan_of(const Linear& linear, std::size_t rows) const noexcept;
    void run_piece(const Block& in, const Product& product, const Plan& plan, std::size_t piece, int thread) noexcept;

    Team& team_;
    dnnl::engine engine_;
    dnnl::stream stream_;
    bool native_bf16_ = false;
    std::vector<Shape> shapes_;
    PackedProducts packed_;
    struct Free {
        void operator()(float* values) const noexcept { ::operator delete[](values, cache_line); }
    };
    static constexpr std::align_val_t cache_line{64};
    std::unique_ptr<float[], Free> token_; // one token of bf16 inputs, widened
    std::size_t token_values_ = 0;
    std::vector<std::size_t> ends_; // pieces of a stack up to each expert
};

} // namespace plumb::decoder::cpu

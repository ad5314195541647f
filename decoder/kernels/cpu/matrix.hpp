// SPDX-License-Identifier: Apache-2.0
// Matrix products of the cpu backend by oneDNN: one prepared plan per shape and number of rows. A processor for which
// oneDNN has no bf16 product gets the same results in f32, by widening the weights block by block.
// Owned by the backend, used by its thread; run() neither allocates nor fails.
#pragma once

#include <dnnl.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "decoder/kernels/backend.hpp"

namespace plumb::decoder::cpu {

class Matrices {
  public:
    /// `widen`: never use bf16 arithmetic, also where the processor has it.
    static Result<std::unique_ptr<Matrices>> make(bool widen);

    /// bf16 weights are multiplied as they are (true) or widened (false).
    [[nodiscard]] bool native_bf16() const noexcept { return native_bf16_; }
    /// oneDNN's name for what it runs, for the report.
    [[nodiscard]] std::string implementation() const;

    [[nodiscard]] Status prepare(Linear& linear, std::size_t rows);
    void run(const Linear& linear, const Block& in, const Block& out) noexcept;

  private:
    struct Plan {
        std::size_t rows = 0;
        dnnl::inner_product_forward primitive;
        dnnl::memory source, weights, bias, destination, scratchpad;
        std::vector<std::byte> scratch;
        std::vector<dnnl_exec_arg_t> arguments;
        std::string name;
    };
    /// All plans of one shape; a row count beyond `kept` replaces the last.
    struct Shape {
        std::size_t outputs = 0, inputs = 0;
        Type type = Type::f32;
        bool bias = false;
        std::vector<std::unique_ptr<Plan>> plans;
    };
    static constexpr std::size_t kept = 3;

    Matrices() = default;
    [[nodiscard]] Result<std::unique_ptr<Plan>> make_plan(const Shape& shape, std::size_t rows);
    [[nodiscard]] std::size_t shape_of(const Linear& linear);
    void run_widened(const Linear& linear, const Block& in, const Block& out) noexcept;

    dnnl::engine engine_;
    dnnl::stream stream_;
    bool native_bf16_ = false;
    std::vector<Shape> shapes_;
    std::vector<float> widened_; // one block of weights
};

} // namespace plumb::decoder::cpu

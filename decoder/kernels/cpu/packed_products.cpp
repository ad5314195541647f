// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/packed_products.hpp"

#include <algorithm>
#include <new>

#include "decoder/kernels/cpu/onednn.hpp"
#include "decoder/kernels/cpu/packed.hpp"
#include "decoder/kernels/cpu/vector_ops.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr std::size_t few_rows = 8;                           // up to here unpacking a piece costs more than it saves
constexpr std::size_t piece_bytes = std::size_t{128} << 10;   // some 3 to 10 us of reading
constexpr std::size_t smallest_bytes = std::size_t{24} << 10; // less is not worth waking the team
constexpr std::size_t unpacked_floats = std::size_t{1} << 17; // half a megabyte: stays in the second-level cache

} // namespace

Status PackedProducts::prepare(const Weight& weight) {
    try {
        for (std::vector<float>& piece : unpacked_) {
            piece.resize(std::max({piece.size(), unpacked_floats, weight.cols}));
        }
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is no memory for a matrix product; use a smaller model or fewer --threads"};
    }
    return {};
}

std::size_t PackedProducts::piece_outputs(const Weight& weight, std::size_t rows) const noexcept {
    if (rows > few_rows) {
        return std::max<std::size_t>(1, unpacked_floats / weight.cols);
    }
    const std::size_t bytes = weight.bytes();
    if (bytes < 2 * smallest_bytes) {
        return weight.rows;
    }
    // Every thread gets as many pieces as the others.
    const auto threads = static_cast<std::size_t>(team_.size());
    const std::size_t rounds = std::max<std::size_t>(1, bytes / (threads * piece_bytes));
    const std::size_t smallest = std::max<std::size_t>(1, smallest_bytes * weight.rows / bytes);
    const std::size_t outputs = std::max(smallest, (weight.rows + threads * rounds - 1) / (threads * rounds));
    return (outputs + rows_at_once - 1) / rows_at_once * rows_at_once;
}

std::size_t PackedProducts::pieces(const Weight& weight, std::size_t rows) const noexcept {
    const std::size_t outputs = piece_outputs(weight, rows);
    return (weight.rows + outputs - 1) / outputs;
}

void PackedProducts::run_piece(const Weight& weight, const float* bias, const Block& in, const Block& out,
                               std::size_t piece, int thread) noexcept {
    const std::size_t outputs = piece_outputs(weight, in.rows);
    const std::size_t first = piece * outputs;
    const std::size_t count = std::min(outputs, weight.rows - first);
    const std::size_t inputs = weight.cols;
    const auto* rows = static_cast<const std::byte*>(weight.data) + first * row_bytes(weight.type, inputs);
    const float* piece_bias = bias != nullptr ? bias + first : nullptr;
    float* result = out.f32() + first;
    if (in.rows <= few_rows) {
        multiply({weight.type, rows, count, inputs, piece_bias}, in.f32(), in.rows, result, weight.rows);
        return;
    }
    const auto* wide = reinterpret_cast<const float*>(rows);
    if (weight.type != Type::f32) {
        float* place = unpacked_[static_cast<std::size_t>(thread)].data();
        unpack(weight.type, rows, count * inputs, place);
        wide = place;
    }
    const auto dim = [](std::size_t n) {
        return static_cast<dnnl_dim_t>(n);
    };
    dnnl_sgemm('N', 'T', dim(in.rows), dim(count), dim(inputs), 1.0F, in.f32(), dim(inputs), wide, dim(inputs), 0.0F,
               result, dim(weight.rows));
    for (std::size_t r = 0; bias != nullptr && r < in.rows; ++r) {
        add(result + r * weight.rows, piece_bias, count);
    }
}

} // namespace plumb::decoder::cpu

// SPDX-License-Identifier: Apache-2.0
// Rows of a packed matrix: unpacked to floats, or multiplied as they are, compiled for every instruction set and chosen
// at run time. The inputs of a product stay floats: each packed value is widened in a register, multiplied and added, so
// that a product differs from one with unpacked weights by the order of its sums alone.
// Pure functions on the caller's memory; any thread. Every type; rows of whole blocks.
#pragma once

#include <cstddef>

#include "decoder/kernels/type.hpp"

namespace plumb::decoder::cpu {

/// `n` values that begin at `row`, which may have any alignment.
void unpack(Type type, const void* row, std::size_t n, float* out) noexcept;

/// As many rows multiply() reads by turns at most: multiples of it leave none over, which are read more slowly.
inline constexpr std::size_t rows_at_once = 4;

/// Some rows of a matrix and what they are multiplied with.
struct PackedRows {
    Type type = Type::f32;
    const void* first = nullptr;
    std::size_t count = 0;  // outputs
    std::size_t inputs = 0; // values of a row
    const float* bias = nullptr;
};

/// out[r * stride + i] = row i · in[r * inputs …] + bias[i], for each of `rows` inputs.
void multiply(const PackedRows& weights, const float* in, std::size_t rows, float* out, std::size_t stride) noexcept;

} // namespace plumb::decoder::cpu

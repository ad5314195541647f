// SPDX-License-Identifier: Apache-2.0
// Floats as a type of matrix stores them: the nearest values of plain scales, without a search for better ones. The same
// bytes on every machine: each step is one operation of IEEE 754. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decoder/kernels/type.hpp"

namespace plumb::decoder {

/// Writes row_bytes(type, count) bytes. REQUIRES whole blocks of finite values.
void quantise(Type type, const float* values, std::size_t count, std::byte* out);

/// To nearest, ties to even; beyond the largest half: infinity. What is no number stays none.
[[nodiscard]] std::uint16_t half_of(float value);

} // namespace plumb::decoder

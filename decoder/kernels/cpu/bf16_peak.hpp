// SPDX-License-Identifier: Apache-2.0
// How many operations all cores do at most in matrix products of bf16 with f32 sums, by the library that the cpu backend
// multiplies with. One thread asks; it takes about half a second of all cores.
#pragma once

#include "plumb/result.hpp"

namespace plumb::decoder::cpu {

/// 10^12 operations per second; a multiply-add counts 2. Error unsupported where the library has no bf16 product for this
/// processor.
[[nodiscard]] Result<double> bf16_teraflops();

} // namespace plumb::decoder::cpu

// SPDX-License-Identifier: Apache-2.0
// How many f32 operations all cores, or one, do at most: fused multiply-adds on the widest vectors this CPU has, in
// registers only. One thread uses it.
#pragma once

#include <cstddef>
#include <functional>

#include "backends/cpu/core_workers.hpp"

namespace plumb::backends::cpu {

/// Runs `rounds` rounds of independent multiply-adds; returns the operations done (a multiply-add counts 2) and puts the
/// sums to `sink`, so that they are done.
using MultiplyAdds = double (*)(std::size_t rounds, float* sink);
/// For the widest instruction set that this CPU and system have.
[[nodiscard]] MultiplyAdds widest_multiply_adds() noexcept;

/// Operations per nanosecond (GFLOP/s) of `threads` threads, one pass of about 20 ms.
[[nodiscard]] double measure_multiply_adds(Workers& workers, unsigned threads);

} // namespace plumb::backends::cpu

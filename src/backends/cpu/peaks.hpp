// SPDX-License-Identifier: Apache-2.0
// The peaks of the host: read bandwidth, f32 multiply-adds, cache sizes. About three seconds on all cores; one thread
// asks at a time.
#pragma once

#include "plumb/backend.hpp"

namespace plumb::backends::cpu {

[[nodiscard]] Peaks measure_host_peaks(const PeakProgress& progress);

} // namespace plumb::backends::cpu

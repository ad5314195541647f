// SPDX-License-Identifier: Apache-2.0
// The peaks of a device whose vendor fills a Driver table: read bandwidth of its memory, f32 multiply-adds, its last cache.
// A second of the whole device; one thread asks at a time.
#pragma once

#include "backends/cuda/driver.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

[[nodiscard]] Error no_such_device(const Driver& driver, std::uint32_t index);

/// Error unsupported where our kernels do not run, not_found for a device that does not exist; a measurement that fails is
/// an absent figure. `image`: peaks_ptx.
Result<Peaks> measure_device_peaks(const Driver& driver, std::uint32_t index, const char* image,
                                   const PeakProgress& progress);

} // namespace plumb::backends::cuda

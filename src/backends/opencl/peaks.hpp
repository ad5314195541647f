// SPDX-License-Identifier: Apache-2.0
// The peaks of an OpenCL device: read bandwidth of its memory, f32 multiply-adds, its cache. Some seconds of the whole
// device; one thread asks at a time.
#pragma once

#include "backends/opencl/driver.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::opencl {

/// Bytes of the device's memory to read from, 0 where too little is free for its cache. What it shares with the host is
/// free only as far as the host's memory is.
Result<std::size_t> bytes_to_read_of(const OpenClDriver& driver, DeviceId device);

/// Error where the device tells nothing of itself; a measurement that fails is an absent figure.
Result<Peaks> measure_device_peaks(const OpenClDriver& driver, DeviceId device, std::uint32_t index,
                                   const PeakProgress& progress);

} // namespace plumb::backends::opencl

// SPDX-License-Identifier: Apache-2.0
// The peaks of the host: read bandwidth, f32 multiply-adds, cache sizes. About three seconds on all cores; one thread
// asks at a time.
#pragma once

#include "plumb/backend.hpp"

namespace plumb::backends::cpu {

/// Bytes to read so that no cache holds a noticeable part: at least 1 GiB and 8 times the last-level cache, at most 8 GiB
/// and a quarter of what is free. 0: that is less than 4 times the cache, and no bandwidth of memory can be measured.
[[nodiscard]] std::size_t bytes_to_read(std::uint64_t last_level_bytes, std::uint64_t free_bytes) noexcept;

[[nodiscard]] Peaks measure_host_peaks(const PeakProgress& progress);

} // namespace plumb::backends::cpu

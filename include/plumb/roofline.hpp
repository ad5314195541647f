// SPDX-License-Identifier: Apache-2.0
// What a machine can do at most (measured by `plumb selftest --peaks`), and how near a brick came to it (docs/reference/roofline.md).
// Plain values, owned by whoever holds them; no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/figure.hpp"

namespace plumb {

/// The peaks of one place where bricks run: the host's cores, or one device. GB = 10^9 bytes.
struct Peaks {
    std::string place;                // "host", "cuda:0": backend and index
    std::string name;                 // of the CPU or device, as the system calls it
    std::string uuid;                 // of a device, as the vendor writes it; empty for the host
    std::int64_t measured_unix_s = 0; // when
    Figure read_gigabytes_per_second; // all cores read memory far larger than the caches
    Figure one_thread_gigabytes_per_second;
    Figure f32_teraflops; // fused multiply-adds on all cores; one counts 2
    Figure one_thread_f32_teraflops;
    Figure bf16_teraflops;         // matrix products of bf16 with f32 sums
    Figure l1_bytes, l2_bytes;     // of one core
    Figure last_level_cache_bytes; // of the place
};

/// What kept a brick from being faster, as far as measured values tell.
enum class Bottleneck : std::uint8_t { unknown, memory, compute, latency, cache };
[[nodiscard]] inline const char* bottleneck_word(Bottleneck bottleneck) {
    constexpr const char* names[] = {"unknown", "memory", "compute", "latency", "cache"};
    return names[static_cast<std::uint8_t>(bottleneck)];
}

/// A brick against the roofline of its place: min(peak flops, intensity x peak bandwidth). Shares are never clamped.
struct Roofline {
    Figure intensity;        // flops per byte
    Figure share;            // of the roofline; absent where intensity is unknown or 0
    Figure memory_share;     // of the peak bandwidth
    Figure compute_share;    // of the peak flops
    bool fits_cache = false; // its bytes fit the last-level cache: the bandwidth of memory is not its limit
    Bottleneck bottleneck = Bottleneck::unknown;
    std::string reason; // one sentence: why this one
};

} // namespace plumb

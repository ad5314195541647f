// SPDX-License-Identifier: Apache-2.0
// Every figure of Peaks by its name: for files, JSON, and what measures them. A constant.
#pragma once

#include "plumb/roofline.hpp"

namespace plumb {

/// Every figure of Peaks, by its name in files and JSON. Append-only.
struct PeakField {
    const char* name;
    Figure Peaks::*figure;
};
inline constexpr PeakField peak_fields[] = {
    {"read_gigabytes_per_second", &Peaks::read_gigabytes_per_second},
    {"one_thread_gigabytes_per_second", &Peaks::one_thread_gigabytes_per_second},
    {"f32_teraflops", &Peaks::f32_teraflops},
    {"one_thread_f32_teraflops", &Peaks::one_thread_f32_teraflops},
    {"bf16_teraflops", &Peaks::bf16_teraflops},
    {"l1_bytes", &Peaks::l1_bytes},
    {"l2_bytes", &Peaks::l2_bytes},
    {"last_level_cache_bytes", &Peaks::last_level_cache_bytes},
};

} // namespace plumb

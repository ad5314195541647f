// SPDX-License-Identifier: Apache-2.0
// The text of kernels.ptx, and one spin kernel per duration: their names tell the virtual GPU how long they take.
#pragma once

#include <cstdint>
#include <string>

namespace gpu_check {

inline constexpr unsigned spin_microseconds[] = {5, 20, 100, 1000, 5000, 50000};

/// "check_spin_20us"
std::string spin_name(unsigned microseconds);
/// One module, for cuModuleLoadData.
const std::string& kernels_ptx();

extern const char* const fixed_kernels_ptx; // kernels.ptx

/// What check_mix makes of a value: in another order, or without one of many, the end is another one.
constexpr std::uint32_t mixed(std::uint32_t value, std::uint32_t beside, std::uint32_t key) {
    value ^= beside + key;
    for (int i = 0; i < 64; ++i) {
        value = value * 1664525 + 1013904223 + key;
    }
    return value;
}

} // namespace gpu_check

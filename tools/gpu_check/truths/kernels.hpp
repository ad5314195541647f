// SPDX-License-Identifier: Apache-2.0
// The text of kernels.ptx, and one spin kernel per duration: their names tell the virtual GPU how long they take.
#pragma once

#include <string>

namespace gpu_check {

inline constexpr unsigned spin_microseconds[] = {5, 20, 100, 1000, 5000, 50000};

/// "check_spin_20us"
std::string spin_name(unsigned microseconds);
/// One module, for cuModuleLoadData.
const std::string& kernels_ptx();

extern const char* const fixed_kernels_ptx; // kernels.ptx

} // namespace gpu_check

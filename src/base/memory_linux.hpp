// SPDX-License-Identifier: Apache-2.0
// available_memory() of a system whose /proc and /sys lie in a folder: tests make one. Plain function; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::base {

/// What the kernel has left, or the memory controllers of this process's groups, whichever is less. `root` is "" here.
std::uint64_t available_memory_under(const std::string& root);

} // namespace plumb::base

// SPDX-License-Identifier: Apache-2.0
// What control groups leave this process, of a system whose /proc and /sys lie in a folder: tests make one. `root` is "" here.
// Plain functions; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::base {

/// What the kernel has left, or the memory controllers of this process's groups, whichever is less. 0: not known.
std::uint64_t available_memory_under(const std::string& root);

/// CPUs whose time the groups allow this process, rounded up, at least 1; the largest number where none is limited.
unsigned cpus_allowed_under(const std::string& root);

} // namespace plumb::base

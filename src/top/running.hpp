// SPDX-License-Identifier: Apache-2.0
// Which recordings are being written on this machine, by this user: each has a ring file that names its process and its path.
// Plain functions; no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::top {

struct Running {
    std::uint32_t pid = 0;
    std::string recording; // absolute
};

/// Of `folders`, or of those where rings lie; by pid. A ring of a process that ended, or of another user, is not among them.
[[nodiscard]] std::vector<Running> running_recordings(const std::vector<std::string>& folders = {});

} // namespace plumb::top

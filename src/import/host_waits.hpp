// SPDX-License-Identifier: Apache-2.0
// When the threads that launch for a device waited for it: in calls that synchronise, and in copies that block. Pure function; any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "import/trace.hpp"

namespace plumb::imported {

/// Whether a call of the runtime or driver returns when the device has ended something: cudaStreamSynchronize and its like.
[[nodiscard]] bool synchronises(std::string_view call);

struct HostWaits {
    struct Wait {
        std::uint32_t thread = 0; // Trace::threads
        std::int64_t begin_ns = 0, end_ns = 0;
    };
    std::vector<Wait> calls; // disjoint within a thread
    // By call that launches a copy and ends behind it: from when on it waited.
    std::map<std::uint32_t, std::int64_t> from;
};

[[nodiscard]] HostWaits find_waits(const Trace& trace, std::uint16_t process);

} // namespace plumb::imported

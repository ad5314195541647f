// SPDX-License-Identifier: Apache-2.0
// What a first look at a recording says about launches: which threads feed which queues, in which phases captured graphs
// ran, and how long a launch takes to reach an idle queue. Pure; owned by the caller.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "plumb/result.hpp"
#include "resolve/record_source.hpp"

namespace plumb::analysis {

struct LaunchFacts {
    std::set<std::pair<std::uint32_t, std::uint32_t>> feeds; // thread, queue: ids of tracks
    std::map<std::uint32_t, std::int64_t> latency_ns;        // by queue: median from the end of a launch to its command
    std::array<bool, 4> graphs{};                            // by Phase
};

/// Without queues there is nothing to look at.
[[nodiscard]] Result<LaunchFacts> launch_facts(resolve::RecordSource& source);

} // namespace plumb::analysis

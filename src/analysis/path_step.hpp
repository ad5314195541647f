// SPDX-License-Identifier: Apache-2.0
// Everything that one step of a recording holds, and which step that is. Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/path_presence.hpp"
#include "plumb/execgraph.hpp"
#include "resolve/record_source.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {

struct PathStep {
    /// Scopes of one step that are kept at most, 2 GiB of them; nodes and dependencies as well.
    static constexpr std::size_t most_samples = std::size_t{1} << 24;

    resolve::Step step;
    std::uint64_t candidates = 0; // steps its length is the median of; 0: it was asked for
    bool only_timed = false;      // of those, only steps whose device scopes were timed
    std::vector<resolve::Sample> samples;
    std::vector<resolve::Submission> submissions;
    std::vector<resolve::Launch> launches; // Sample::launch is an index into them
    std::vector<resolve::RecordedNode> nodes;
    std::vector<resolve::NodeDependency> dependencies;
    ThreadsAway away; // only where something may have run on a device
};

[[nodiscard]] Result<PathStep> collect_step(resolve::RecordSource& source, const PathOptions& options);

} // namespace plumb::analysis

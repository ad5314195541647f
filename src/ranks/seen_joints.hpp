// SPDX-License-Identifier: Apache-2.0
// What clocks say of joints: of each joint, when it last began and first ended on each clock that saw it. Begins bound ends of other
// clocks, which is all that is known of how clocks relate. Plain values; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace plumb::ranks {

/// What one clock says of one joint. A clock is a domain: all ranks that share it.
struct SeenJoint {
    std::uint32_t domain = 0;
    std::int64_t last_begin = std::numeric_limits<std::int64_t>::min(); // no later than it really was
    std::int64_t first_end = std::numeric_limits<std::int64_t>::max();  // no earlier than it really was
    bool begins = false, ends = false;                                  // of a message each domain has one of them
};

struct SeenJoints {
    std::vector<SeenJoint> seen;   // joint by joint, each domain once in a joint
    std::vector<std::size_t> ends; // in `seen`, of each joint

    /// Makes a joint of all that was added to `seen` since the last one.
    void close() { ends.push_back(seen.size()); }
};

/// Calls `take(begin, end)` with the places of each joint in `seen`.
template <typename Take>
void for_each_joint(const SeenJoints& joints, Take&& take) {
    std::size_t begin = 0;
    for (const std::size_t end : joints.ends) {
        take(begin, end);
        begin = end;
    }
}

} // namespace plumb::ranks

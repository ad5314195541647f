// SPDX-License-Identifier: Apache-2.0
// What a dead writer's ring adds to its recording. Plain functions; no thread rule.
#pragma once

#include <vector>

#include "recording/index.hpp"
#include "recording/ring_file.hpp"

namespace plumb::recording {

struct RingMerge {
    bool found = false;               // a ring file of this recording
    std::vector<RingRemainder> rings; // those that hold what the recording lacks, and only that
    std::uint64_t records = 0;        // in all of them
    std::vector<NameInfo> names;      // that the recording lacks
};

/// Finds, checks and reads the ring that `index` names, and adds to `index` the tracks and names known only there, newer drop counts,
/// and notes about what is lost. Writes nothing.
[[nodiscard]] RingMerge merge_ring(Index& index);
/// The same for a ring file already read.
[[nodiscard]] RingMerge merge_ring(Index& index, RingFile file);

} // namespace plumb::recording

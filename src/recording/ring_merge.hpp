// SPDX-License-Identifier: Apache-2.0
// What a dead writer's ring adds to its recording. Plain functions; no thread rule.
#pragma once

#include <vector>

#include "recording/index.hpp"
#include "recording/ring_file.hpp"

namespace plumb::recording {

/// Finds, checks and reads the ring that `index` names, leaves in it only what the recording lacks, and adds to `index`
/// the tracks known only there, newer drop counts, and notes. Writes nothing. Rings with nothing left stay, empty; no
/// ring at all: an empty list.
[[nodiscard]] std::vector<RingRemainder> merge_ring(Index& index);
/// The same for a ring file already read.
[[nodiscard]] std::vector<RingRemainder> merge_ring(Index& index, RingFile file);

} // namespace plumb::recording

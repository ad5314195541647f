// SPDX-License-Identifier: Apache-2.0
// What became of the ranges of a process, for whoever reads its recording. Thread rule: once, when the process ends.
#pragma once

#include "attach/nvtx/open_starts.hpp"
#include "attach/nvtx/texts.hpp"
#include "attach/nvtx/thread_ranges.hpp"

namespace plumb::attach::nvtx {

/// Into the recording how many there were, and a sentence for each way in which some were not recorded as they are.
void tell_outcome(const RangeCounts& ranges, const StartCounts& starts, const TextCounts& texts, bool on_device);

} // namespace plumb::attach::nvtx

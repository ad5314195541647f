// SPDX-License-Identifier: Apache-2.0
// The samples of a part of a run: of some steps, layers, tracks. What is read for it is the part of the file that holds those
// steps, where the recording tells. One thread per call.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "export/sample_feed.hpp"
#include "plumb/results.hpp"

namespace plumb::exporting {

/// What was given so far, and where else something lies.
struct InWindow {
    std::uint64_t found = 0; // of what was asked for: with layers, no steps
    std::uint32_t least_layer = std::numeric_limits<std::uint32_t>::max(); // of all that the other bounds let in
    std::uint32_t most_layer = 0;
};

struct WindowedFeed {
    SampleFeed feed;
    std::shared_ptr<InWindow> given; // null where nothing is left out
    /// What is left out and how much was read, one sentence each; in the feed's facts, too.
    std::vector<std::string> notes;
};

/// Without a window and with `most_slices` (0: any number), where all are more: whole steps evenly spaced, as many as that allows, and
/// nothing of no step.
/// Errors: invalid_argument for a track that is not there; not_found where no step is left to choose from; what reading gives.
[[nodiscard]] Result<WindowedFeed> window_of(const recording::RecordedRun& run, const ExportWindow& window,
                                             std::uint64_t most_slices);

} // namespace plumb::exporting

// SPDX-License-Identifier: Apache-2.0
// Which launch an arrow to a scope on a device leads from, for writers of traces: from a submission that is in the trace, once,
// and never into the past. Memory bounded. Owned by one exporter call; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>

#include "export/replay_flows.hpp"
#include "export/words.hpp"
#include "resolve/sample.hpp"

namespace plumb::exporting {

class LaunchArrows {
  public:
    /// Borrows the captured graphs.
    explicit LaunchArrows(const GraphTracks& graphs) : graphs_(graphs) {}

    /// It is not in the trace.
    void leave_out(const resolve::Submission& submission) {
        if (submission.number != 0 && not_started_.size() < most_waiting) {
            not_started_.insert(submission.number);
        }
    }
    /// REQUIRES: it has a number, and is in the trace.
    void begin_at(const resolve::Submission& submission) {
        if (submission.linked() && linked_replays_.size() < most_waiting) {
            linked_replays_.insert(submission.number);
        } else if (submission.graph) {
            replays_.launched(submission);
        }
    }
    /// The number of the submission that an arrow to this sample leads from.
    std::optional<std::uint64_t> end_at(const resolve::Sample& sample, std::span<const resolve::Launch> launches) {
        if (const auto graph = graphs_.find(sample.track); graph != graphs_.end()) {
            return replays_.of(sample, graph->second);
        }
        // An arrow into the past would say that the device knew before the host: the clocks' fit allows for it.
        if (sample.launch == resolve::no_launch || launches[sample.launch].begin_ns > sample.begin_ns) {
            return std::nullopt;
        }
        const resolve::Launch& launch = launches[sample.launch];
        if (not_started_.contains(launch.number)) {
            return std::nullopt;
        }
        if (launch.replay && linked_replays_.erase(launch.number) == 0) {
            return std::nullopt; // the arrow leads to the first one
        }
        inferred_ = inferred_ || launch.inferred;
        return launch.number;
    }
    /// Whether some arrow is not in the recording.
    [[nodiscard]] bool inferred() const { return inferred_; }

  private:
    static constexpr std::size_t most_waiting = std::size_t{1} << 17;

    const GraphTracks& graphs_;
    ReplayFlows replays_;
    bool inferred_ = false;
    std::unordered_set<std::uint64_t> not_started_;    // numbers of submissions that are left out
    std::unordered_set<std::uint64_t> linked_replays_; // of launches whose first scope is still to come
};

} // namespace plumb::exporting

// SPDX-License-Identifier: Apache-2.0
// What a first look at a run says about launches: which threads feed which queues, in which phases captured graphs ran, and how
// long a launch takes to reach an idle queue. Owned by one answer; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "recording/run_facts.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {

struct LaunchFacts {
    std::set<std::pair<std::uint32_t, std::uint32_t>> feeds; // thread, queue: ids of tracks
    std::map<std::uint32_t, std::int64_t> latency_ns;        // by queue: median from the end of a launch to its command
    // By Phase: replays of captured graphs ran, and when the device was idle inside of them is not known.
    std::array<bool, 4> graphs{};
    std::array<bool, 4> gapless{}; // all of these are linked, with durations that hold the gaps
};

class LaunchLook {
  public:
    /// Every batch of the tracks of threads and queues, without phases.
    void look(const resolve::ResolvedBatch& batch);
    /// After the last of them.
    [[nodiscard]] LaunchFacts finish(const resolve::StepTable& steps, const resolve::TrackTable& tracks);

  private:
    void ran(const resolve::ResolvedBatch& batch, const resolve::Sample& sample);

    std::set<std::pair<std::uint32_t, std::uint32_t>> feeds_;
    // By queue. Whether a recording tells of its links is known after the pass: one for told ones, one for inferred ones.
    std::array<std::map<std::uint32_t, std::vector<std::int64_t>>, 2> latencies_;
    struct Last {
        std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
        std::uint64_t replay = 0; // number of its launch
    };
    std::map<std::uint32_t, Last> last_; // by queue
    struct Replays {
        resolve::StepIds steps;
        bool outside_steps = false;
    };
    std::array<Replays, 2> hidden_; // the second: linked ones
};

} // namespace plumb::analysis

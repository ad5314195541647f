// SPDX-License-Identifier: Apache-2.0
// What exporters are given: the facts of a run, and its samples and checks as streams that are never held as a whole.
// Copies share what is behind them; one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/resolve.hpp"
#include "resolve/step_table.hpp"

namespace plumb::exporting {

/// False: no more are wanted, though more may still be given.
using SampleTaker = std::function<bool(const resolve::ResolvedBatch&)>;
/// `track`: its id.
using StepTaker = std::function<bool(const resolve::ResolvedStep&, std::uint32_t track)>;
using RequestTaker = std::function<void(const resolve::RequestEvent&)>;

struct SampleFeed {
    std::shared_ptr<const recording::RunFacts> facts;
    /// Every sample once; those of a track in the order of their ends, spans excepted.
    std::function<Status(const SampleTaker& take)> for_each_batch;
    recording::CheckStream for_each_check;
    /// Every complete step that samples are of, once, in the order of their ends; 80 bytes each in memory. Of a window, what depends on
    /// the steps before (period, warm-up, left out) says nothing. May be empty: steps are not known.
    std::function<Status(const StepTaker& take)> for_each_step = {};
    /// Of a window: every mark of a request of the whole recording, which is read for it; batches hold none. Without it they do.
    std::function<Status(const RequestTaker& take)> for_each_request = {};
    /// Takes a sentence for whoever asked for the output, about what is not in it. May be empty.
    std::function<void(std::string)> tell = {};
    bool whole_steps = true; // false: of a step, samples may be left out
};

/// In memory: 4 bytes for each step while samples are given, 80 while steps are.
[[nodiscard]] SampleFeed samples_of(const recording::RecordedRun& run);

/// A moment of the common clock that no sample begins before: traces count from it, so that their numbers stay small.
[[nodiscard]] std::int64_t origin_of(const recording::RunFacts& facts);

} // namespace plumb::exporting

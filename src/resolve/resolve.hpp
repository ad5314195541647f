// SPDX-License-Identifier: Apache-2.0
// Raw records -> samples on one clock. Two passes over the run: steps first, then every record once, streaming.
// Pure: the same run gives the same samples. The sink is called on the caller's thread and keeps nothing it is given. Where the
// run says so, records are resolved on a thread of their own, some thousands ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"
#include "recording/step_ranges.hpp"
#include "resolve/losses.hpp"
#include "resolve/node.hpp"
#include "resolve/sample.hpp"
#include "resolve/step_table.hpp"
#include "resolve/track_table.hpp"

namespace plumb::resolve {

/// CPU time that a thread had used at a moment. `position`: it stands before the sample of that index in its batch.
struct CpuStamp {
    std::int64_t time_ns = 0;
    std::int64_t cpu_ns = 0;
    std::size_t position = 0;
};

/// A number given by the caller for a label; no time, no place.
struct LabelValue {
    std::uint16_t name = 0;
    std::uint64_t ns = 0;
};

/// Some consecutive samples of one track, in the order of their ends (spans excepted). Valid during the call only.
struct ResolvedBatch {
    std::size_t track_index = 0;
    const Track* track = nullptr;
    std::span<const Sample> samples;
    std::span<const CpuStamp> cpu_stamps;
    std::span<const LabelValue> labels;
    std::span<const Submission> submissions;
    std::span<const Launch> launches; // Sample::launch is an index into them
    std::span<const CollectiveMark> collectives;
    std::span<const RecordedNode> nodes; // in the order they were told
    std::span<const NodeDependency> dependencies;
    std::span<const RequestEvent> requests; // in the order they were marked
    /// What comes after this batch, on any track, ends no earlier.
    std::int64_t no_earlier_than = 0;
};

struct ResolveOptions {
    std::uint64_t warmup_steps = 8;
    Cut cut;
};

/// What holds for the whole recording once its samples have been delivered.
struct Resolution {
    std::unique_ptr<TrackTable> tracks;
    std::unique_ptr<StepTable> steps;
    Losses losses;
    std::vector<std::string> complaints; // about clocks, one sentence each
    std::uint64_t records = 0;           // after the cut
};

/// Called between the passes, with what the samples will refer to; it lives as long as the resolution.
using PassSink = std::function<void(const StepTable&, const TrackTable&)>;
using BatchSink = std::function<void(const ResolvedBatch&)>;

/// Samples for who has to see some before the steps are known: in the first pass, of the tracks it wants. Their phase, warm-up
/// and what depends on the length of the KV cache are missing.
struct FirstLook {
    std::function<bool(const recording::TrackInfo&)> wanted; // empty: none
    BatchSink sink;
};

[[nodiscard]] Result<Resolution> resolve(const recording::RecordedRun& run, const ResolveOptions& options,
                                         const PassSink& on_steps, const BatchSink& on_batch,
                                         const FirstLook& look = {});
/// The same samples for who wants nothing else: no table of steps, and 4 bytes for each of them in memory (packed_steps.hpp).
/// `no_earlier_than` of a batch says nothing. With `only`, all samples of those steps, as if everything had been read, and some
/// others; no more is read than it takes, and numbers of launches count from what was.
[[nodiscard]] Status resolve_samples(const recording::RecordedRun& run, const ResolveOptions& options,
                                     const BatchSink& on_batch, const recording::StepRanges* only = nullptr);
/// The steps themselves, each with the id of its track, until `take` says false; or only those: then what of them depends on the
/// steps before (period, warm-up, left out) says nothing.
[[nodiscard]] Status for_each_step(const recording::RecordedRun& run,
                                   const std::function<bool(const ResolvedStep&, std::uint32_t)>& take,
                                   const recording::StepRanges* only = nullptr);

} // namespace plumb::resolve

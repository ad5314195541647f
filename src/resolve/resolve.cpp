// SPDX-License-Identifier: Apache-2.0
#include "resolve/resolve.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "resolve/launches.hpp"
#include "resolve/track_resolver.hpp"

namespace plumb::resolve {
namespace {

// Samples in flight: small enough to stay in the first two caches, however large a batch is.
constexpr std::size_t records_at_once = 512;

struct TrackState {
    TrackState(const Track& track, const StepFactsSource& steps, WorkPool& pool, Launches& launches, Losses& losses)
        : resolver(track, steps, pool, launches, losses) {}
    TrackResolver resolver;
    std::uint64_t next_sequence = 0;
    bool begun = false;
};

class SecondPass {
  public:
    SecondPass(Resolution& result, const StepFactsSource& steps, const std::vector<std::int64_t>& no_earlier_than,
               const BatchSink& sink)
        : tracks_(*result.tracks), steps_(steps), no_earlier_than_(no_earlier_than), result_(result), sink_(sink),
          launches_(result.tracks->tells_launches()) {}

    void batch(const recording::RecordBatch& batch) {
        const std::size_t number = batches_++;
        const std::int64_t later = number < no_earlier_than_.size() ? no_earlier_than_[number] // else: the source grew
                                                                    : std::numeric_limits<std::int64_t>::min();
        const std::size_t index = tracks_.index_of(batch.track);
        if (index == no_track) {
            result_.losses.count(Loss::track_unknown, batch.count);
            return;
        }
        TrackState& state = state_of(index);
        if (state.begun && batch.first_sequence != state.next_sequence) {
            state.resolver.records_are_missing();
        }
        state.begun = true;
        state.next_sequence = batch.first_sequence + batch.count;
        const std::uint64_t cut = tracks_[index].cut;
        result_.records +=
            batch.count - std::min<std::uint64_t>(batch.count, cut - std::min(cut, batch.first_sequence));
        deliver(batch, index, state.resolver, later);
    }

  private:
    void deliver(const recording::RecordBatch& batch, std::size_t index, TrackResolver& resolver, std::int64_t later) {
        ResolvedBatch out;
        out.track_index = index;
        out.track = &tracks_[index];
        for (std::size_t at = 0; at < batch.count; at += records_at_once) {
            const std::size_t count = std::min(records_at_once, batch.count - at);
            buffers_.clear();
            resolver.consume(batch.records + at, count, batch.first_sequence + at, buffers_);
            out.samples = buffers_.samples;
            out.cpu_stamps = buffers_.cpu_stamps;
            out.labels = buffers_.labels;
            out.submissions = buffers_.submissions;
            out.launches = buffers_.launches;
            out.nodes = buffers_.nodes;
            out.dependencies = buffers_.dependencies;
            // Only the last part says how far time is known: what is left of this batch is not behind us yet.
            const bool last = at + count == batch.count;
            out.no_earlier_than = last ? later : std::numeric_limits<std::int64_t>::min();
            sink_(out);
        }
    }

    TrackState& state_of(std::size_t index) {
        while (states_.size() <= index) {
            states_.push_back(nullptr);
        }
        if (!states_[index]) {
            states_[index] = std::make_unique<TrackState>(tracks_[index], steps_, pool_, launches_, result_.losses);
        }
        return *states_[index];
    }

    TrackTable& tracks_;
    const StepFactsSource& steps_;
    const std::vector<std::int64_t>& no_earlier_than_;
    Resolution& result_;
    const BatchSink& sink_;
    WorkPool pool_;
    Launches launches_;
    std::vector<std::unique_ptr<TrackState>> states_;
    ResolvedBuffers buffers_;
    std::size_t batches_ = 0;
};

} // namespace

Result<Resolution> resolve(RecordSource& source, const ResolveOptions& options, const PassSink& on_steps,
                           const BatchSink& on_batch) {
    Resolution result;
    result.tracks = std::make_unique<TrackTable>(source, options.cut);
    Result<FirstPass> first = scan_steps(source, *result.tracks, options.warmup_steps, result.losses);
    if (!first.ok()) {
        return first.error();
    }
    result.complaints = result.tracks->complaints();
    result.steps = std::make_unique<StepTable>(std::move(first->steps));
    on_steps(*result.steps, *result.tracks);

    SecondPass second(result, *result.steps, first->no_earlier_than, on_batch);
    const Status read = source.for_each_batch([&](const recording::RecordBatch& batch) {
        second.batch(batch);
        return true;
    });
    if (!read.ok()) {
        return read.error();
    }
    return result;
}

Status resolve_samples(RecordSource& source, const ResolveOptions& options, const BatchSink& on_batch) {
    Resolution result;
    result.tracks = std::make_unique<TrackTable>(source, options.cut);
    const Result<PackedSteps> steps = scan_step_facts(source, *result.tracks, options.warmup_steps, result.losses);
    if (!steps.ok()) {
        return steps.error();
    }
    const std::vector<std::int64_t> unknown;
    SecondPass second(result, *steps, unknown, on_batch);
    return source.for_each_batch([&](const recording::RecordBatch& batch) {
        second.batch(batch);
        return true;
    });
}

} // namespace plumb::resolve

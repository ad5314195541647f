// SPDX-License-Identifier: Apache-2.0
#include "resolve/resolve.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

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

class SamplePass {
  public:
    /// `tells_launches`: as of the tracks; absent: not known yet. `no_earlier_than` (may be null): as of FirstPass.
    SamplePass(TrackTable& tracks, const StepFactsSource& steps, std::optional<bool> tells_launches, Losses& losses,
               const std::vector<std::int64_t>* no_earlier_than, const BatchSink& sink)
        : tracks_(tracks), steps_(steps), losses_(losses), no_earlier_than_(no_earlier_than), sink_(sink),
          launches_(tells_launches) {}

    void batch(const recording::RecordBatch& batch) {
        const std::size_t number = batches_++;
        const bool known = no_earlier_than_ != nullptr && number < no_earlier_than_->size(); // else: the run grew
        const std::int64_t later = known ? (*no_earlier_than_)[number] : std::numeric_limits<std::int64_t>::min();
        const std::size_t index = tracks_.index_of(batch.track);
        if (index == no_track) {
            losses_.count(Loss::track_unknown, batch.count);
            return;
        }
        TrackState& state = state_of(index);
        if (state.begun && batch.first_sequence != state.next_sequence) {
            state.resolver.records_are_missing();
        }
        state.begun = true;
        state.next_sequence = batch.first_sequence + batch.count;
        const std::uint64_t cut = tracks_[index].cut;
        records_ += batch.count - std::min<std::uint64_t>(batch.count, cut - std::min(cut, batch.first_sequence));
        deliver(batch, index, state.resolver, later);
    }

    /// Those behind the cut.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

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
            states_[index] = std::make_unique<TrackState>(tracks_[index], steps_, pool_, launches_, losses_);
        }
        return *states_[index];
    }

    TrackTable& tracks_;
    const StepFactsSource& steps_;
    Losses& losses_;
    const std::vector<std::int64_t>* no_earlier_than_;
    const BatchSink& sink_;
    WorkPool pool_;
    Launches launches_;
    std::vector<std::unique_ptr<TrackState>> states_;
    ResolvedBuffers buffers_;
    std::size_t batches_ = 0;
    std::uint64_t records_ = 0;
};

class NoSteps final : public StepFactsSource {
  public:
    [[nodiscard]] bool facts_of(std::uint64_t, StepFacts&) const noexcept override { return false; }
};

/// What somebody wants to see of some tracks during the first pass. What is lost there is counted by the second.
class EarlySamples {
  public:
    EarlySamples(TrackTable& tracks, const FirstLook& look)
        : tracks_(tracks), look_(look), samples_(tracks, no_steps_, std::nullopt, losses_, nullptr, look.sink) {}

    [[nodiscard]] bool any() const {
        for (std::size_t i = 0; i < tracks_.size(); ++i) {
            if (look_.wanted && look_.wanted(tracks_[i].info)) {
                return true;
            }
        }
        return false;
    }
    void batch(const recording::RecordBatch& batch) {
        const std::size_t index = tracks_.find(batch.track);
        if (index == no_track) {
            return;
        }
        while (wanted_.size() <= index) {
            wanted_.push_back(look_.wanted(tracks_[wanted_.size()].info));
        }
        if (wanted_[index]) {
            samples_.batch(batch);
        }
    }

  private:
    TrackTable& tracks_;
    const FirstLook& look_;
    NoSteps no_steps_;
    Losses losses_;
    SamplePass samples_;
    std::vector<bool> wanted_; // by index of the track
};

} // namespace

Result<Resolution> resolve(const recording::RecordedRun& run, const ResolveOptions& options, const PassSink& on_steps,
                           const BatchSink& on_batch, const FirstLook& look) {
    Resolution result;
    result.tracks = std::make_unique<TrackTable>(*run.facts, options.cut);
    EarlySamples early(*result.tracks, look);
    std::function<void(const recording::RecordBatch&)> also;
    if (early.any()) {
        also = [&early](const recording::RecordBatch& batch) {
            early.batch(batch);
        };
    }
    Result<FirstPass> first = scan_steps(run, *result.tracks, options.warmup_steps, result.losses, also);
    if (!first.ok()) {
        return first.error();
    }
    result.complaints = result.tracks->complaints();
    result.steps = std::make_unique<StepTable>(std::move(first->steps));
    on_steps(*result.steps, *result.tracks);

    SamplePass second(*result.tracks, *result.steps, result.tracks->tells_launches(), result.losses,
                      &first->no_earlier_than, on_batch);
    const Status read = run.for_each_batch([&](const recording::RecordBatch& batch) {
        second.batch(batch);
        return true;
    });
    if (!read.ok()) {
        return read.error();
    }
    result.records = second.records();
    return result;
}

Status resolve_samples(const recording::RecordedRun& run, const ResolveOptions& options, const BatchSink& on_batch) {
    TrackTable tracks(*run.facts, options.cut);
    Losses losses;
    const Result<PackedSteps> steps = scan_step_facts(run, tracks, options.warmup_steps, losses);
    if (!steps.ok()) {
        return steps.error();
    }
    SamplePass second(tracks, *steps, tracks.tells_launches(), losses, nullptr, on_batch);
    return run.for_each_batch([&](const recording::RecordBatch& batch) {
        second.batch(batch);
        return true;
    });
}

} // namespace plumb::resolve

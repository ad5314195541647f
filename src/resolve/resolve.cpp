// SPDX-License-Identifier: Apache-2.0
#include "resolve/resolve.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "base/hand_over.hpp"
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

/// A part of a batch, and what it points into.
struct ResolvedPart {
    ResolvedBuffers buffers;
    ResolvedBatch batch;
};

/// Where resolved parts go.
class Outlet {
  public:
    virtual ~Outlet() = default;
    /// The part to fill next; null: nobody wants more.
    [[nodiscard]] virtual ResolvedPart* room() = 0;
    /// What room() gave is ready.
    virtual void filled() = 0;
};

class DirectOutlet final : public Outlet {
  public:
    explicit DirectOutlet(const BatchSink& sink) : sink_(sink) {}
    [[nodiscard]] ResolvedPart* room() override { return &part_; }
    void filled() override { sink_(part_.batch); }

  private:
    const BatchSink& sink_;
    ResolvedPart part_;
};

// A hand-over costs some microseconds where the other thread sleeps, resolving a part some ten. Enough of them lie ahead
// that neither thread waits while the system gives its core to the one that decodes.
constexpr std::size_t parts_at_once = 16;
struct ResolvedParts {
    std::array<ResolvedPart, parts_at_once> all;
    std::size_t used = 0;
};
using PartsHandOver = base::HandOver<ResolvedParts, 4>;

/// To another thread. Memory: about 4 MiB.
class DistantOutlet final : public Outlet {
  public:
    explicit DistantOutlet(PartsHandOver& to) : to_(to) {}
    [[nodiscard]] ResolvedPart* room() override {
        if (parts_ == nullptr) {
            parts_ = to_.room();
            if (parts_ == nullptr) {
                return nullptr;
            }
            parts_->used = 0;
        }
        return &parts_->all[parts_->used];
    }
    void filled() override {
        if (++parts_->used == parts_at_once) {
            flush();
        }
    }
    void flush() {
        if (parts_ != nullptr) {
            parts_ = nullptr;
            to_.filled();
        }
    }

  private:
    PartsHandOver& to_;
    ResolvedParts* parts_ = nullptr;
};

class SamplePass {
  public:
    /// `tells_launches`: as of the tracks; absent: not known yet. `no_earlier_than` (may be null): as of FirstPass.
    SamplePass(TrackTable& tracks, const StepFactsSource& steps, std::optional<bool> tells_launches, Losses& losses,
               const std::vector<std::int64_t>* no_earlier_than)
        : tracks_(tracks), steps_(steps), losses_(losses), no_earlier_than_(no_earlier_than),
          launches_(tells_launches) {}

    /// Every batch of the run. Where it pays, they are resolved on a thread of their own, ahead of `sink`.
    [[nodiscard]] Status run(const recording::RecordedRun& run, const BatchSink& sink) {
        return run.ahead ? run_ahead(run, sink) : run_here(run, sink);
    }

    /// False: `out` wants no more.
    bool batch(const recording::RecordBatch& batch, Outlet& out) {
        const std::size_t number = batches_++;
        const bool known = no_earlier_than_ != nullptr && number < no_earlier_than_->size(); // else: the run grew
        const std::int64_t later = known ? (*no_earlier_than_)[number] : std::numeric_limits<std::int64_t>::min();
        const std::size_t index = tracks_.index_of(batch.track);
        if (index == no_track) {
            losses_.count(Loss::too_many_tracks, batch.count);
            return true;
        }
        if (batch.begins_anew && index < states_.size()) {
            states_[index].reset();
        }
        TrackState& state = state_of(index);
        if (state.begun && batch.first_sequence != state.next_sequence) {
            state.resolver.records_are_missing();
        }
        if (!state.begun && tracks_.begins_behind_removed(batch.first_sequence)) {
            state.resolver.begins_behind_removed();
        }
        state.begun = true;
        state.next_sequence = batch.first_sequence + batch.count;
        const std::uint64_t cut = tracks_[index].cut;
        records_ += batch.count - std::min<std::uint64_t>(batch.count, cut - std::min(cut, batch.first_sequence));
        return deliver(batch, index, state.resolver, later, out);
    }

    /// Those behind the cut.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

  private:
    Status run_here(const recording::RecordedRun& run, const BatchSink& sink) {
        DirectOutlet out(sink);
        return run.for_each_batch([&](const recording::RecordBatch& records) { return batch(records, out); });
    }

    Status run_ahead(const recording::RecordedRun& run, const BatchSink& sink) {
        Status read;
        std::optional<PartsHandOver> parts;
        try {
            parts.emplace([&](PartsHandOver& to) {
                DistantOutlet out(to);
                read = run.for_each_batch([&](const recording::RecordBatch& records) { return batch(records, out); });
                out.flush();
            });
        } catch (const std::system_error&) { // no more threads for this process: it goes without
            return run_here(run, sink);
        }
        while (const ResolvedParts* some = parts->next()) {
            for (std::size_t i = 0; i < some->used; ++i) {
                sink(some->all[i].batch);
            }
        }
        return read;
    }

    bool deliver(const recording::RecordBatch& batch, std::size_t index, TrackResolver& resolver, std::int64_t later,
                 Outlet& to) {
        for (std::size_t at = 0; at < batch.count; at += records_at_once) {
            ResolvedPart* const part = to.room();
            if (part == nullptr) {
                return false;
            }
            ResolvedBuffers& buffers = part->buffers;
            const std::size_t count = std::min(records_at_once, batch.count - at);
            buffers.clear();
            resolver.consume(batch.records + at, count, batch.first_sequence + at, buffers);
            ResolvedBatch& out = part->batch;
            out.track_index = index;
            out.track = &tracks_[index];
            out.samples = buffers.samples;
            out.cpu_stamps = buffers.cpu_stamps;
            out.labels = buffers.labels;
            out.submissions = buffers.submissions;
            out.launches = buffers.launches;
            out.collectives = buffers.collectives;
            out.nodes = buffers.nodes;
            out.dependencies = buffers.dependencies;
            out.requests = buffers.requests;
            // Only the last part says how far time is known: what is left of this batch is not behind us yet.
            const bool last = at + count == batch.count;
            out.no_earlier_than = last ? later : std::numeric_limits<std::int64_t>::min();
            to.filled();
        }
        return true;
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
    WorkPool pool_;
    Launches launches_;
    std::vector<std::unique_ptr<TrackState>> states_;
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
        : tracks_(tracks), look_(look), samples_(tracks, no_steps_, std::nullopt, losses_, nullptr), out_(look.sink) {}

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
            samples_.batch(batch, out_);
        }
    }

  private:
    TrackTable& tracks_;
    const FirstLook& look_;
    NoSteps no_steps_;
    Losses losses_;
    SamplePass samples_;
    DirectOutlet out_;
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
                      &first->no_earlier_than);
    const Status read = second.run(run, on_batch);
    if (!read.ok()) {
        return read.error();
    }
    result.records = second.records();
    return result;
}

namespace {

/// The batches that hold those steps and the first ones, which are warm-up; false where that is all of the run.
bool read_less(recording::RecordedRun& run, const recording::StepRanges& steps, std::uint64_t warmup_steps) {
    std::optional<recording::BatchStream> part = run.batches_of ? run.batches_of(steps, warmup_steps) : std::nullopt;
    if (part) {
        run.for_each_batch = std::move(*part);
    }
    return part.has_value();
}

} // namespace

Status for_each_step(const recording::RecordedRun& run,
                     const std::function<bool(const ResolvedStep&, std::uint32_t)>& take,
                     const recording::StepRanges* only) {
    recording::RecordedRun part = run;
    if (only != nullptr) {
        (void)read_less(part, *only, 0);
    }
    TrackTable tracks(*run.facts, {});
    Losses losses;
    const std::uint64_t warmup_steps = only == nullptr ? run.facts->metadata.warmup_steps : 0;
    const Result<FirstPass> first = scan_steps(part, tracks, warmup_steps, losses, {}, only);
    if (!first.ok()) {
        return first.error();
    }
    for (const ResolvedStep& step : first->steps.all()) {
        if (!take(step, tracks[step.track].info.id)) {
            break;
        }
    }
    return {};
}

Status resolve_samples(const recording::RecordedRun& run, const ResolveOptions& options, const BatchSink& on_batch,
                       const recording::StepRanges* only) {
    // Whether a step is left out depends on the others of its phase: where those in the window do not tell, look at some around
    // it, and then at all.
    constexpr std::uint64_t margins[] = {0, 256};
    for (std::size_t look = 0;; ++look) {
        recording::RecordedRun part = run;
        recording::StepRanges wider;
        bool less = false;
        if (only != nullptr && look < std::size(margins)) {
            wider = only->widened(margins[look]);
            less = read_less(part, wider, options.warmup_steps);
        }
        TrackTable tracks(*run.facts, options.cut);
        Losses losses;
        const Result<PackedSteps> steps =
            scan_step_facts(part, tracks, options.warmup_steps, losses, less ? &wider : nullptr);
        if (!steps.ok()) {
            return steps.error();
        }
        if (less && steps->some_phase_has_no_other_steps()) {
            continue;
        }
        SamplePass second(tracks, *steps, tracks.tells_launches(), losses, nullptr);
        return second.run(part, on_batch);
    }
}

} // namespace plumb::resolve

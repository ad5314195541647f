// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_clock.hpp"

#include <limits>

#include "analysis/imported_words.hpp"
#include "base/layout.hpp"

namespace plumb::analysis {
WallClock::TrackState& WallClock::state_of(const resolve::ResolvedBatch& batch) {
    while (states_.size() <= batch.track_index) {
        states_.push_back(nullptr);
    }
    auto& state = states_[batch.track_index];
    if (!state) {
        const resolve::TickConversion* line = batch.track->line;
        const std::int64_t long_ns = line != nullptr ? line->length_ns(long_ticks) : 0;
        const recording::TrackKind kind = batch.track->info.kind;
        any_queue_ = any_queue_ || kind == recording::TrackKind::device_queue;
        state = std::make_unique<TrackState>(ledger_, long_ns, static_cast<std::uint32_t>(batch.track_index), kind,
                                             batch.track->info.name);
        state->imported = is_imported(batch.track->info.source);
        state->sometimes_timed =
            kind == recording::TrackKind::captured_graph || (state->device && batch.track->info.sampled_every > 1);
    }
    return *state;
}

namespace {

/// The phase in whose rows it is; none: in those of no counted step.
Phase counted_in(const resolve::Sample& sample) {
    return sample.warmup || sample.left_out ? Phase::none : sample.phase;
}

} // namespace

inline void WallClock::sample(TrackState& state, const resolve::Sample& sample) {
    if (sample.kind == resolve::SampleKind::scope && sample.leaf && !state.device) [[likely]] {
        const std::int64_t end = sample.begin_ns + sample.duration_ns;
        ledger_.add(PeriodLedger::What::brick, sample.begin_ns, end, state.hint, state.track, counted_in(sample));
        state.presence.leaf({sample.begin_ns, end});
    } else {
        other_sample(state, sample);
    }
}

void WallClock::other_sample(TrackState& state, const resolve::Sample& sample) {
    using resolve::SampleKind;
    const Interval interval{sample.begin_ns, sample.begin_ns + sample.duration_ns};
    const auto add = [&](PeriodLedger::What what) {
        // The device may end a timed step after the host did: in the next period it would be busy for that moment alone.
        if (state.sometimes_timed) [[unlikely]] {
            ledger_.add_where_timed(what, interval, state.hint, state.track, counted_in(sample));
        } else {
            ledger_.add(what, interval, state.hint, state.track, counted_in(sample));
        }
    };
    if (sample.kind == SampleKind::span) {
        // Timed elsewhere or across threads: of this thread it says only that it was there at the end, to tell of it.
        if (sample.leaf) {
            add(PeriodLedger::What::brick);
        }
        if (!state.device) {
            state.presence.seen(interval.end);
        }
        return;
    }
    if (sample.kind == SampleKind::lap) {
        add(PeriodLedger::What::lap);
    } else if (sample.kind == SampleKind::scope && sample.leaf) {
        add(PeriodLedger::What::brick);
    }
    if (state.kind == recording::TrackKind::device_queue) {
        device_ledger_.add(PeriodLedger::What::presence, interval, state.device_hint);
        if (sample.kind == SampleKind::scope && sample.leaf) {
            device_ledger_.add(PeriodLedger::What::brick, interval, state.device_hint);
        }
    }
    if (state.device) {
        add(PeriodLedger::What::presence);
    } else if (sample.leaf) {
        state.presence.leaf(interval);
    } else {
        state.presence.seen(interval.end);
    }
}

void WallClock::consume(const resolve::ResolvedBatch& batch) {
    if (observer_ != nullptr) {
        observer_->consume(batch);
    }
    TrackState& state = state_of(batch);
    state.samples += batch.samples.size();
    std::size_t next = 0;
    std::size_t next_submission = 0;
    // A submission may hold a wait for the device, as a scope may; in the order of the stream, as presence needs it.
    const auto up_to = [&](std::size_t position, std::int64_t time) {
        for (; next_submission < batch.submissions.size(); ++next_submission) {
            const resolve::Submission& submission = batch.submissions[next_submission];
            const std::int64_t end = submission.begin_ns + submission.duration_ns;
            if (submission.position > position || (submission.position == position && end > time)) {
                break;
            }
            for (; next < submission.position; ++next) {
                sample(state, batch.samples[next]);
            }
            if (submission.timed && !state.device) {
                state.presence.leaf({submission.begin_ns, end});
            }
        }
        for (; next < position; ++next) {
            sample(state, batch.samples[next]);
        }
    };
    for (const resolve::CpuStamp& stamp : batch.cpu_stamps) {
        up_to(stamp.position, stamp.time_ns);
        if (!state.device) {
            state.presence.cpu_stamp(stamp.time_ns, stamp.cpu_ns);
        }
    }
    up_to(batch.samples.size(), std::numeric_limits<std::int64_t>::max());

    const std::int64_t horizon = ledger_.horizon(batch.no_earlier_than);
    if (horizon == std::numeric_limits<std::int64_t>::min()) {
        return;
    }
    for (const auto& other : states_) {
        if (other) {
            other->presence.give_before(horizon);
        }
    }
    ledger_.settle(batch.no_earlier_than);
    if (any_queue_) {
        device_ledger_.settle(batch.no_earlier_than);
    }
}

void WallClock::finish() {
    for (const auto& state : states_) {
        if (state) {
            state->presence.give_all();
        }
    }
    ledger_.settle_all();
    if (any_queue_) {
        device_ledger_.settle_all();
    }
    if (observer_ != nullptr) {
        observer_->end();
    }
}

std::vector<std::string> WallClock::notes() const {
    std::vector<std::string> sentences;
    std::uint64_t contradictions = 0;
    std::string unsampled;
    for (const auto& state : states_) {
        if (!state) {
            continue;
        }
        contradictions += state->presence.contradictions();
        if (!state->device && !state->imported && state->samples > 0 && !state->presence.sampled()) {
            unsampled += (unsampled.empty() ? "" : ", ") + state->name;
        }
    }
    if (!unsampled.empty()) {
        sentences.push_back("CPU time is not known for these threads, so all their time counts as busy: " + unsampled +
                            ".");
    }
    if (contradictions != 0) {
        sentences.push_back(std::to_string(contradictions) +
                            " samples of CPU time contradict the clock; the time around them counts as busy.");
    }
    if (ledger_.left_out() != 0) {
        sentences.push_back(std::to_string(ledger_.left_out()) +
                            " intervals are in no wall account: they reach over more than 8 steps, or came too late.");
    }
    return sentences;
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_lanes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/imported_words.hpp"

namespace plumb::analysis {
namespace {

bool longer(const WallLanes::OneStep& a, const WallLanes::OneStep& b) {
    return a.sums.period != b.sums.period ? a.sums.period > b.sums.period : a.step.id < b.step.id;
}

/// Disjoint and ordered: what `busy` leaves of the period.
void complement(Interval period, const std::vector<Interval>& busy, std::vector<Interval>& idle) {
    idle.clear();
    std::int64_t at = period.begin;
    for (const Interval& interval : busy) {
        if (interval.begin > at) {
            idle.push_back({at, interval.begin});
        }
        at = std::max(at, interval.end);
    }
    if (period.end > at) {
        idle.push_back({at, period.end});
    }
}

bool touches(const Interval& interval, const std::vector<Interval>& set) {
    const auto after = std::upper_bound(set.begin(), set.end(), interval.begin,
                                        [](std::int64_t at, const Interval& other) { return at < other.end; });
    return after != set.end() && after->begin < interval.end;
}

} // namespace

WallLanes::WallLanes(const LaunchFacts& facts, const std::vector<recording::ClockInfo>& clocks,
                     const WallOptions& options)
    : facts_(facts), clocks_(clocks), options_(options) {}

void WallLanes::add_lane(std::string name, std::vector<std::size_t> queues) {
    Lane lane;
    lane.name = std::move(name);
    lane.device = !queues.empty();
    lane.roles.assign(tracks_->size(), Role::thread);
    for (std::size_t i = 0; i < tracks_->size(); ++i) {
        const recording::TrackInfo& info = (*tracks_)[i].info;
        if (info.kind != recording::TrackKind::host_thread) {
            lane.roles[i] = Role::other_queue;
        }
        lane.tracks += info.kind == recording::TrackKind::host_thread && queues.empty() ? 1 : 0;
    }
    for (const std::size_t queue : queues) {
        lane.roles[queue] = Role::queue;
        ++lane.tracks;
    }
    lanes_.push_back(std::move(lane));
}

void WallLanes::find_feeders() {
    for (Lane& lane : lanes_) {
        for (const auto& [thread, queue] : facts_.feeds) {
            const std::size_t from = tracks_->find(thread), to = tracks_->find(queue);
            if (from >= lane.roles.size() || to >= lane.roles.size() || lane.roles[to] != Role::queue) {
                continue;
            }
            lane.roles[from] = Role::feeder;
            lane.fed = true;
        }
    }
}

void WallLanes::begin(const resolve::StepTable& steps, const resolve::TrackTable& tracks, PeriodLedger& ledger) {
    steps_ = &steps;
    tracks_ = &tracks;
    ledger_ = &ledger;
    for (const resolve::ResolvedStep& step : steps.all()) {
        auto& [least, most] = step_ids_ ? *step_ids_ : step_ids_.emplace(step.id, step.id);
        least = std::min(least, step.id);
        most = std::max(most, step.id);
    }
    std::map<std::uint32_t, std::vector<std::size_t>> by_clock;
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        const recording::TrackInfo& info = tracks[i].info;
        imported_ = imported_ || is_imported(info.source);
        if (info.kind == recording::TrackKind::host_thread) {
            continue;
        }
        queues_sampled_ = queues_sampled_ || info.sampled_every > 1;
        by_clock[info.clock].push_back(i);
        all.push_back(i);
    }
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        states_.push_back(std::make_unique<TrackState>());
    }
    ledger.keep_brick_details(!by_clock.empty());
    add_lane("host", {});
    if (by_clock.size() > 1) {
        add_lane("all devices", all);
    }
    for (auto& [clock, queues] : by_clock) {
        if (lanes_.size() >= most_lanes) {
            ++devices_without_lane_;
            continue;
        }
        const auto named = std::find_if(clocks_.begin(), clocks_.end(),
                                        [id = clock](const recording::ClockInfo& info) { return info.id == id; });
        const std::string& first = tracks[queues.front()].info.name;
        add_lane(named != clocks_.end() && !named->name.empty() ? named->name
                 : first.empty()                                ? "device " + std::to_string(clock)
                                                                : first,
                 std::move(queues));
    }
    for (Sums& sums : phases_) {
        sums.lanes.resize(lanes_.size());
    }
}

bool WallLanes::asked_for(const resolve::ResolvedStep& step) const {
    if (options_.step) {
        return step.id == *options_.step;
    }
    return !options_.phase || *options_.phase == step.phase;
}

void WallLanes::count(const resolve::Sample& sample) {
    if (options_.step ? sample.step != *options_.step : sample.warmup || sample.left_out) {
        return;
    }
    Sums& sums = phases_[static_cast<std::size_t>(sample.phase)];
    ++(sample.kind == resolve::SampleKind::lap ? sums.laps : sums.scopes);
}

void WallLanes::add_pieces(std::size_t track, Detail detail, Interval interval) {
    TrackState& state = *states_[track];
    detail.track = static_cast<std::uint32_t>(track);
    const bool outer = state.pieces.ended(interval, [&](Interval part) {
        detail.interval = part;
        ledger_->add_detail(detail, state.hint);
    });
    if (!outer || detail.name == 0) {
        return;
    }
    detail.kind = Detail::Kind::whole;
    detail.interval = interval;
    ledger_->add_detail(detail, state.hint);
}

void WallLanes::host_scope(const resolve::ResolvedBatch& batch, const resolve::Sample& sample) {
    using resolve::SampleKind;
    count(sample);
    if (sample.kind != SampleKind::scope && sample.kind != SampleKind::lap) {
        return; // steps and layers name nobody's work; a span says nothing about this thread
    }
    Detail detail;
    detail.kind = Detail::Kind::piece;
    detail.name = sample.name;
    add_pieces(batch.track_index, detail, {sample.begin_ns, sample.begin_ns + sample.duration_ns});
}

void WallLanes::host_launch(const resolve::ResolvedBatch& batch, const resolve::Submission& submission) {
    if (!options_.step ? !submission.warmup && !submission.left_out : submission.step == *options_.step) {
        ++phases_[static_cast<std::size_t>(submission.phase)].launches;
    }
    if (!submission.timed) {
        return;
    }
    Detail detail;
    detail.kind = Detail::Kind::submit;
    detail.name = submission.name;
    detail.other = static_cast<std::uint32_t>(tracks_->find(submission.queue));
    add_pieces(batch.track_index, detail, {submission.begin_ns, submission.begin_ns + submission.duration_ns});
}

void WallLanes::device_scope(const resolve::ResolvedBatch& batch, const resolve::Sample& sample) {
    const std::size_t track = batch.track_index;
    if ((sample.flags & span_includes_launch_wait) != 0) {
        Detail detail;
        detail.kind = Detail::Kind::unsure;
        detail.track = static_cast<std::uint32_t>(track);
        detail.interval = {sample.begin_ns, sample.begin_ns + sample.duration_ns};
        ledger_->add_detail(detail, states_[track]->hint);
    }
    TrackState& state = *states_[track];
    if (sample.launch != resolve::no_launch) {
        launched(track, sample, batch.launches[sample.launch]);
    } else if (imported_) {
        Detail detail;
        detail.kind = Detail::Kind::unlinked;
        detail.track = static_cast<std::uint32_t>(track);
        detail.interval = {std::max(state.end_ns, (*steps_)[0].period_begin_ns), sample.begin_ns};
        if (detail.interval.end > detail.interval.begin) {
            ledger_->add_detail(detail, state.hint);
        }
    }
    state.end_ns = std::max(state.end_ns, sample.begin_ns + sample.duration_ns);
}

/// Between two stamps that CPU time does not part: so an import tells of calls that wait (docs/reference/wall.md).
void WallLanes::waited(const resolve::ResolvedBatch& batch) {
    TrackState& state = *states_[batch.track_index];
    for (const resolve::CpuStamp& stamp : batch.cpu_stamps) {
        if (state.stamp && state.stamp->cpu_ns == stamp.cpu_ns && stamp.time_ns > state.stamp->time_ns) {
            Detail detail;
            detail.kind = Detail::Kind::waiting;
            detail.track = static_cast<std::uint32_t>(batch.track_index);
            detail.interval = {state.stamp->time_ns, stamp.time_ns};
            ledger_->add_detail(detail, state.hint);
            waits_known_ = true;
        }
        state.stamp = stamp;
    }
}

void WallLanes::launched(std::size_t track, const resolve::Sample& sample, const resolve::Launch& launch) {
    inferred_ = inferred_ || launch.inferred;
    const auto add = [&](Detail::Kind kind, std::int64_t begin, std::int64_t end) {
        Detail detail;
        detail.kind = kind;
        detail.track = static_cast<std::uint32_t>(track);
        detail.interval = {begin, end};
        if (end > begin) {
            ledger_->add_detail(detail, states_[track]->hint);
        }
    };
    if ((sample.flags & span_includes_launch_wait) != 0) {
        add(Detail::Kind::sure, std::max(sample.begin_ns, launch.end_ns), sample.begin_ns + sample.duration_ns);
    }
    const auto latency = facts_.latency_ns.find(sample.track);
    // Twice the median: launches vary, and what takes much longer waited for something else.
    const std::int64_t arrived = launch.end_ns + (latency == facts_.latency_ns.end() ? 0 : 2 * latency->second);
    add(Detail::Kind::flying, launch.end_ns, std::min(sample.begin_ns, arrived));
    add(Detail::Kind::queued, arrived, sample.begin_ns);
}

void WallLanes::consume(const resolve::ResolvedBatch& batch) {
    if (!std::exchange(feeders_known_, true)) {
        find_feeders();
    }
    while (states_.size() <= batch.track_index) {
        states_.push_back(std::make_unique<TrackState>());
    }
    const recording::TrackKind kind = batch.track->info.kind;
    if (kind == recording::TrackKind::device_queue) {
        for (const resolve::Sample& sample : batch.samples) {
            device_scope(batch, sample);
        }
    }
    if (kind != recording::TrackKind::host_thread) {
        return;
    }
    if (imported_) {
        waited(batch);
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i <= batch.samples.size(); ++i) {
        for (; next < batch.submissions.size() && batch.submissions[next].position <= i; ++next) {
            host_launch(batch, batch.submissions[next]);
        }
        if (i < batch.samples.size()) {
            host_scope(batch, batch.samples[i]);
        }
    }
}

/// Without devices the ledger knows all but where the threads waited: only idle moments are looked at.
LaneSums WallLanes::host_only(Interval period, const WallSums& sums, std::vector<Detail>& details) {
    std::int64_t busy_sum = 0;
    busy_.clear();
    for (const Detail& detail : details) {
        if (detail.kind != Detail::Kind::presence) {
            continue;
        }
        busy_sum += detail.interval.end - detail.interval.begin;
        busy_.push_back(detail.interval);
    }
    LaneSums lane;
    if (sums.idle() > 0) {
        sort_by_begin(busy_);
        std::vector<Interval> united;
        unite(busy_, united);
        complement(period, united, idle_);
        std::erase_if(details, [this](const Detail& detail) {
            return detail.kind != Detail::Kind::presence && !touches(detail.interval, idle_);
        });
        lane = sweep_.lane(period, details, lanes_[0].roles, false);
    }
    lane.steps = 1;
    lane.period = sums.period;
    lane.busy = sums.busy;
    lane.busy_sum = busy_sum;
    lane.bricks = sums.united;
    lane.bricks_sum = sums.sum;
    lane.laps = sums.lap_union;
    return lane;
}

void WallLanes::settled(std::size_t index, const WallSums& wall, std::vector<Detail>& details, bool complete) {
    const resolve::ResolvedStep& step = (*steps_)[index];
    if (!asked_for(step)) {
        return;
    }
    if (!complete) {
        ++incomplete_;
        return;
    }
    const bool counted = options_.step || (!step.warmup && !step.left_out);
    const bool timed = (options_.step || !step.warmup) && (queues_sampled_ ? step.device_timed : counted);
    if (!counted && !timed) {
        return;
    }
    const Interval period{step.period_begin_ns, step.end_ns};
    Sums of_step;
    of_step.lanes.resize(lanes_.size());
    Sums& sums = phases_[static_cast<std::size_t>(step.phase)];
    if (counted) {
        of_step.steps = 1;
        of_step.untimed = timed ? 0 : 1;
        sums.untimed += of_step.untimed;
        of_step.tokens = std::uint64_t{step.prefill_tokens} + step.decode_tokens;
        of_step.period = wall.period;
        sums.steps += 1;
        sums.tokens += of_step.tokens;
        sums.without_tokens += of_step.tokens == 0 ? 1 : 0;
        sums.period += of_step.period;
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i].device ? !timed : !counted) {
            continue;
        }
        of_step.lanes[i] = lanes_.size() == 1
                               ? host_only(period, wall, details)
                               : sweep_.lane(period, details, lanes_[i].roles, lanes_[i].device, imported_);
        of_step.lanes[i].uncertain = wall.uncertain;
        sums.lanes[i].add(of_step.lanes[i]);
    }
    if (counted && !options_.step) {
        keep_slowest(step, std::move(of_step));
    }
}

void WallLanes::end() {
    details_left_out_ = ledger_->details_left_out();
    steps_ = nullptr;
    tracks_ = nullptr;
    ledger_ = nullptr;
}

void WallLanes::keep_slowest(const resolve::ResolvedStep& step, Sums sums) {
    const std::size_t wanted = std::min<std::size_t>(options_.slowest.value_or(0), most_slowest);
    if (wanted == 0) {
        return;
    }
    slowest_.push_back({step, std::move(sums)});
    std::push_heap(slowest_.begin(), slowest_.end(), longer);
    if (slowest_.size() > wanted) {
        std::pop_heap(slowest_.begin(), slowest_.end(), longer);
        slowest_.pop_back();
    }
}

std::vector<WallLanes::OneStep> WallLanes::take_slowest() {
    std::sort(slowest_.begin(), slowest_.end(), longer);
    return std::move(slowest_);
}

std::vector<std::string> WallLanes::notes() const {
    std::vector<std::string> sentences;
    if (queues_sampled_) {
        sentences.push_back(
            "The device was timed in some steps only: its lane is of those, and timing made them longer.");
    }
    if (devices_without_lane_ != 0) {
        sentences.push_back(std::to_string(devices_without_lane_) +
                            " devices have no lane of their own: an account has " + std::to_string(most_lanes) +
                            " lanes at most. They are in that of all devices.");
    }
    if (inferred_) {
        sentences.push_back(resolve::inferred_launches_note);
    }
    if (incomplete_ != 0) {
        sentences.push_back(
            std::to_string(incomplete_) +
            " steps are in no account here: they and their neighbours hold more than 4 million intervals.");
    }
    if (details_left_out_ != 0) {
        sentences.push_back(
            std::to_string(details_left_out_) +
            " intervals say nothing about idle time: they reach over more than 8 steps, or came too late.");
    }
    return sentences;
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_presence.hpp"

#include <algorithm>

namespace plumb::analysis {
namespace {

/// What `inside` leaves of `whole`; both disjoint and in order.
std::vector<Interval> rest_of(const std::vector<Interval>& whole, const std::vector<Interval>& inside) {
    std::vector<Interval> rest;
    auto next = inside.begin();
    for (const Interval& one : whole) {
        std::int64_t at = one.begin;
        for (; next != inside.end() && next->begin < one.end; ++next) {
            if (next->begin > at) {
                rest.push_back({at, next->begin});
            }
            at = std::max(at, next->end);
            if (next->end > one.end) {
                break;
            }
        }
        if (one.end > at) {
            rest.push_back({at, one.end});
        }
    }
    return rest;
}

} // namespace

PathPresence::PathPresence(const resolve::StepTable& steps, const resolve::TrackTable& tracks, Interval wanted)
    : steps_(steps), tracks_(tracks), wanted_(wanted),
      clock_(
          steps, [](std::size_t, const WallSums&) {}, [](std::size_t, const WallSums&) {}, this) {
    clock_.ledger().keep_brick_details(false);
}

void PathPresence::settled(std::size_t step, const WallSums&, std::vector<Detail>& details, bool complete) {
    const Interval period{steps_[step].period_begin_ns, steps_[step].end_ns};
    if (!complete || period.end <= wanted_.begin || period.begin >= wanted_.end) {
        return;
    }
    known_.push_back(period);
    for (const Detail& detail : details) {
        if (detail.kind == Detail::Kind::presence &&
            tracks_[detail.track].info.kind == recording::TrackKind::host_thread) {
            present_[detail.track].push_back(detail.interval);
        }
    }
}

ThreadsAway PathPresence::take() {
    clock_.finish();
    ThreadsAway away;
    std::vector<Interval> known, present;
    unite(known_, known);
    for (auto& [track, intervals] : present_) {
        sort_by_begin(intervals);
        unite(intervals, present);
        away.emplace(tracks_[track].info.id, rest_of(known, present));
    }
    return away;
}

} // namespace plumb::analysis

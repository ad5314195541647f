// SPDX-License-Identifier: Apache-2.0
// Where a thread that feeds a device slept until the device had ended something: in a launch, in a scope, or between them. What
// it did there is no work of the host, as in `plumb wall`: such time is cut out of its nodes, and what follows depends on the device.
#include <algorithm>
#include <limits>
#include <string>

#include "analysis/path_graph.hpp"

namespace plumb::analysis {
namespace {

/// Two clocks are compared: the end of a command may seem to come so much after the wake-up that it caused.
constexpr std::int64_t clocks_disagree_ns = 10'000;
/// Two readings of CPU time differ by less even where nobody slept.
constexpr std::int64_t shortest_wait_ns = 1'000;

} // namespace

/// REQUIRES: intervals are nested.
void PathGraph::find_waits() {
    std::vector<Interval*> of_devices, of_others; // leaves by end; the second: of all tracks but the step's own
    for (auto& [id, track] : tracks_) {
        for (Interval& interval : track.intervals) {
            if (interval.leaf && track.device) {
                of_devices.push_back(&interval);
            }
            if (interval.leaf && interval.sample != nullptr && id != main_track_) {
                of_others.push_back(&interval);
            }
        }
    }
    for (auto* ended : {&of_devices, &of_others}) {
        std::stable_sort(ended->begin(), ended->end(),
                         [](const Interval* a, const Interval* b) { return a->end_ns < b->end_ns; });
    }
    for (auto& [id, track] : tracks_) {
        const bool feeds = std::any_of(track.intervals.begin(), track.intervals.end(),
                                       [](const Interval& interval) { return interval.submission != nullptr; });
        if (id == main_track_) {
            find_waits_of(track, of_others);
        } else if (!track.device && feeds) {
            find_waits_of(track, of_devices);
        }
    }
}

void PathGraph::find_waits_of(TrackData& track, const std::vector<Interval*>& ended) {
    const auto away = step_.away.find(track.id);
    if (away == step_.away.end()) {
        return;
    }
    for (const analysis::Interval& asleep : away->second) {
        const auto after = std::upper_bound(ended.begin(), ended.end(), asleep.end + clocks_disagree_ns,
                                            [](std::int64_t at, const Interval* other) { return at < other->end_ns; });
        // The last that may have woken it; one that began no earlier than it woke up has not.
        auto last = after;
        while (last != ended.begin() && (*std::prev(last))->begin_ns >= asleep.end) {
            --last;
        }
        if (last == ended.begin() || (*std::prev(last))->end_ns <= asleep.begin) {
            continue; // nothing ended meanwhile: it slept for another reason
        }
        const Interval* woke = *std::prev(last);
        const analysis::Interval time{asleep.begin, std::min(asleep.end, woke->end_ns)};
        if (time.end - time.begin >= shortest_wait_ns) {
            track.waits.push_back({time, woke});
            if (TrackData& other = tracks_.at(woke->sample->track); !other.device) {
                other.waited_for = true;
                joined_ns_ += time.end - time.begin;
            }
        }
    }
}

/// What the waits leave of it, in order; the first part is there even where nothing is left.
std::vector<analysis::Interval> PathGraph::without_waits(const TrackData& track, std::int64_t begin, std::int64_t end) {
    std::vector<analysis::Interval> parts;
    auto wait = std::upper_bound(track.waits.begin(), track.waits.end(), begin,
                                 [](std::int64_t at, const Wait& x) { return at < x.time.end; });
    std::int64_t at = begin;
    for (; wait != track.waits.end() && wait->time.begin < end; ++wait) {
        parts.push_back({at, std::max(at, wait->time.begin)});
        at = std::min(wait->time.end, end);
    }
    if (at < end || parts.empty()) {
        parts.push_back({at, end});
    }
    return parts;
}

/// A leaf of a host thread, less what it waited; a submission is parted where the device began, too. What is recorded one by
/// one, or holds such nodes, stays whole: its length was given, or is shared by rules of its own.
void PathGraph::add_leaf_parts(TrackData& track, Interval& interval, NodeId parent) {
    const bool whole = interval.recorded != nullptr || !interval.held.empty();
    std::vector<analysis::Interval> parts = whole
                                                ? std::vector<analysis::Interval>{{interval.begin_ns, interval.end_ns}}
                                                : without_waits(track, interval.begin_ns, interval.end_ns);
    const std::int64_t begun = interval.split_ns != 0 ? interval.split_ns : interval.end_ns;
    const auto parted = std::find_if(parts.begin(), parts.end(), [&](const analysis::Interval& part) {
        return part.begin < begun && begun < part.end;
    });
    if (parted != parts.end()) {
        const std::int64_t end = parted->end;
        parted->end = begun;
        parts.insert(std::next(parted), {begun, end});
    }
    Interval part = interval;
    slept_ns_ += interval.end_ns - interval.begin_ns;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        part.begin_ns = parts[i].begin;
        part.end_ns = parts[i].end;
        const NodeId node = i == 0 || interval.submission == nullptr
                                ? add_node(track, part, parent)
                                : add_task(track, "rest of a submission", part.begin_ns, part.end_ns, parent);
        if (i == 0) {
            interval.node = node;
        }
        if (i == 0 || part.begin_ns < begun) {
            interval.launched = node;
        }
        track.order.push_back({part.begin_ns, part.end_ns, node});
        slept_ns_ -= part.end_ns - part.begin_ns;
    }
    add_what_it_holds(track, interval);
}

/// What the thread does from that moment on comes after a command of the device.
void PathGraph::go_on_after(TrackData& track, std::int64_t moment, NodeId ended) {
    const auto first = std::lower_bound(track.order.begin(), track.order.end(), moment,
                                        [](const Item& item, std::int64_t at) { return item.begin_ns < at; });
    if (first != track.order.end() && ended != no_node) {
        builder_.depend(ended, first->node);
    }
}

/// What a thread beside the step's own began first, or after it had slept, comes after what the step's thread had done then:
/// nothing says what else it waited for.
void PathGraph::begin_after_step_thread(const TrackData& track) {
    const std::vector<Item>& of_step = tracks_.at(main_track_).order;
    const auto away = step_.away.find(track.id);
    std::int64_t ended = std::numeric_limits<std::int64_t>::min();
    for (const Item& item : track.order) {
        bool woke = ended == std::numeric_limits<std::int64_t>::min();
        if (!woke && away != step_.away.end()) {
            const auto asleep =
                std::upper_bound(away->second.begin(), away->second.end(), ended,
                                 [](std::int64_t at, const analysis::Interval& x) { return at < x.end; });
            woke = asleep != away->second.end() && asleep->begin < item.begin_ns &&
                   std::min(asleep->end, item.begin_ns) - std::max(asleep->begin, ended) >= shortest_wait_ns;
        }
        ended = std::max(ended, item.end_ns);
        const auto next = std::upper_bound(of_step.begin(), of_step.end(), item.begin_ns,
                                           [](std::int64_t at, const Item& x) { return at < x.end_ns; });
        if (woke && next != of_step.begin()) {
            builder_.depend(std::prev(next)->node, item.node);
        }
    }
}

bool PathGraph::is_waited_for(const TrackData& track) const {
    return track.device || track.id == main_track_ || track.waited_for || track.order.empty() ||
           track.order.back().end_ns >= step_.step.host_end_ns; // the step ends with it
}

std::set<std::uint32_t> PathGraph::not_waited_for() const {
    std::set<std::uint32_t> numbers;
    for (const auto& [id, track] : tracks_) {
        if (!is_waited_for(track)) {
            numbers.insert(track.number);
        }
    }
    return numbers;
}

void PathGraph::note_threads() {
    if (joined_ns_ > 0) {
        notes_.push_back("For " + std::to_string(joined_ns_ / 1000) +
                         " us the step's thread slept until another thread had ended something: it is taken to have "
                         "waited for it.");
    }
    std::string names;
    for (const std::uint32_t number : not_waited_for()) {
        names += (names.empty() ? "" : ", ") + track_names_[number];
    }
    if (!names.empty()) {
        notes_.push_back(
            "Nothing says what waited for these threads, so the gain of what they did is not known, and its "
            "slack may be less: " +
            names + ".");
    }
}

void PathGraph::note_waits() {
    if (slept_ns_ > 0) {
        notes_.push_back("For " + std::to_string(slept_ns_ / 1000) +
                         " us of its launches and scopes the host slept until a device had ended something: that is "
                         "waiting, not work.");
    }
    if (waited_ns_ > 0) {
        notes_.push_back("After its last launch the host did nothing that was recorded for " +
                         std::to_string(waited_ns_ / 1000) +
                         " us until the device had ended: it is taken to have waited for it.");
    }
}

} // namespace plumb::analysis

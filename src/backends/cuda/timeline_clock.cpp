// SPDX-License-Identifier: Apache-2.0
// Where events lie on the queue clock, and where that lies on the host's.
#include "backends/cuda/timeline_guard.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::backends::cuda {
namespace {

constexpr std::size_t most_anchors = 64; // older events are placed by the oldest of them
constexpr std::int64_t floor_limit_ns = 20'000'000;
constexpr std::int64_t pair_limit_ns = 60'000; // of one try
constexpr int pair_tries = 3;
constexpr double near_ns = 2.4e8; // of an anchor: a float of milliseconds still tells ticks of 32 ns apart

Error no_answer_yet(const char* what) { return {ErrorCode::pending, what}; }

} // namespace

double Timeline::tick_ns() const noexcept { return tick_.tick_ns(); }

std::uint64_t Timeline::ticks_at(double at) const noexcept {
    return base_ticks_ + static_cast<std::uint64_t>(std::llround(at));
}

// --- Anchors: callers hold a Guard and anchor_mutex_ ---

void Timeline::put_anchor(Event event, double at) noexcept {
    anchors_.push_back({event, at});
    if (anchors_.size() > most_anchors) {
        release(anchors_.front().event);
        anchors_.pop_front();
    }
}

void Timeline::resolve_anchors() noexcept {
    while (!unresolved_.empty()) {
        const Result<double> step = elapsed(anchors_.back().event, unresolved_.front());
        if (!step && step.error().code == ErrorCode::pending) {
            return;
        }
        if (step) {
            put_anchor(unresolved_.front(), anchors_.back().at + *step);
        } else {
            release(unresolved_.front());
        }
        unresolved_.pop_front();
    }
}

Status Timeline::add_anchor() noexcept {
    const Result<Event> event = acquire();
    if (!event) {
        return event.error();
    }
    if (const CuResult recorded = driver_.event_record(*event, stream_); recorded != CuResult::success) {
        release(*event);
        return failed(recorded, "cuEventRecord");
    }
    await_anchor(*event);
    return {};
}

void Timeline::await_anchor(Event event) noexcept {
    unresolved_.push_back(event);
    if (unresolved_.size() > most_anchors) { // the device stands still: the older ones say less
        release(unresolved_.front());
        unresolved_.pop_front();
    }
}

Result<double> Timeline::from_base(Event event) noexcept {
    resolve_anchors();
    const Result<double> first = elapsed(anchors_.back().event, event);
    if (!first || std::abs(*first) < near_ns) {
        return first ? Result<double>(anchors_.back().at + *first) : first;
    }
    const double about = anchors_.back().at + *first;
    const auto nearer = [&](const Anchor& a, const Anchor& b) {
        return std::abs(a.at - about) < std::abs(b.at - about);
    };
    const Anchor& nearest = *std::min_element(anchors_.begin(), anchors_.end(), nearer);
    const Result<double> second = elapsed(nearest.event, event);
    return second ? Result<double>(nearest.at + *second) : second;
}

Result<std::uint64_t> Timeline::place(Event event) noexcept {
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can.error();
    }
    const std::lock_guard lock(anchor_mutex_);
    const Result<double> at = from_base(event);
    if (!at) {
        return at.error();
    }
    return ticks_at(*at);
}

void Timeline::tend(std::int64_t now, bool may_spin) noexcept {
    auto& due = may_spin ? next_pair_ns_ : next_anchor_ns_;
    if (now < due.load(std::memory_order_relaxed) || !askable()) {
        return;
    }
    const std::unique_lock lock(anchor_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || now < due.load(std::memory_order_relaxed)) {
        return; // somebody else does it
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return;
    }
    // A failure is seen by the next scope that is collected.
    bool anchored = false;
    if (may_spin) {
        pair_gap_ns_ = std::min(2 * pair_gap_ns_, anchor_gap_ns);
        next_pair_ns_.store(now + pair_gap_ns_, std::memory_order_relaxed);
        anchored = read_pair().ok(); // or close to an anchor
        if (anchored) {
            static_cast<void>(learn_tick(pair_limit_ns));
        }
    }
    if (!anchored && now < next_anchor_ns_.load(std::memory_order_relaxed)) {
        return;
    }
    next_anchor_ns_.store(now + anchor_gap_ns, std::memory_order_relaxed);
    if (!anchored) { // a busy device reaches it some time
        static_cast<void>(add_anchor());
    }
}

// --- Clock pairs ---

// Cause and effect: the device stamps after the record was asked for and before it was seen.
Result<DeviceClockPair> Timeline::try_pair(Event event) noexcept {
    const std::int64_t before = now_ns();
    if (const CuResult recorded = driver_.event_record(event, stream_); recorded != CuResult::success) {
        return failed(recorded, "cuEventRecord");
    }
    if (Status seen = wait_short(event, pair_limit_ns); !seen) {
        return seen.error();
    }
    const std::int64_t width = now_ns() - before;
    return DeviceClockPair{0, before + width / 2, clock::realtime_ns() - width / 2, static_cast<std::uint64_t>(width)};
}

Result<DeviceClockPair> Timeline::read_pair() noexcept {
    const Result<Event> event = acquire();
    if (!event) {
        return event.error();
    }
    // Each try overwrites the event, so it is placed before the next.
    Result<DeviceClockPair> best = no_answer_yet("no try yet");
    double last_at = 0;
    bool placed = false; // its last record
    for (int attempt = 0; attempt < pair_tries; ++attempt) {
        Result<DeviceClockPair> pair = try_pair(*event);
        const Result<double> at = pair ? from_base(*event) : Result<double>(pair.error());
        placed = at.ok();
        if (!at) {
            // A device that is too busy for a second answer has given a first; any other error is told.
            best = best && at.error().code == ErrorCode::pending ? best : Result<DeviceClockPair>(at.error());
            break;
        }
        pair->ticks = ticks_at(*at);
        if (!best || pair->uncertainty_ticks < best->uncertainty_ticks) {
            best = *pair;
        }
        last_at = *at;
    }
    if (!best) {
        release(*event);
        return best;
    }
    line_.add(*best);
    if (!placed) {
        await_anchor(*event); // the device reaches it some time
    } else if (last_at - anchors_.back().at > static_cast<double>(anchor_gap_ns) / 2.0) {
        put_anchor(*event, last_at);
    } else {
        release(*event);
    }
    return best;
}

Result<DeviceClockPair> Timeline::clock_pair() noexcept {
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can.error();
    }
    const std::lock_guard lock(anchor_mutex_);
    return read_pair();
}

Result<HostPlace> Timeline::to_host(std::uint64_t ticks) noexcept {
    const std::lock_guard lock(anchor_mutex_);
    const std::optional<HostPlace> place = line_.place(ticks);
    return place ? Result<HostPlace>(*place)
                 : Result<HostPlace>(no_answer_yet("no clock pair was read yet; ask later"));
}

// --- Empty pairs ---

// Every event is compared with its neighbour, and for the tick also with the first: many multiples of it.
Result<std::vector<double>> Timeline::empty_pairs(std::size_t count, bool learn, std::int64_t limit_ns) {
    std::vector<Event> events;
    std::vector<double> neighbours;
    Status status;
    while (status && events.size() <= count) {
        const Result<Event> event = acquire();
        if (!event) {
            status = event.error();
            break;
        }
        events.push_back(*event);
        if (const CuResult recorded = driver_.event_record(*event, stream_); recorded != CuResult::success) {
            status = failed(recorded, "cuEventRecord");
        }
    }
    if (status) {
        status = wait_short(events.back(), limit_ns);
    }
    for (std::size_t i = 1; status && i < events.size(); ++i) {
        const Result<double> step = elapsed(events[i - 1], events[i]);
        const Result<double> whole = learn && step ? elapsed(events[0], events[i]) : step;
        if (!whole) {
            status = whole.error();
        } else {
            neighbours.push_back(*step);
        }
    }
    for (const Event event : events) {
        release(event);
    }
    return status ? Result<std::vector<double>>(std::move(neighbours)) : Result<std::vector<double>>(status.error());
}

// A device that is too busy to answer is asked again by tend().
Status Timeline::learn_tick(std::int64_t limit_ns) {
    if (tick_.tick_ns() > 0.0) {
        return {};
    }
    Result<std::vector<double>> learnt = empty_pairs(32, true, limit_ns);
    if (learnt) {
        std::nth_element(learnt->begin(), learnt->begin() + 16, learnt->end());
        empty_pair_ns_.store(std::abs((*learnt)[16]), std::memory_order_relaxed);
    }
    return learnt || learnt.error().code == ErrorCode::pending ? Status() : Status(learnt.error());
}

Result<double> Timeline::floor_ns() {
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can.error();
    }
    Result<std::vector<double>> pairs = empty_pairs(65, false, floor_limit_ns);
    if (!pairs) {
        return pairs.error();
    }
    std::nth_element(pairs->begin(), pairs->begin() + 32, pairs->end());
    return (*pairs)[32];
}

} // namespace plumb::backends::cuda

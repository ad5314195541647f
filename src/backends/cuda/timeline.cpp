// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

namespace plumb::backends::cuda {
namespace {

constexpr std::size_t chunk = 64;
constexpr std::size_t most_anchors = 64; // older events are placed by the oldest of them
constexpr std::int64_t open_limit_ns = 200'000'000;
constexpr std::int64_t floor_limit_ns = 20'000'000;
constexpr std::int64_t pair_limit_ns = 60'000; // of one try
constexpr int pair_tries = 3;
constexpr double near_ns = 2.4e8; // of an anchor: a float of milliseconds still tells ticks of 32 ns apart

Error pending(const char* what) { return {ErrorCode::pending, what}; }

} // namespace

/// What a thread of ours holds while it calls the driver for this context.
class Timeline::Guard {
  public:
    explicit Guard(Timeline& timeline) noexcept
        : relaxed_(timeline.driver_), current_(timeline.driver_, timeline.context_) {
        if (relaxed_.status() != CuResult::success) {
            status_ = timeline.failed(relaxed_.status(), "cuThreadExchangeStreamCaptureMode");
        } else if (current_.status() != CuResult::success) {
            status_ = timeline.failed(current_.status() == CuResult::invalid_context ? CuResult::context_is_destroyed
                                                                                     : current_.status(),
                                      "cuCtxPushCurrent");
        }
    }
    [[nodiscard]] const Status& status() const noexcept { return status_; }

  private:
    RelaxedCapture relaxed_;
    CurrentContext current_;
    Status status_;
};

Timeline::Timeline(const Driver& driver, Context context, std::string clock_name, const HostClock* host_clock)
    : driver_(driver), context_(context), host_clock_(clock::host_clock(host_clock)),
      clock_name_(std::move(clock_name)) {}

Result<std::shared_ptr<Timeline>> Timeline::create(const Driver& driver, Context context, std::string clock_name,
                                                   const HostClock* host_clock) {
    std::shared_ptr<Timeline> timeline(new Timeline(driver, context, std::move(clock_name), host_clock));
    if (Status opened = timeline->open(); !opened) {
        return opened.error();
    }
    return timeline;
}

Status Timeline::open() {
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status();
    }
    if (const CuResult made = driver_.stream_create(&stream_, stream_non_blocking); made != CuResult::success) {
        stream_ = nullptr;
        return failed(made, "cuStreamCreate");
    }
    if (Status base = open_base(); !base) {
        return base;
    }
    const Result<std::vector<double>> learnt = empty_pairs(32, true);
    if (!learnt) {
        return learnt.error();
    }
    const std::lock_guard lock(anchor_mutex_);
    const Result<DeviceClockPair> pair = read_pair();
    return pair ? Status() : Status(pair.error());
}

// Ticks start at the common clock's nanoseconds: a later timeline of this device goes on near where this one was.
Status Timeline::open_base() {
    const Result<Event> base = acquire();
    if (!base) {
        return base.error();
    }
    const std::int64_t before = now_ns();
    if (const CuResult recorded = driver_.event_record(*base, stream_); recorded != CuResult::success) {
        release(*base);
        return failed(recorded, "cuEventRecord");
    }
    if (Status reached = wait_short(*base, open_limit_ns); !reached) {
        release(*base);
        return reached;
    }
    const std::int64_t after = now_ns();
    base_ticks_ = static_cast<std::uint64_t>(before + (after - before) / 2);
    const std::lock_guard lock(anchor_mutex_);
    put_anchor(*base, 0.0);
    next_anchor_ns_.store(after + anchor_gap_ns, std::memory_order_relaxed);
    next_pair_ns_.store(after + pair_gap_ns_, std::memory_order_relaxed);
    return {};
}

Timeline::~Timeline() {
    if (lost()) {
        return; // the driver took everything with the context
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return;
    }
    for (const Anchor& anchor : anchors_) {
        pool_.push_back(anchor.event);
    }
    pool_.insert(pool_.end(), unresolved_.begin(), unresolved_.end());
    for (const Event event : pool_) {
        static_cast<void>(driver_.event_destroy(event));
    }
    if (stream_ != nullptr) {
        static_cast<void>(driver_.stream_destroy(stream_));
    }
}

Status Timeline::status() const noexcept {
    const std::lock_guard lock(status_mutex_);
    return status_;
}

Error Timeline::failed(CuResult result, const char* call) noexcept {
    const bool gone = is_sticky(result);
    Error error = error_of(driver_, result, call,
                           gone ? "this CUDA context cannot be used any more, so nothing is timed on it; restart the "
                                  "program"
                                : "this scope is not timed; check the CUDA calls before it");
    if (gone) {
        error.code = ErrorCode::unavailable;
        const std::lock_guard lock(status_mutex_);
        if (status_.ok()) {
            status_ = error;
        }
        lost_.store(true, std::memory_order_release);
    }
    return error;
}

Result<Event> Timeline::acquire() noexcept {
    for (int attempt = 0; attempt < 2; ++attempt) {
        {
            const std::lock_guard lock(pool_mutex_);
            if (!pool_.empty()) {
                const Event event = pool_.back();
                pool_.pop_back();
                pooled_.store(pool_.size(), std::memory_order_relaxed);
                return event;
            }
        }
        if (Status grown = grow(chunk); !grown) {
            return grown.error();
        }
    }
    return Error{ErrorCode::out_of_memory, "other threads took every new timing event; try again"};
}

void Timeline::release(Event event) noexcept {
    const std::lock_guard lock(pool_mutex_);
    pool_.push_back(event); // never grows: grow() made room for every event there is
    pooled_.store(pool_.size(), std::memory_order_relaxed);
}

Status Timeline::reserve(std::size_t count) noexcept {
    while (pooled_.load(std::memory_order_relaxed) < count) {
        if (Status grown = grow(chunk); !grown) {
            return grown;
        }
    }
    return {};
}

Status Timeline::grow(std::size_t count) noexcept {
    if (lost()) {
        return status();
    }
    if (event_count_.fetch_add(count, std::memory_order_relaxed) + count > max_events) {
        event_count_.fetch_sub(count, std::memory_order_relaxed);
        return Error{ErrorCode::out_of_memory, "this CUDA context has " + std::to_string(max_events) +
                                                   " timing events of ours; collect or cancel some scopes first"};
    }
    const Guard guard(*this);
    std::array<Event, chunk> made{};
    std::size_t done = 0;
    Status status = guard.status();
    while (status && done < count) {
        const CuResult created = driver_.event_create(&made[done], event_default);
        if (created != CuResult::success) {
            status = failed(created, "cuEventCreate");
        } else {
            ++done;
        }
    }
    event_count_.fetch_sub(count - done, std::memory_order_relaxed);
    const std::lock_guard lock(pool_mutex_);
    pool_.reserve(event_count_.load(std::memory_order_relaxed));
    pool_.insert(pool_.end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(done));
    pooled_.store(pool_.size(), std::memory_order_relaxed);
    return status;
}

Result<bool> Timeline::reached(Event event) noexcept {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status().error();
    }
    const CuResult asked = driver_.event_query(event);
    if (asked == CuResult::success || asked == CuResult::not_ready) {
        return asked == CuResult::success;
    }
    return failed(asked, "cuEventQuery");
}

// The caller holds a Guard.
Result<double> Timeline::elapsed(Event a, Event b) noexcept {
    float ms = 0;
    const CuResult asked = driver_.elapsed(&ms, a, b);
    if (asked == CuResult::not_ready) {
        return pending("the device has not finished this scope; ask later");
    }
    if (asked != CuResult::success) {
        return failed(asked, "cuEventElapsedTime");
    }
    const double ns = static_cast<double>(ms) * 1e6;
    tick_.add(ns);
    return tick_.on_grid(ns);
}

Result<double> Timeline::between(Event a, Event b) noexcept {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    return guard.status() ? elapsed(a, b) : Result<double>(guard.status().error());
}

Result<EventSpan> Timeline::span(Event begin, Event end) noexcept {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status().error();
    }
    if (const CuResult asked = driver_.event_query(end); asked != CuResult::success) {
        return asked == CuResult::not_ready ? pending("the device has not finished this scope; ask later")
                                            : failed(asked, "cuEventQuery");
    }
    const Result<double> length = elapsed(begin, end);
    if (!length) {
        return length.error();
    }
    const std::lock_guard lock(anchor_mutex_);
    const Result<double> at = from_base(begin);
    if (!at) {
        return at.error();
    }
    const std::uint64_t ticks = ticks_at(*at);
    return EventSpan{ticks, *length, line_.place(ticks).value_or(HostPlace{0, INFINITY})};
}

Status Timeline::wait(Event event) noexcept {
    if (lost()) {
        return status();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status();
    }
    const CuResult waited = driver_.event_synchronize(event);
    return waited == CuResult::success ? Status() : Status(failed(waited, "cuEventSynchronize"));
}

// The caller holds a Guard. The number of polls is bounded too: an injected clock may stand still.
Status Timeline::wait_short(Event event, std::int64_t limit_ns) noexcept {
    const std::int64_t end = now_ns() + limit_ns;
    for (std::int64_t polls = 0; polls < limit_ns; ++polls) {
        const CuResult asked = driver_.event_query(event);
        if (asked == CuResult::success) {
            return {};
        }
        if (asked != CuResult::not_ready) {
            return failed(asked, "cuEventQuery");
        }
        if (now_ns() > end) {
            break;
        }
    }
    return pending("the device did not answer in time; ask again when it is less busy");
}

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
    unresolved_.push_back(*event);
    if (unresolved_.size() > most_anchors) { // the device stands still: the older ones say less
        release(unresolved_.front());
        unresolved_.pop_front();
    }
    return {};
}

Result<double> Timeline::from_base(Event event) noexcept {
    resolve_anchors();
    const Result<double> first = elapsed(anchors_.back().event, event);
    if (!first || std::abs(*first) < near_ns) {
        return first ? Result<double>(anchors_.back().at + *first) : first;
    }
    const double about = anchors_.back().at + *first;
    const auto nearer = [&](const Anchor& a, const Anchor& b) { return std::abs(a.at - about) < std::abs(b.at - about); };
    const Anchor& nearest = *std::min_element(anchors_.begin(), anchors_.end(), nearer);
    const Result<double> second = elapsed(nearest.event, event);
    return second ? Result<double>(nearest.at + *second) : second;
}

Result<std::uint64_t> Timeline::place(Event event) noexcept {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status().error();
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
    if (now < due.load(std::memory_order_relaxed) || lost()) {
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
    next_anchor_ns_.store(now + anchor_gap_ns, std::memory_order_relaxed);
    if (may_spin) {
        pair_gap_ns_ = std::min(2 * pair_gap_ns_, anchor_gap_ns);
        next_pair_ns_.store(now + pair_gap_ns_, std::memory_order_relaxed);
        static_cast<void>(read_pair());
    } else {
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
    Result<DeviceClockPair> best = pending("no try yet");
    double best_at = 0;
    for (int attempt = 0; attempt < pair_tries; ++attempt) {
        Result<DeviceClockPair> pair = try_pair(*event);
        const Result<double> at = pair ? from_base(*event) : Result<double>(pair.error());
        if (!at) {
            // A device that is too busy for a second answer has given a first; any other error is told.
            best = best && at.error().code == ErrorCode::pending ? best : Result<DeviceClockPair>(at.error());
            break;
        }
        pair->ticks = ticks_at(*at);
        if (!best || pair->uncertainty_ticks < best->uncertainty_ticks) {
            best = *pair;
        }
        best_at = *at;
    }
    if (!best) {
        release(*event);
        return best;
    }
    line_.add(*best);
    if (best_at - anchors_.back().at > static_cast<double>(anchor_gap_ns) / 2.0) {
        put_anchor(*event, best_at);
    } else {
        release(*event);
    }
    return best;
}

Result<DeviceClockPair> Timeline::clock_pair() noexcept {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status().error();
    }
    const std::lock_guard lock(anchor_mutex_);
    return read_pair();
}

Result<HostPlace> Timeline::to_host(std::uint64_t ticks) noexcept {
    const std::lock_guard lock(anchor_mutex_);
    const std::optional<HostPlace> place = line_.place(ticks);
    return place ? Result<HostPlace>(*place) : Result<HostPlace>(pending("no clock pair was read yet; ask later"));
}

// --- Empty pairs ---

// Every event is compared with its neighbour, and for the tick also with the first: many multiples of it.
Result<std::vector<double>> Timeline::empty_pairs(std::size_t count, bool learn) {
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
        status = wait_short(events.back(), floor_limit_ns);
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

Result<double> Timeline::floor_ns() {
    if (lost()) {
        return status().error();
    }
    const Guard guard(*this);
    if (!guard.status()) {
        return guard.status().error();
    }
    Result<std::vector<double>> pairs = empty_pairs(65, false);
    if (!pairs) {
        return pairs.error();
    }
    std::nth_element(pairs->begin(), pairs->begin() + 32, pairs->end());
    return (*pairs)[32];
}

} // namespace plumb::backends::cuda

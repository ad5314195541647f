// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/capture_watch.hpp"
#include "backends/cuda/timeline_guard.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

namespace plumb::backends::cuda {
namespace {

constexpr std::size_t chunk = 64;
constexpr std::int64_t open_limit_ns = 2'000'000; // the thread that opens may be the engine's

Error pending(const char* what) { return {ErrorCode::pending, what}; }

} // namespace

Timeline::Timeline(const Driver& driver, Context context, TimedDevice device, const HostClock* host_clock)
    : driver_(driver), context_(context), host_clock_(clock::host_clock(host_clock)), device_(std::move(device)) {}

Result<std::shared_ptr<Timeline>> Timeline::create(const Driver& driver, Context context, TimedDevice device,
                                                   const HostClock* host_clock) {
    std::shared_ptr<Timeline> timeline(new Timeline(driver, context, std::move(device), host_clock));
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
    if (const CuResult made = driver_.create_own_stream(&stream_); made != CuResult::success) {
        stream_ = nullptr;
        return failed(made, "cuStreamCreateWithPriority");
    }
    const Result<bool> base = open_base();
    if (!base || !*base) {
        return base ? Status() : Status(base.error());
    }
    const std::lock_guard lock(anchor_mutex_);
    if (Status learnt = learn_tick(open_limit_ns); !learnt) {
        return learnt;
    }
    const Result<DeviceClockPair> pair = read_pair();
    if (!pair && pair.error().code == ErrorCode::pending) {
        next_pair_ns_.store(0, std::memory_order_relaxed); // the next tend() reads it
        return {};
    }
    return pair ? Status() : Status(pair.error());
}

// Ticks start at the common clock's nanoseconds: a later timeline of this device goes on near where this one was.
// False: the device is busy. The base is reached some time, and until then every place is pending; the first tend()
// reads the pair and learns the tick.
Result<bool> Timeline::open_base() {
    const Result<Event> base = acquire();
    if (!base) {
        return base.error();
    }
    const std::int64_t before = now_ns();
    if (const CuResult recorded = driver_.event_record(*base, stream_); recorded != CuResult::success) {
        release(*base);
        return failed(recorded, "cuEventRecord");
    }
    const Status reached = wait_short(*base, open_limit_ns);
    if (!reached && reached.error().code != ErrorCode::pending) {
        release(*base);
        return reached.error();
    }
    const std::int64_t after = now_ns();
    base_ticks_ = static_cast<std::uint64_t>(before + (after - before) / 2);
    const std::lock_guard lock(anchor_mutex_);
    put_anchor(*base, 0.0);
    next_anchor_ns_.store(after + anchor_gap_ns, std::memory_order_relaxed);
    next_pair_ns_.store(reached ? after + pair_gap_ns_ : 0, std::memory_order_relaxed);
    return reached.ok();
}

Timeline::~Timeline() {
    std::optional<Guard> guard;
    if (lost() || !guard.emplace(*this).status()) {
        return; // the driver took everything with the context
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

Status Timeline::askable() noexcept {
    if (lost()) {
        return status();
    }
    const WatchAnswer watched = anything_captures(driver_, now_ns());
    if (watched.failed != CuResult::success) {
        return failed(watched.failed, "cuStreamIsCapturing");
    }
    return watched.captures
               ? Status(pending("on this driver a question about an event breaks captures; ask after the capture"))
               : Status();
}

Status Timeline::ask(std::optional<Guard>& guard) noexcept {
    const Status can = askable();
    return can ? guard.emplace(*this).status() : can;
}

Error Timeline::failed(CuResult result, const char* call) noexcept {
    const bool gone = driver_.vendor->is_sticky(result);
    const bool ended = result == CuResult::context_is_destroyed;
    const std::string api = driver_.vendor->api;
    Error error = error_of(
        driver_, result, call,
        !gone   ? "this scope is not timed; check the " + api + " calls before it"
        : ended ? "this " + api + " context has ended; streams and graphs of a new one are timed"
                : "this " + api + " context cannot be used any more, so nothing is timed on it; restart the program");
    if (gone) {
        error.code = ErrorCode::unavailable;
        const std::lock_guard lock(status_mutex_);
        if (status_.ok()) {
            status_ = error;
            ended_ = ended;
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
        return Error{ErrorCode::out_of_memory, std::string("this ") + driver_.vendor->api + " context has " +
                                                   std::to_string(max_events) +
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
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can.error();
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
    std::optional<Guard> guard;
    const Status can = ask(guard);
    return can ? elapsed(a, b) : Result<double>(can.error());
}

Result<EventSpan> Timeline::span(Event begin, Event end) noexcept {
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can.error();
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
    std::optional<Guard> guard;
    if (Status can = ask(guard); !can) {
        return can;
    }
    const CuResult waited = driver_.event_synchronize(event);
    return waited == CuResult::success ? Status() : Status(failed(waited, "cuEventSynchronize"));
}

Status Timeline::wait_for(Event event, std::int64_t limit_ns) noexcept {
    const Guard guard(*this);
    return guard.status() ? wait_short(event, limit_ns) : guard.status();
}

// The caller holds a Guard. The number of polls is bounded too: an injected clock may stand still.
Status Timeline::wait_short(Event event, std::int64_t limit_ns) noexcept {
    const std::int64_t end = now_ns() + limit_ns;
    for (std::int64_t polls = 0; polls < limit_ns; ++polls) {
        if (Status can = askable(); !can) {
            return can; // a capture may begin while we poll
        }
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

} // namespace plumb::backends::cuda

// SPDX-License-Identifier: Apache-2.0
// Timing for generic code: code templated on a backend type B measures with BackendTimer<B> or a probe, whatever B is.
// B says where its queues are timed by BackendTraits<B>. Owned by the caller, movable between threads, used by one at a
// time. Nothing here waits for a device, except where the queue's timer is `immediate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "plumb/backend.hpp"
#include "plumb/bricks.hpp"
#include "plumb/record.hpp"

namespace plumb {

/// Where contexts of backend B are timed. Specialise it for an engine's own backend types, or give B a type Context and
/// a function `static QueueTimer* queue_timer(Context&)` (null: cannot be timed).
template <class B>
struct BackendTraits {
    using Context = typename B::Context;
    static QueueTimer* queue_timer(Context& context) { return B::queue_timer(context); }
};

/// The host's CPU as such a backend: work is done by the thread that calls.
struct PLUMB_API Cpu {
    struct Context {
        std::unique_ptr<QueueTimer> timer;
    };
    static Result<Context> make_context(const TimerOptions& options = {});
    static QueueTimer* queue_timer(Context& context) { return context.timer.get(); }

    /// For work of one thread at a time that is made slower by timing it: scopes on this queue are timed in one step out of
    /// device.every, and those steps are apart from the others. Each call makes one, which lives as long as the process.
    [[nodiscard]] static Result<Queue> sampled_queue(std::string name);
};

/// Times one stretch of work at a time, as often as wanted. Must not outlive its context.
template <class B>
class BackendTimer {
  public:
    using Context = typename BackendTraits<B>::Context;

    explicit BackendTimer(Context& context) : timer_(BackendTraits<B>::queue_timer(context)) {}
    BackendTimer(BackendTimer&& other) noexcept
        : timer_(other.timer_), token_(other.token_), state_(std::exchange(other.state_, State::never)),
          span_(other.span_) {}
    BackendTimer& operator=(BackendTimer&& other) noexcept {
        std::swap(timer_, other.timer_);
        std::swap(token_, other.token_);
        std::swap(state_, other.state_);
        std::swap(span_, other.span_);
        return *this;
    }
    BackendTimer(const BackendTimer&) = delete;
    BackendTimer& operator=(const BackendTimer&) = delete;
    ~BackendTimer() { give_up(); }

    /// Begins; what was measured before and not asked for is forgotten.
    Status record_start() noexcept {
        give_up();
        if (timer_ == nullptr) {
            return Error{ErrorCode::unsupported, "this context has no queue timer; make one for its queue first"};
        }
        Result<DeviceToken> token = timer_->begin();
        if (!token) {
            return token.error();
        }
        token_ = *token;
        state_ = State::started;
        return {};
    }

    Status record_end() noexcept {
        if (state_ != State::started) {
            return not_started();
        }
        Status ended = timer_->end(token_);
        if (!ended) {
            give_up();
            return ended;
        }
        state_ = State::ended;
        return timer_->immediate() ? timer_->wait(token_) : Status();
    }

    /// Error pending while the device has not finished: ask later. Never 0 for "not measured".
    Result<Elapsed> elapsed() {
        Result<DeviceSpan> times = span();
        return times ? timer_->duration(*times) : Result<Elapsed>(times.error());
    }

    /// The same in ticks of the queue's clock.
    Result<DeviceSpan> span() {
        if (state_ == State::never) {
            return not_started();
        }
        if (state_ == State::started) {
            return Error{ErrorCode::invalid_argument,
                         "this timer still runs; call record_end() before you ask for its time"};
        }
        if (state_ == State::ended) {
            Result<DeviceSpan> times = timer_->collect(token_);
            if (!times) {
                if (times.error().code != ErrorCode::pending) {
                    state_ = State::never;
                }
                return times;
            }
            span_ = *times;
            state_ = State::collected;
        }
        return span_;
    }

    /// The ended scope's token, for whoever collects it from here on; this timer forgets it. Empty when there is none.
    std::optional<DeviceToken> release() noexcept {
        if (state_ != State::ended) {
            return std::nullopt;
        }
        state_ = State::never;
        return token_;
    }

    [[nodiscard]] QueueTimer* queue_timer() const noexcept { return timer_; }

  private:
    enum class State : std::uint8_t { never, started, ended, collected };

    static Error not_started() {
        return {ErrorCode::invalid_argument,
                "this timer was never started; call record_start() and record_end() first"};
    }
    void give_up() noexcept {
        if (state_ == State::started || state_ == State::ended) {
            timer_->cancel(token_);
        }
        state_ = State::never;
    }

    QueueTimer* timer_;
    DeviceToken token_;
    State state_ = State::never;
    DeviceSpan span_;
};

/// A started timer, or nothing at all when off: then neither clock nor device is touched.
template <class B>
using Probe = std::optional<BackendTimer<B>>;

template <class B>
[[nodiscard]] Probe<B> probe(bool enabled, typename BackendTraits<B>::Context& context) {
    if (!enabled) {
        return std::nullopt;
    }
    Probe<B> started(std::in_place, context);
    // A refused begin shows at the end: the timer was never started.
    static_cast<void>(started->record_start().ok());
    return started;
}

/// Ends a probe without waiting; its time is had later from probe->elapsed(). Of an empty probe: nothing, successfully.
template <class B>
Status finish(std::optional<BackendTimer<B>>& probe) noexcept {
    return probe ? probe->record_end() : Status();
}

/// Ends a probe and hands its time to the recording, where it arrives when the device has finished: the probe is empty
/// afterwards. `track` is the device's queue (Profiler::add_queue of the same timer); for a backend whose clock is the
/// host's it may be plumb::host. `recorder` is a Profiler, or anything with intern, record_span and record_device.
template <class RecorderType, class B>
Status finish_traced(RecorderType& recorder, std::optional<BackendTimer<B>>& probe, std::string_view name,
                     Category category, Queue track) {
    if (!probe) {
        return {};
    }
    std::optional<BackendTimer<B>> ended = std::exchange(probe, std::nullopt);
    if (Status status = ended->record_end(); !status) {
        return status;
    }
    QueueTimer* const timer = ended->queue_timer();
    if (track.timer == nullptr && timer->clock_is_host()) {
        Result<DeviceSpan> span = ended->span();
        if (!span) {
            return span.error();
        }
        recorder.record_span(recorder.intern(name, category), Timestamp{span->begin_ticks}, Timestamp{span->end_ticks});
        return {};
    }
    if (track.timer != timer) {
        return Error{ErrorCode::invalid_argument,
                     "the track does not belong to the probe's queue; give the Queue made by add_queue() of its timer"};
    }
    recorder.record_device(recorder.intern(name, category), track, *ended->release());
    return {};
}

} // namespace plumb

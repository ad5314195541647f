// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/queue_timer.hpp"

#include <algorithm>
#include <utility>

namespace plumb::backends::opencl {

OpenClQueueTimer::OpenClQueueTimer(const OpenClDriver& driver, CommandQueue queue, bool out_of_order, bool immediate)
    : driver_(driver), queue_(queue), out_of_order_(out_of_order), immediate_(immediate), stamper_(driver, queue) {}

Result<std::unique_ptr<OpenClQueueTimer>> OpenClQueueTimer::create(const OpenClDriver& driver, CommandQueue queue,
                                                                   const TimerOptions& options) {
    if (queue == nullptr) {
        return Error{ErrorCode::invalid_argument, "this OpenCL command queue is null; give one that exists"};
    }
    const Result<Bits> properties = queue_value<Bits>(driver, queue, queue_properties);
    const Result<Context> context =
        properties ? queue_value<Context>(driver, queue, queue_context) : properties.error();
    const Result<DeviceId> device = context ? queue_value<DeviceId>(driver, queue, queue_device) : context.error();
    if (!device) {
        return device.error();
    }
    if ((*properties & queue_profiling) == 0) {
        return Error{ErrorCode::unsupported, "profiling is off for this OpenCL queue, and only its maker can switch it "
                                             "on; create it with CL_QUEUE_PROFILING_ENABLE"};
    }
    if (const ClResult kept = driver.retain_command_queue(queue); kept != ClResult::success) {
        return error_of(kept, "clRetainCommandQueue", "give a command queue that exists");
    }
    std::unique_ptr<OpenClQueueTimer> timer(
        new OpenClQueueTimer(driver, queue, (*properties & queue_out_of_order) != 0, options.immediate));
    Result<std::unique_ptr<OpenClTimeline>> timeline =
        OpenClTimeline::create(driver, *context, *device, options.host_clock);
    if (!timeline) {
        return timeline.error();
    }
    timer->timeline_ = std::move(*timeline);
    auto scopes = StampedScopes<Stamper>::create(timer->stamper_, options.max_in_flight);
    if (!scopes) {
        return scopes.error();
    }
    timer->scopes_ = std::move(*scopes);
    return timer;
}

OpenClQueueTimer::~OpenClQueueTimer() {
    if (scopes_ != nullptr) {
        scopes_->drop_all();
    }
    timeline_.reset(); // its queue lives in the context that ours keeps alive
    static_cast<void>(driver_.release_command_queue(queue_));
}

// --- Scopes ---

Status OpenClQueueTimer::Stamper::take(Stamp& stamp) noexcept {
    stamp.is_command = false;
    const ClResult made = driver_.enqueue_marker(queue_, 0, nullptr, &stamp.event);
    if (made != ClResult::success) {
        stamp.event = nullptr;
        return error_of(made, "clEnqueueMarkerWithWaitList",
                        "this scope is not timed; check the OpenCL calls before it");
    }
    return {};
}

void OpenClQueueTimer::Stamper::drop(Stamp& stamp) noexcept {
    if (stamp.event != nullptr) {
        static_cast<void>(driver_.release_event(std::exchange(stamp.event, nullptr)));
    }
}

Status OpenClQueueTimer::in_order() const noexcept {
    return out_of_order_ ? Status(Error{ErrorCode::unsupported,
                                        "on an out-of-order queue a marker waits for everything before it, so that "
                                        "scopes cannot be timed there; attach() the events of your commands"})
                         : Status();
}

Result<DeviceToken> OpenClQueueTimer::begin() noexcept {
    const Status can = in_order();
    return can ? scopes_->begin() : Result<DeviceToken>(can.error());
}

Result<DeviceToken> OpenClQueueTimer::begin_labelled(const ScopeLabel& label) noexcept {
    return label.timed ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
}

Status OpenClQueueTimer::end_labelled(DeviceToken token, const Work*) noexcept {
    return token.value == token_not_timed ? Status() : end(token);
}

Result<DeviceToken> OpenClQueueTimer::lap(DeviceToken ended, const Work*, const ScopeLabel& next) noexcept {
    const Status can = in_order();
    return can ? scopes_->lap(ended, next.timed) : Result<DeviceToken>(can.error());
}

Result<DeviceToken> OpenClQueueTimer::attach(void* event) noexcept {
    Stamp stamp{static_cast<Event>(event), true};
    CommandQueue its_queue = nullptr;
    const ClResult asked =
        driver_.get_event_info(stamp.event, event_command_queue, sizeof its_queue, &its_queue, nullptr);
    if (asked != ClResult::success) {
        return error_of(asked, "clGetEventInfo", "give the event of a command that was enqueued");
    }
    if (its_queue != queue_) {
        return Error{ErrorCode::invalid_argument,
                     "this event belongs to another queue; attach it to that queue's timer"};
    }
    if (const ClResult kept = driver_.retain_event(stamp.event); kept != ClResult::success) {
        return error_of(kept, "clRetainEvent", "give the event of a command that was enqueued");
    }
    Result<DeviceToken> token = scopes_->adopt(stamp);
    if (!token) {
        stamper_.drop(stamp);
    }
    return token;
}

// --- Times ---

Result<DeviceSpan> OpenClQueueTimer::read_command(Event event) const noexcept {
    const Result<CommandTimes> times = timeline_->times(event);
    if (!times) {
        return times.error();
    }
    return DeviceSpan{times->started, times->ended, out_of_order_ ? span_may_overlap : 0, times->queued,
                      times->submitted};
}

// A marker of an in-order queue has ended when everything before it has: from one end to the other lies the scope.
Result<DeviceSpan> OpenClQueueTimer::read_span(const Stamp& begin, const Stamp& end) const noexcept {
    if (begin.is_command) {
        return read_command(begin.event);
    }
    const Result<CommandTimes> last = timeline_->times(end.event);
    const Result<CommandTimes> first = last ? timeline_->times(begin.event) : last;
    if (!first) {
        return first.error();
    }
    if (last->ended < first->ended) {
        return Error{ErrorCode::corrupt,
                     "the device's stamps say that this scope ended before it began; see whether this "
                     "queue runs in order, and report this driver"};
    }
    DeviceSpan span{first->ended, last->ended, 0, first->queued, first->submitted};
    // The device reached the begin before the host had enqueued everything: it may have waited for that inside.
    if (first->ended <= last->queued) {
        span.flags |= span_includes_launch_wait;
    }
    return span;
}

Result<DeviceSpan> OpenClQueueTimer::collect(DeviceToken token) noexcept {
    Result<DeviceSpan> span =
        scopes_->collect(token, [this](const Stamp& begin, const Stamp& end) { return read_span(begin, end); });
    if (span && span->end_ticks - span->begin_ticks < timeline_->resolution_ns()) {
        span->flags |= span_below_floor;
    }
    return span;
}

Status OpenClQueueTimer::wait(DeviceToken token) noexcept {
    if (token.value == token_not_timed) {
        return {};
    }
    Event end = nullptr;
    ClResult done = ClResult::success;
    const Status ended = scopes_->look_at_end(token, [&](const Stamp& stamp) {
        done = driver_.retain_event(stamp.event); // whoever collects meanwhile gives up the token's own reference
        end = stamp.event;
    });
    if (!ended) {
        return ended;
    }
    const char* call = "clRetainEvent";
    if (done == ClResult::success) {
        call = "clFlush";
        done = driver_.flush(queue_);
        if (done == ClResult::success) {
            call = "clWaitForEvents";
            done = driver_.wait_for_events(1, &end);
        }
        static_cast<void>(driver_.release_event(end));
    }
    return done == ClResult::success ? Status()
                                     : error_of(done, call,
                                                "this scope was not waited for; check the OpenCL calls before "
                                                "it");
}

Result<Elapsed> OpenClQueueTimer::duration(const DeviceSpan& span) {
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt, "this span ends before it begins; its stamps cannot be used"};
    }
    const auto ns = static_cast<double>(span.end_ticks - span.begin_ticks);
    // A device's nanosecond differs from the host's by some parts in 10^5.
    return Elapsed{ns, static_cast<double>(timeline_->resolution_ns()) + ns * 1e-4};
}

} // namespace plumb::backends::opencl

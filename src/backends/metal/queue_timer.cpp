// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/queue_timer.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace plumb::backends::metal {
namespace {

/// Command buffers that nobody waits for any more and that the device has not finished, at most.
constexpr std::uint32_t spare_notes = 1'024;

Result<DeviceSpan> read_span(const BufferStamper::Stamp& begin, const BufferStamper::Stamp& end) noexcept {
    const Completion &first = *begin.marker.done, &last = *end.marker.done;
    const Status done = last.look();
    const Status begun = done ? first.look() : done;
    if (!begun) {
        return begun.error();
    }
    if (begin.is_buffer) { // neighbours on one queue may overlap: only their union is busy time
        return DeviceSpan{first.begin_ns(), first.end_ns(), span_may_overlap, begin.marker.queued_ns};
    }
    if (last.end_ns() < first.end_ns()) {
        return Error{ErrorCode::corrupt, "a marker ended before one that was committed earlier, so that this scope has "
                                         "no time; report this system"};
    }
    // The device had reached the begin before the host committed the end: it may have waited for the host inside.
    const std::uint32_t flags = first.end_ns() <= end.marker.queued_ns ? span_includes_launch_wait : 0;
    return DeviceSpan{first.end_ns(), last.end_ns(), flags, begin.marker.queued_ns};
}

} // namespace

Status BufferStamper::take(Stamp& stamp) noexcept {
    const Result<Marker> marker = markers_->commit();
    if (!marker) {
        return marker.error();
    }
    stamp = {*marker, false};
    return {};
}

void BufferStamper::drop(Stamp& stamp) noexcept { markers_->drop(stamp.marker); }

Result<std::unique_ptr<MetalQueueTimer>> MetalQueueTimer::create(const MetalDriver& driver, Id queue,
                                                                 const TimerOptions& options) {
    if (queue == nullptr) {
        return Error{ErrorCode::invalid_argument, "this MTLCommandQueue is null; give one that exists"};
    }
    std::unique_ptr<MetalQueueTimer> timer(new MetalQueueTimer(driver, queue, options.immediate));
    const Status opened = timer->open(options);
    return opened ? Result<std::unique_ptr<MetalQueueTimer>>(std::move(timer)) : opened.error();
}

Status MetalQueueTimer::open(const TimerOptions& options) {
    const AutoreleasePool pool(driver_);
    const Id device = driver_.object(queue_.get(), driver_.words.device);
    if (device == nullptr) {
        return Error{ErrorCode::invalid_argument, "device: this queue has none; give an MTLCommandQueue that exists"};
    }
    if (const Status made = make_scopes(stamper_, options.max_in_flight); !made) {
        return made;
    }
    auto completions = Completions::create(
        driver_, std::min(2 * options.max_in_flight + spare_notes, TokenPool<Completion>::max_capacity));
    if (!completions) {
        return completions.error();
    }
    completions_ = std::move(*completions);
    auto timeline = MetalTimeline::create(driver_, device, *completions_, options.host_clock);
    if (!timeline) {
        return timeline.error();
    }
    timeline_ = std::move(*timeline);
    auto markers = Markers::create(driver_, queue_.get(), most_markers, *completions_);
    if (!markers) {
        return markers.error();
    }
    markers_ = std::move(*markers);
    stamper_.mark_with(markers_.get());
    return {};
}

MetalQueueTimer::~MetalQueueTimer() { drop_scopes(); }

Result<DeviceToken> MetalQueueTimer::begin() noexcept {
    const Status room = markers_->room_to_begin();
    return room ? StampedTimer::begin() : Result<DeviceToken>(room.error());
}

Result<DeviceToken> MetalQueueTimer::attach(void* command_buffer) noexcept {
    const Result<std::uint64_t> now = uptime_ns(driver_);
    const Result<Completion*> note = now ? completions_->watch(command_buffer) : now.error();
    if (!note) {
        return note.error();
    }
    BufferStamper::Stamp stamp{{*note, nullptr, *now}, true};
    const Result<DeviceToken> token = scopes_->adopt(stamp);
    if (!token) {
        stamper_.drop(stamp);
    }
    return token;
}

Result<DeviceSpan> MetalQueueTimer::collect(DeviceToken token) noexcept { return scopes_->collect(token, read_span); }

Status MetalQueueTimer::wait(DeviceToken token) noexcept {
    if (token.value == token_not_timed) {
        return {};
    }
    Held end; // whoever collects meanwhile gives up the token's own reference
    const Status ended = scopes_->look_at_end(
        token, [&](const BufferStamper::Stamp& stamp) { end = Held::retained(driver_, stamp.marker.buffer); });
    if (ended && end.get() == nullptr) {
        return Error{ErrorCode::unsupported, "this token is a command buffer of yours, which may not be committed yet; "
                                             "send it waitUntilCompleted after its commit"};
    }
    if (ended) {
        driver_.ask(end.get(), driver_.words.wait_completed);
    }
    return ended;
}

// A command buffer of the caller's may be committed late, or never.
std::uint64_t MetalQueueTimer::group_of(DeviceToken token) noexcept {
    bool is_buffer = false;
    static_cast<void>(
        scopes_->look_at_end(token, [&](const BufferStamper::Stamp& stamp) { is_buffer = stamp.is_buffer; }));
    return is_buffer ? token.value : 0;
}

Result<Elapsed> MetalQueueTimer::duration(const DeviceSpan& span) {
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt, "this span ends before it begins, so that it has no length; see its queue"};
    }
    // Doubles of seconds: their grain at the uptime of the span, twice, and half a nanosecond of rounding twice.
    const double seconds = static_cast<double>(span.end_ticks) * 1e-9;
    const double grain_ns = (std::nextafter(seconds, INFINITY) - seconds) * 1e9;
    return Elapsed{static_cast<double>(span.end_ticks - span.begin_ticks), 2 * grain_ns + 1};
}

std::vector<Capability> MetalQueueTimer::capabilities() const {
    const Figure& cost = timeline_->cost_of_waiting_ns();
    const std::string each =
        cost.value ? std::to_string(std::llround(*cost.value / 1000)) + " us" : "an unknown time (" + cost.reason + ")";
    return {
        {"attach", true, ""},
        {"scopes", true, ""},
        {"scopes_beside_each_other", false,
         "a scope's border is an empty command buffer that waits for what was committed before it and holds back what is "
         "committed after it; attach() your command buffers to disturb nothing"},
        {"free_immediate", false,
         "sync=immediate needs a command buffer of its own for each scope and waits for it: that adds " + each +
             " and more to each scope's wall clock, and nothing overlaps"},
        {"per_dispatch", false, "a command buffer has one begin and one end; see plumb::metal_counters()"},
        {"graph_capture", false, "Metal's queues are not captured into graphs"},
    };
}

} // namespace plumb::backends::metal

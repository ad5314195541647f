// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/queue_timer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cuda/capture_notes.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::uint32_t first_borders = 64;
constexpr std::size_t spare_events = 64;

Error captured(const char* what) { return {ErrorCode::unsupported, what}; }

bool is_note(DeviceToken token) { return (token.value & token_noted) != 0; }

} // namespace

Result<std::unique_ptr<CudaQueueTimer>> CudaQueueTimer::create(const Driver& driver, Stream stream,
                                                               const TimerOptions& options,
                                                               std::unique_ptr<OwnStream> own) {
    Result<std::shared_ptr<Timeline>> timeline = timeline_of(driver, stream, options.host_clock);
    if (!timeline) {
        return timeline.error();
    }
    std::unique_ptr<CudaQueueTimer> timer(new CudaQueueTimer(std::move(*timeline), stream, options, std::move(own)));
    if (Status opened = timer->open(options.max_in_flight); !opened) {
        return opened.error();
    }
    return timer;
}

CudaQueueTimer::CudaQueueTimer(std::shared_ptr<Timeline> timeline, Stream stream, const TimerOptions& options,
                               std::unique_ptr<OwnStream> own)
    : own_(std::move(own)), timeline_(std::move(timeline)), driver_(timeline_->driver()), stream_(stream),
      watched_(driver_, stream), immediate_(options.immediate), stamper_(*this) {}

CudaQueueTimer::~CudaQueueTimer() {
    for (const Event event : events_) {
        timeline_->release(event);
    }
}

Status CudaQueueTimer::open(std::uint32_t max_in_flight) noexcept {
    Result<std::unique_ptr<StampedScopes<Stamper>>> scopes = StampedScopes<Stamper>::create(stamper_, max_in_flight);
    if (!scopes) {
        return scopes.error();
    }
    scopes_ = std::move(*scopes);
    const std::uint32_t count = std::min(2 * max_in_flight, first_borders);
    const Status status = timeline_->reserve(count + 2 * spare_events);
    return status ? scopes_->prepare(count, [this](Stamp& stamp) { return stamper_.make(stamp); }) : status;
}

Status CudaQueueTimer::usable() const noexcept { return timeline_->lost() ? timeline_->status() : Status(); }

template <class Call>
CuResult CudaQueueTimer::on_stream(Call call) const noexcept {
    const CuResult result = call();
    if (result != CuResult::invalid_context) {
        return result;
    }
    const CurrentContext lent(driver_, timeline_->context());
    return lent.status() == CuResult::success ? call() : lent.status();
}

Result<bool> CudaQueueTimer::capturing() noexcept {
    CaptureStatus status = CaptureStatus::none;
    const CuResult asked = on_stream([&] { return driver_.stream_is_capturing(stream_, &status); });
    if (asked == CuResult::stream_capture_implicit) {
        return captured("the legacy stream cannot be timed while another stream is captured; use a stream of your own");
    }
    if (asked != CuResult::success) {
        return timeline_->failed(asked, "cuStreamIsCapturing");
    }
    if (status == CaptureStatus::invalidated) {
        return captured("this stream's capture was invalidated before this scope; end the capture and see its error");
    }
    if (driver_.query_breaks_captures) {
        watched_.seen(status == CaptureStatus::active, clock::now_ns(timeline_->host_clock()).value);
    }
    return status == CaptureStatus::active;
}

Result<bool> CudaQueueTimer::ready() noexcept {
    const Status can = usable();
    return can ? capturing() : Result<bool>(can.error());
}

// --- Scopes ---

Status CudaQueueTimer::Stamper::make(Stamp& stamp) noexcept {
    const Result<Event> event = timer_.timeline_->acquire();
    if (!event) {
        return event.error();
    }
    stamp.event = *event;
    const std::lock_guard lock(timer_.events_mutex_);
    timer_.events_.push_back(*event);
    return {};
}

Status CudaQueueTimer::Stamper::take(Stamp& stamp) noexcept {
    if (stamp.event == nullptr) { // more in flight than ever before
        if (Status made = make(stamp); !made) {
            return made;
        }
    }
    const CuResult recorded =
        timer_.on_stream([&] { return timer_.driver_.event_record(stamp.event, timer_.stream_); });
    if (recorded != CuResult::success) {
        return timer_.timeline_->failed(recorded, "cuEventRecord");
    }
    stamp.taken_ns = clock::now_ns(timer_.timeline_->host_clock()).value;
    return {};
}

Result<DeviceToken> CudaQueueTimer::begin_captured(const ScopeLabel& label) noexcept {
    return driver_.no_graphs.empty() ? note_begin(driver_, stream_, label)
                                     : Result<DeviceToken>(captured(driver_.no_graphs.c_str()));
}

Result<DeviceToken> CudaQueueTimer::begin() noexcept {
    const Result<bool> in_capture = ready();
    if (!in_capture) {
        return in_capture.error();
    }
    return *in_capture ? Result<DeviceToken>(captured("this stream is being captured, where only scopes of a profiler "
                                                      "are noted; use PLUMB_BRICK or Profiler::scope()"))
                       : scopes_->begin();
}

Result<DeviceToken> CudaQueueTimer::begin_labelled(const ScopeLabel& label) noexcept {
    const Result<bool> in_capture = ready();
    if (!in_capture) {
        return in_capture.error();
    }
    if (*in_capture) {
        return begin_captured(label);
    }
    return label.timed ? scopes_->begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
}

Status CudaQueueTimer::end(DeviceToken token) noexcept {
    const Result<bool> in_capture = ready();
    if (!in_capture) {
        return in_capture.error();
    }
    return *in_capture ? Status(captured("this scope crosses the border of a capture; begin and end it on the same "
                                         "side"))
                       : scopes_->end(token);
}

Status CudaQueueTimer::end_labelled(DeviceToken token, const Work* work) noexcept {
    if (token.value == token_not_timed) {
        return {};
    }
    if (Status can = usable(); !can) {
        return can;
    }
    return is_note(token) ? note_end(driver_, stream_, token, work) : end(token);
}

Result<DeviceToken> CudaQueueTimer::lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept {
    Result<DeviceToken> begun = Error{};
    const Result<bool> in_capture = ready();
    if (!in_capture) {
        begun = in_capture.error();
    } else if (ended.value == token_not_timed && *in_capture) {
        begun = begin_captured(next);
    } else if (ended.value != token_not_timed && *in_capture != is_note(ended)) {
        begun = captured("this lap crosses the border of a capture; end it before");
    } else {
        begun = *in_capture ? note_lap(driver_, stream_, ended, work, next) : scopes_->lap(ended, next.timed);
    }
    if (!begun) {
        cancel(ended);
    }
    return begun;
}

void CudaQueueTimer::cancel(DeviceToken token) noexcept {
    if (is_note(token)) {
        note_cancel(token);
        return;
    }
    scopes_->cancel(token);
}

// --- Times ---

Result<DeviceSpan> CudaQueueTimer::read_span(const Stamp& begin, const Stamp& end) noexcept {
    timeline_->tend(clock::now_ns(timeline_->host_clock()).value, true);
    const Result<EventSpan> read = timeline_->span(begin.event, end.event);
    if (!read) {
        return read.error();
    }
    const double floor = std::max(1.0, timeline_->tick_ns());
    const bool swapped = read->length_ns < 0;
    const double allowed = driver_.vendor->small_negatives ? std::max(floor, timeline_->empty_pair_ns()) : 0.0;
    if (read->length_ns < -allowed) {
        return Error{ErrorCode::corrupt, "the device's stamps say that this scope ended before it began; see whether "
                                         "its device fell asleep, and report this driver"};
    }
    const auto length = static_cast<std::uint64_t>(swapped ? 0 : std::llround(read->length_ns));
    DeviceSpan span{read->begin_ticks, read->begin_ticks + length, 0};
    if (read->length_ns < floor) {
        span.flags |= span_below_floor;
    }
    // The device reached the begin before the host had enqueued everything: it may have waited for that inside.
    const auto after_submit = static_cast<double>(read->begin_place.monotonic_ns - end.taken_ns);
    if (!(after_submit >= read->begin_place.bound_ns)) {
        span.flags |= span_includes_launch_wait;
    }
    return span;
}

std::vector<Capability> CudaQueueTimer::capabilities() const {
    std::vector<Capability> all = driver_.vendor->capabilities(driver_);
    if (driver_.vendor->doubts_event_nodes) {
        const Status tried = driver_.no_graphs.empty() ? timeline_->event_nodes()
                                                       : Status(Error{ErrorCode::unsupported, driver_.no_graphs});
        all.push_back({"graph_probes", tried.ok(), tried ? "" : tried.error().message});
    }
    return all;
}

Result<DeviceSpan> CudaQueueTimer::collect(DeviceToken token) noexcept {
    Result<DeviceSpan> span =
        scopes_->collect(token, [this](const Stamp& begin, const Stamp& end) { return read_span(begin, end); });
    if (span) { // what begin() would otherwise have to make; without it begin() says why
        static_cast<void>(timeline_->reserve(spare_events));
    }
    return span;
}

Status CudaQueueTimer::wait(DeviceToken token) noexcept {
    if (is_note(token) || token.value == token_not_timed) {
        return {}; // waiting is illegal in a capture: deferred instead, as capabilities() says
    }
    Event end = nullptr;
    const Status ended = scopes_->look_at_end(token, [&](const Stamp& stamp) { end = stamp.event; });
    return ended ? timeline_->wait(end) : ended;
}

Result<Elapsed> CudaQueueTimer::duration(const DeviceSpan& span) {
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt, "this span ends before it begins; its stamps cannot be used"};
    }
    const auto ns = static_cast<double>(span.end_ticks - span.begin_ticks);
    // A device's nanosecond differs from the host's by some parts in 10^5.
    return Elapsed{ns, std::max(1.0, timeline_->tick_ns()) + ns * 1e-4};
}

} // namespace plumb::backends::cuda

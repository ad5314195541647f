// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/queue_timer.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "backends/cuda/capture_notes.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::uint32_t most_in_flight = (1u << 23) - 1; // twice as many borders still fit a token
constexpr std::uint32_t first_borders = 64;
constexpr std::size_t spare_events = 64;

Error not_in_flight(TokenState found) {
    if (found == TokenState::ended) {
        return {ErrorCode::not_found, "this scope was ended before; end each token once"};
    }
    return {ErrorCode::not_found, "this token is not in flight here; use a token of this timer's begin(), once"};
}

Error captured(const char* what) { return {ErrorCode::unsupported, what}; }

bool is_note(DeviceToken token) { return (token.value & token_noted) != 0; }

} // namespace

Result<std::unique_ptr<CudaQueueTimer>> CudaQueueTimer::create(const Driver& driver, Stream stream,
                                                               const TimerOptions& options,
                                                               std::unique_ptr<OwnStream> own) {
    if (options.max_in_flight == 0 || options.max_in_flight > most_in_flight) {
        return Error{ErrorCode::invalid_argument, "max_in_flight is " + std::to_string(options.max_in_flight) +
                                                      "; give a number from 1 to " + std::to_string(most_in_flight)};
    }
    Result<std::shared_ptr<Timeline>> timeline = timeline_of(driver, stream, options.host_clock);
    if (!timeline) {
        return timeline.error();
    }
    const std::size_t bytes = Scopes::bytes(options.max_in_flight) + Borders::bytes(2 * options.max_in_flight);
    void* memory = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
    if (memory == nullptr) {
        return Error{ErrorCode::out_of_memory, "there is no memory for " + std::to_string(options.max_in_flight) +
                                                   " scopes in flight; lower max_in_flight"};
    }
    std::unique_ptr<CudaQueueTimer> timer(
        new CudaQueueTimer(std::move(*timeline), stream, options, memory, std::move(own)));
    if (Status warm = timer->warm_up(std::min(2 * options.max_in_flight, first_borders)); !warm) {
        return warm.error();
    }
    return timer;
}

CudaQueueTimer::CudaQueueTimer(std::shared_ptr<Timeline> timeline, Stream stream, const TimerOptions& options,
                               void* memory, std::unique_ptr<OwnStream> own)
    : own_(std::move(own)), timeline_(std::move(timeline)), driver_(timeline_->driver()), stream_(stream),
      immediate_(options.immediate), memory_(memory), scopes_(memory, options.max_in_flight),
      borders_(static_cast<char*>(memory) + Scopes::bytes(options.max_in_flight), 2 * options.max_in_flight) {}

CudaQueueTimer::~CudaQueueTimer() {
    for (const Event event : events_) {
        timeline_->release(event);
    }
    ::operator delete (memory_, std::align_val_t{64});
}

Status CudaQueueTimer::warm_up(std::uint32_t count) noexcept {
    std::vector<BorderRef> borders;
    Status status = timeline_->reserve(count + 2 * spare_events);
    while (status && borders.size() < count) {
        BorderRef ref;
        ref.border = borders_.acquire(ref.token);
        borders.push_back(ref);
        const Result<Event> event = timeline_->acquire();
        if (!event) {
            status = event.error();
            break;
        }
        ref.border->event = *event;
        events_.push_back(*event);
    }
    for (const BorderRef& ref : borders) {
        borders_.release(ref.token);
    }
    return status;
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
    return status == CaptureStatus::active;
}

// --- Borders ---

Result<CudaQueueTimer::BorderRef> CudaQueueTimer::record_border() noexcept {
    BorderRef ref;
    ref.border = borders_.acquire(ref.token);
    if (ref.border == nullptr) {
        return Error{ErrorCode::out_of_memory,
                     "too many scopes are in flight on this queue; collect or cancel some first"};
    }
    if (ref.border->event == nullptr) { // more in flight than ever before
        const Result<Event> event = timeline_->acquire();
        if (!event) {
            borders_.release(ref.token);
            return event.error();
        }
        ref.border->event = *event;
        const std::lock_guard lock(events_mutex_);
        events_.push_back(*event);
    }
    ref.border->uses.store(1, std::memory_order_relaxed); // nobody else knows it yet
    const CuResult recorded = on_stream([&] { return driver_.event_record(ref.border->event, stream_); });
    if (recorded != CuResult::success) {
        give_back(ref);
        return timeline_->failed(recorded, "cuEventRecord");
    }
    return ref;
}

void CudaQueueTimer::give_back(BorderRef ref) noexcept {
    // Acquire and release: the last user frees what the others have finished with.
    if (ref.border != nullptr && ref.border->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        borders_.release(ref.token);
    }
}

void CudaQueueTimer::free_scope(DeviceToken token, Scope& scope) noexcept {
    give_back(std::exchange(scope.begin, {}));
    give_back(std::exchange(scope.end, {}));
    scopes_.release(token);
}

Result<DeviceToken> CudaQueueTimer::begin_scope(BorderRef border) noexcept {
    DeviceToken token;
    Scope* scope = scopes_.acquire(token);
    if (scope == nullptr) {
        give_back(border);
        return Error{ErrorCode::out_of_memory,
                     "too many scopes are in flight on this queue; collect or cancel some first"};
    }
    scope->begin = border;
    scope->end = {};
    scopes_.put(token, TokenState::open);
    return token;
}

// --- Scopes ---

Result<DeviceToken> CudaQueueTimer::begin_eager() noexcept {
    DeviceToken token;
    Scope* scope = scopes_.acquire(token); // first: where the bound is met, nothing is recorded
    if (scope == nullptr) {
        return Error{ErrorCode::out_of_memory,
                     "too many scopes are in flight on this queue; collect or cancel some first"};
    }
    const Result<BorderRef> border = record_border();
    if (!border) {
        scopes_.release(token);
        return border.error();
    }
    scope->begin = *border;
    scope->end = {};
    scopes_.put(token, TokenState::open);
    return token;
}

Result<DeviceToken> CudaQueueTimer::begin() noexcept {
    if (Status can = usable(); !can) {
        return can.error();
    }
    const Result<bool> in_capture = capturing();
    if (!in_capture) {
        return in_capture.error();
    }
    return *in_capture ? Result<DeviceToken>(captured("this stream is being captured, where only scopes of a profiler "
                                                      "are noted; use PLUMB_BRICK or Profiler::scope()"))
                       : begin_eager();
}

Result<DeviceToken> CudaQueueTimer::begin_labelled(const ScopeLabel& label) noexcept {
    if (Status can = usable(); !can) {
        return can.error();
    }
    const Result<bool> in_capture = capturing();
    if (!in_capture) {
        return in_capture.error();
    }
    if (*in_capture) {
        return note_begin(driver_, stream_, label);
    }
    return label.timed ? begin_eager() : Result<DeviceToken>(DeviceToken{token_not_timed});
}

Status CudaQueueTimer::end_eager(DeviceToken token) noexcept {
    TokenState found;
    Scope* scope = scopes_.take(token, TokenState::open, found);
    if (scope == nullptr) {
        return not_in_flight(found);
    }
    const Result<BorderRef> border = record_border();
    if (!border) {
        scopes_.put(token, TokenState::open); // the caller may cancel it
        return border.error();
    }
    const std::int64_t now = clock::now_ns(timeline_->host_clock()).value;
    scope->end = *border;
    scope->submitted_ns = now;
    scopes_.put(token, TokenState::ended);
    timeline_->tend(now, false);
    return {};
}

Status CudaQueueTimer::end(DeviceToken token) noexcept {
    if (Status can = usable(); !can) {
        return can;
    }
    const Result<bool> in_capture = capturing();
    if (!in_capture) {
        return in_capture.error();
    }
    return *in_capture ? Status(captured("this scope crosses the border of a capture; begin and end it on the same "
                                         "side"))
                       : end_eager(token);
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
    const Status can = usable();
    const Result<bool> in_capture = can ? capturing() : Result<bool>(can.error());
    if (!in_capture) {
        begun = in_capture.error();
    } else if (ended.value == token_not_timed) {
        begun = *in_capture ? note_begin(driver_, stream_, next)
                            : (next.timed ? begin_eager() : Result<DeviceToken>(DeviceToken{token_not_timed}));
    } else if (*in_capture != is_note(ended)) {
        begun = captured("this lap crosses the border of a capture; end it before");
    } else {
        begun = *in_capture ? note_lap(driver_, stream_, ended, work, next) : lap_eager(ended, next.timed);
    }
    if (!begun) {
        cancel(ended);
    }
    return begun;
}

Result<DeviceToken> CudaQueueTimer::lap_eager(DeviceToken ended, bool next_timed) noexcept {
    if (!next_timed) {
        const Status done = end_eager(ended);
        return done ? Result<DeviceToken>(DeviceToken{token_not_timed}) : Result<DeviceToken>(done.error());
    }
    TokenState found;
    Scope* scope = scopes_.take(ended, TokenState::open, found);
    if (scope == nullptr) {
        return not_in_flight(found);
    }
    const Result<BorderRef> border = record_border();
    if (!border) {
        scopes_.put(ended, TokenState::open);
        return border.error();
    }
    const std::int64_t now = clock::now_ns(timeline_->host_clock()).value;
    border->border->uses.store(2, std::memory_order_relaxed); // before anybody else can know it
    scope->end = *border;
    scope->submitted_ns = now;
    scopes_.put(ended, TokenState::ended);
    timeline_->tend(now, false);
    return begin_scope(*border);
}

void CudaQueueTimer::cancel(DeviceToken token) noexcept {
    if (is_note(token)) {
        note_cancel(token);
        return;
    }
    TokenState found;
    Scope* scope = scopes_.take(token, TokenState::open, found);
    if (scope == nullptr) {
        scope = scopes_.take(token, TokenState::ended, found);
    }
    if (scope != nullptr) {
        free_scope(token, *scope);
    }
}

// --- Times ---

Result<DeviceSpan> CudaQueueTimer::read_span(const Scope& scope) noexcept {
    const Result<EventSpan> read = timeline_->span(scope.begin.border->event, scope.end.border->event);
    if (!read) {
        return read.error();
    }
    if (read->length_ns < 0) {
        return Error{ErrorCode::corrupt, "the device's stamps say that this scope ended before it began; see whether "
                                         "its device fell asleep, and report this driver"};
    }
    const auto length = static_cast<std::uint64_t>(std::llround(read->length_ns));
    DeviceSpan span{read->begin_ticks, read->begin_ticks + length, 0};
    if (read->length_ns < std::max(1.0, timeline_->tick_ns())) {
        span.flags |= span_below_floor;
    }
    // The device reached the begin before the host had enqueued everything: it may have waited for that inside.
    const auto after_submit = static_cast<double>(read->begin_place.monotonic_ns - scope.submitted_ns);
    if (!(after_submit >= read->begin_place.bound_ns)) {
        span.flags |= span_includes_launch_wait;
    }
    return span;
}

Result<DeviceSpan> CudaQueueTimer::collect(DeviceToken token) noexcept {
    TokenState found;
    Scope* scope = scopes_.take(token, TokenState::ended, found);
    if (scope == nullptr && found == TokenState::open) {
        return Error{ErrorCode::pending, "this scope is still open; collect it after its end"};
    }
    if (scope == nullptr) {
        return not_in_flight(TokenState::unknown);
    }
    timeline_->tend(clock::now_ns(timeline_->host_clock()).value, true);
    const Result<DeviceSpan> span = read_span(*scope);
    if (!span && span.error().code == ErrorCode::pending) {
        scopes_.put(token, TokenState::ended);
        return span;
    }
    free_scope(token, *scope);
    // What begin() would otherwise have to make; without it begin() says why.
    static_cast<void>(timeline_->reserve(spare_events));
    return span;
}

Status CudaQueueTimer::wait(DeviceToken token) noexcept {
    if (is_note(token) || token.value == token_not_timed) {
        return {}; // waiting is illegal in a capture: deferred instead, as capabilities() says
    }
    TokenState found;
    Scope* scope = scopes_.take(token, TokenState::ended, found);
    if (scope == nullptr) {
        return found == TokenState::open
                   ? Error{ErrorCode::invalid_argument, "this scope is still open; end it before waiting"}
                   : not_in_flight(TokenState::unknown);
    }
    const Event end = scope->end.border->event;
    scopes_.put(token, TokenState::ended);
    return timeline_->wait(end);
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

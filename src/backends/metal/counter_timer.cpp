// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/counter_timer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::backends::metal {
namespace {

constexpr const char* no_stages = "this device does not sample counters at stage boundaries, so that passes have no "
                                  "times; use plumb::metal()";
constexpr const char* no_dispatches =
    "this device does not sample counters at dispatches (Apple silicon does not); give "
    "each brick an encoder of its own and attach() its pass";

Error unsupported(const char* why) { return {ErrorCode::unsupported, why}; }

} // namespace

PartsVerdict judge_parts(double parts_ns, double buffer_ns) {
    const double distance = std::abs(parts_ns - buffer_ns) / buffer_ns;
    return distance <= 0.05 ? PartsVerdict::fine : distance <= 0.10 ? PartsVerdict::warned : PartsVerdict::flagged;
}

Result<std::unique_ptr<CounterTimer>> CounterTimer::create(const MetalDriver& driver, Id queue,
                                                           const TimerOptions& options) {
    const AutoreleasePool pool(driver);
    const Id device = driver.object(queue, driver.words.device);
    if (device == nullptr) {
        return Error{ErrorCode::invalid_argument,
                     "this MTLCommandQueue is null or has no device; give one that exists"};
    }
    std::unique_ptr<CounterTimer> timer(new CounterTimer(driver, queue, device, options));
    const Status opened = timer->open(device, options);
    return opened ? Result<std::unique_ptr<CounterTimer>>(std::move(timer)) : opened.error();
}

Status CounterTimer::open(Id device, const TimerOptions& options) {
    const Status counters = samples_.find_counters();
    const Status scopes = counters ? make_scopes(stamper_, options.max_in_flight) : counters;
    if (!scopes) {
        return scopes;
    }
    at_stages_ = driver_.yes(device, driver_.words.supports_sampling, at_stage_boundary);
    at_dispatches_ = driver_.yes(device, driver_.words.supports_sampling, at_dispatch_boundary);
    if (!at_stages_ && !at_dispatches_) {
        return unsupported("supportsCounterSampling: this device samples neither at stages nor at dispatches; use "
                           "plumb::metal()");
    }
    auto completions = Completions::create(driver_, options.max_in_flight);
    if (!completions) {
        return completions.error();
    }
    completions_ = std::move(*completions);
    clock_name_ = clock_name_of(driver_, device) + ":counter";
    const auto first = clock_.pair();
    return first ? Status() : Status(first.error());
}

CounterTimer::~CounterTimer() {
    drop_scopes();
    for (Completion* note : {watched_, encoded_}) {
        if (note != nullptr) {
            note->disown();
        }
    }
}

// --- Command buffers ---

// The caller holds the lock and becomes an owner. An address is the same command buffer's as long as that has not ended.
Result<Completion*> CounterTimer::watch(Id command_buffer) noexcept {
    if (watched_ == nullptr || watched_buffer_ != command_buffer || watched_->over()) {
        const Result<Completion*> note = completions_->watch(command_buffer);
        if (!note) {
            return note.error();
        }
        if (Completion* before = std::exchange(watched_, *note); before != nullptr) {
            disown(*before);
        }
        watched_buffer_ = command_buffer;
    }
    watched_->own();
    return watched_;
}

void CounterTimer::forget_what_is_over() noexcept {
    const std::lock_guard lock(mutex_);
    if (watched_ != nullptr && watched_->over()) {
        disown(*std::exchange(watched_, nullptr));
    }
}

void CounterTimer::disown(Completion& note) noexcept {
    note.disown([this](const Completion& last) { judge(last); });
}

void CounterTimer::judge(const Completion& note) noexcept {
    const Result<double> rate = note.has_all_parts() && note.look() ? clock_.ns_per_tick() : unsupported("no parts");
    if (rate && note.end_ns() > note.begin_ns()) {
        const PartsVerdict verdict = judge_parts(static_cast<double>(note.part_ticks()) * *rate,
                                                 static_cast<double>(note.end_ns() - note.begin_ns()));
        judged_[static_cast<std::size_t>(verdict)].fetch_add(1, std::memory_order_relaxed);
    }
}

// --- Scopes ---

Status CounterStamper::take(Stamp& stamp) noexcept {
    const std::lock_guard lock(timer_.mutex_);
    if (timer_.encoder_ == nullptr || timer_.encoded_->over()) {
        return timer_.at_dispatches_ ? unsupported("no compute encoder is open on this queue; call "
                                                   "plumb::metal_encoder() first, or attach() a pass")
                                     : unsupported(no_dispatches);
    }
    const Result<SamplePlace> place = timer_.samples_.take();
    if (!place) {
        return place.error();
    }
    stamp = {timer_.encoded_, *place, false};
    stamp.done->own();
    const MetalDriver& driver = timer_.driver_;
    driver.ask(timer_.encoder_, driver.words.sample_now, place->buffer, place->first,
               1); // with a barrier: see M5's words
    return {};
}

void CounterStamper::drop(Stamp& stamp) noexcept {
    if (stamp.done != nullptr) {
        timer_.samples_.give_back(stamp.place, *stamp.done);
        timer_.disown(*std::exchange(stamp.done, nullptr));
    }
}

Status CounterTimer::use_encoder(Id command_buffer, Id encoder) noexcept {
    if (!at_dispatches_) {
        return unsupported(no_dispatches);
    }
    const std::lock_guard lock(mutex_);
    encoder_ = nullptr;
    if (Completion* before = std::exchange(encoded_, nullptr); before != nullptr) {
        disown(*before);
    }
    if (encoder != nullptr) {
        const Result<Completion*> note = watch(command_buffer);
        if (!note) {
            return note.error();
        }
        encoded_ = *note;
        encoder_ = encoder;
    }
    return {};
}

Result<DeviceToken> CounterTimer::attach(void* given) noexcept {
    const MetalPass pass = given != nullptr ? *static_cast<const MetalPass*>(given) : MetalPass{};
    if (pass.command_buffer == nullptr || pass.descriptor == nullptr) {
        return Error{ErrorCode::invalid_argument, "give a plumb::MetalPass with a command buffer and a descriptor"};
    }
    if (!at_stages_) {
        return unsupported(no_stages);
    }
    const AutoreleasePool pool(driver_);
    const Id attachments = driver_.object(pass.descriptor, driver_.words.attachments);
    const Id attachment = driver_.object(attachments, driver_.words.attachment_at, 0);
    if (!driver_.yes(attachment, driver_.words.responds_to, driver_.words.set_first_sample)) {
        return unsupported("only compute and blit passes are timed by their stages; time a render pass by its command "
                           "buffer");
    }
    const std::lock_guard lock(mutex_);
    const Result<Completion*> note = watch(pass.command_buffer); // first: a place comes back by its note alone
    if (!note) {
        return note.error();
    }
    const Result<SamplePlace> place = samples_.take();
    if (!place) {
        disown(**note);
        return place.error();
    }
    CounterStamper::Stamp stamp{*note, *place, true};
    const Result<DeviceToken> token = scopes_->adopt(stamp);
    if (!token) {
        stamper_.drop(stamp);
        return token;
    }
    (*note)->expect_part();
    driver_.ask(attachment, driver_.words.set_samples, place->buffer);
    driver_.ask(attachment, driver_.words.set_first_sample, place->first);
    driver_.ask(attachment, driver_.words.set_last_sample, place->first + 1);
    return token;
}

// --- Times ---

Result<DeviceSpan> CounterTimer::read_span(const CounterStamper::Stamp& begin,
                                           const CounterStamper::Stamp& end) noexcept {
    const Status ended = end.done->look();
    const Status done = ended ? begin.done->look() : ended;
    if (!done) {
        return done.error();
    }
    const auto first = samples_.read(begin.place, begin.is_pass ? 2 : 1);
    const auto last = first && !begin.is_pass ? samples_.read(end.place, 1) : first;
    if (!last) {
        return last.error();
    }
    const DeviceSpan span{first->first, last->second, first->first == last->second ? span_below_floor : 0};
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt, "the counter ran backwards inside this scope, so that it has no time; report "
                                         "this device"};
    }
    if (begin.is_pass) {
        begin.done->add_part(span.end_ticks - span.begin_ticks);
    }
    return span;
}

Result<DeviceSpan> CounterTimer::collect(DeviceToken token) noexcept {
    Result<DeviceSpan> span =
        scopes_->collect(token, [this](const CounterStamper::Stamp& begin, const CounterStamper::Stamp& end) {
            return read_span(begin, end);
        });
    forget_what_is_over();
    return span;
}

Status CounterTimer::wait(DeviceToken token) noexcept {
    return token.value == token_not_timed
               ? Status()
               : unsupported("counters are read after the end of a whole command buffer, so that no scope in it can be "
                             "waited for; use plumb::metal() with sync=immediate");
}

Result<double> CounterTimer::floor_ns() {
    return unsupported("an empty pass needs a pipeline of the program's own; attach() one to see what it reads");
}

std::vector<Capability> CounterTimer::capabilities() const {
    const std::uint64_t warned = judged_[1].load(std::memory_order_relaxed);
    const std::uint64_t flagged = judged_[2].load(std::memory_order_relaxed);
    const std::uint64_t all = judged_[0].load(std::memory_order_relaxed) + warned + flagged;
    const bool agree = all > 0 && warned + flagged == 0;
    std::string parts = "no command buffer was timed with its passes yet";
    if (all > 0) {
        parts = "of " + std::to_string(all) + " command buffers the passes of " + std::to_string(flagged) +
                " differ from the whole by more than 10 %, those of " + std::to_string(warned) + " by more than 5 %";
    }
    return {
        {"stage_boundaries", at_stages_, at_stages_ ? "" : no_stages},
        {"per_dispatch", at_dispatches_, at_dispatches_ ? "" : no_dispatches},
        {"concurrent_dispatches", false, "samples at dispatches are taken with a barrier, which serialises them"},
        {"parts_match_buffers", agree, agree ? "" : parts},
        {"immediate", false, "counters are read after the end of a whole command buffer"},
        {"graph_capture", false, "Metal's queues are not captured into graphs"},
    };
}

} // namespace plumb::backends::metal

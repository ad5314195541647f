// SPDX-License-Identifier: Apache-2.0
#include <new>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "base/os.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_access.hpp"
#include "record/thread_registry.hpp"

namespace plumb {
inline namespace v1 {

Recorder::Recorder() noexcept = default;
Recorder::~Recorder() = default;

void RecorderAccess::connect(Recorder& recorder, record::RingSet* rings, const HostClock* clock, bool serialise) noexcept {
    recorder.rings_ = rings;
    recorder.clock_ = clock;
    recorder.serialise_ = serialise;
    recorder.generation_ = record::new_generation();
    recorder.slot_ = static_cast<std::uint32_t>(recorder.generation_ % thread_slots);
}

void RecorderAccess::set_enabled(Recorder& recorder, bool on) noexcept {
    // Callers serialise toggles. Release: a thread that sees "on" sees what connect() stored.
    const std::uint32_t old = recorder.mode_.load(std::memory_order_relaxed);
    if (((old & mode_on) != 0) == on) {
        return;
    }
    const bool indirect = recorder.clock_ != nullptr || recorder.serialise_;
    const std::uint32_t epoch = (old & ~(mode_epoch - 1)) + mode_epoch;
    recorder.mode_.store(epoch | (on ? mode_on : 0) | (indirect ? mode_indirect : 0), std::memory_order_release);
}

std::uint64_t RecorderAccess::thread_cpu_ns(const Recorder& recorder) noexcept {
    return static_cast<std::uint64_t>(recorder.clock_ != nullptr ? recorder.clock_->thread_cpu_ns() : base::thread_cpu_ns());
}

std::uint64_t Recorder::plain_stamp() const noexcept { return clock_ != nullptr ? clock_->now_ticks() : read_ticks(); }

std::uint64_t Recorder::stamp() const noexcept {
#if defined(__x86_64__) || defined(__i386__)
    if (serialise_) {
        // Earlier work is done before the stamp, later work begins after it.
        _mm_mfence();
        _mm_lfence();
        const std::uint64_t ticks = plain_stamp();
        _mm_lfence();
        return ticks;
    }
#elif defined(__aarch64__)
    if (serialise_) {
        asm volatile("dsb sy\n\tisb" ::: "memory");
        const std::uint64_t ticks = plain_stamp();
        asm volatile("isb" ::: "memory");
        return ticks;
    }
#endif
    return plain_stamp();
}

Timestamp Recorder::now() const noexcept { return {stamp()}; }

ThreadRecorder* Recorder::attach_thread() noexcept {
    record::RingSet* rings = rings_;
    if (rings == nullptr) {
        return nullptr;
    }
    ThreadRecorder* pen = nullptr;
    if (record::Ring* known = record::find_ring(generation_); known != nullptr) {
        pen = &known->pen(); // another profiler had taken the slot
    } else if (!record::thread_is_ending()) {
        pen = rings->attach(*this);
    }
    if (pen == nullptr) {
        rings->drops_without_ring.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    thread_slot_table[slot_] = ThreadSlot{generation_, pen};
    return pen;
}

Token Recorder::begin_token(Name name, bool has_work, const Work& work) noexcept {
    Token token;
    const std::uint32_t now_mode = mode();
    ThreadRecorder* pen = (now_mode & mode_on) != 0 ? thread() : nullptr;
    if (pen == nullptr) {
        return token;
    }
    token.bits = pack(RecordKind::span, name.id) | (has_work ? flag_work : 0);
    token.mode = now_mode;
    token.track = pen->track;
    token.work = work;
    token.begin = stamp();
    return token;
}

void Recorder::end(Token& token) noexcept {
    const std::uint64_t now = stamp();
    const std::uint32_t now_mode = mode();
    if (token.bits == 0 && (now_mode & mode_on) == 0) {
        return; // begun and ended while off
    }
    ThreadRecorder* pen = thread();
    if (pen == nullptr) {
        return;
    }
    if (token.bits == 0) {
        pen->drop(Drop::bad_token);
        return;
    }
    std::uint64_t bits = token.bits;
    token.bits = 0;
    if (token.mode != now_mode) {
        pen->drop(Drop::across_toggle);
        return;
    }
    if (now < token.begin) { // the counters of two cores may disagree by a little: unresolvable, not zero
        pen->drop(Drop::negative_span);
        return;
    }
    if ((bits & flag_work) != 0) {
        bits = pen->push_work(bits, token.work);
    }
    const bool moved = token.track != pen->track;
    if ((moved && !pen->push(token.track, pack(RecordKind::origin))) ||
        !pen->push_timed(token.begin, bits, now - token.begin)) {
        pen->drop(Drop::ring_full);
    }
}

void Recorder::put_span(Name name, Timestamp begin, Timestamp end, bool has_work, const Work& work) noexcept {
    ThreadRecorder* pen = enabled() ? thread() : nullptr;
    if (pen == nullptr) {
        return;
    }
    if (end.ticks < begin.ticks) {
        pen->drop(Drop::negative_span);
        return;
    }
    std::uint64_t bits = pack(RecordKind::span, name.id) | (has_work ? flag_work : 0);
    if (has_work) {
        bits = pen->push_work(bits, work);
    }
    if (!pen->push_timed(begin.ticks, bits, end.ticks - begin.ticks)) {
        pen->drop(Drop::ring_full);
    }
}

void Recorder::record_device(Name name, Queue queue, DeviceToken token) noexcept {
    ThreadRecorder* pen = enabled() && queue.timer != nullptr ? thread() : nullptr;
    if (pen != nullptr) {
        pen->push_device({queue.timer, queue.track, mode(), token.value, plain_stamp(), pack(RecordKind::scope, name.id), {}}, 0);
    } else if (queue.timer != nullptr) {
        queue.timer->cancel(token);
    }
}

void Recorder::record(Name label, std::uint64_t nanoseconds) noexcept {
    ThreadRecorder* pen = enabled() ? thread() : nullptr;
    if (pen != nullptr && !pen->push(nanoseconds, pack(RecordKind::label, label.id))) {
        pen->drop(Drop::ring_full);
    }
}

Context Recorder::context() noexcept {
    ThreadRecorder* pen = enabled() ? thread() : nullptr;
    return pen != nullptr ? Context{pen->step_plus_one, pen->layer_plus_one} : Context{};
}

} // namespace v1
} // namespace plumb

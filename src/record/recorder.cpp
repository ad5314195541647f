// SPDX-License-Identifier: Apache-2.0
#include <new>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "base/os.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "record/name_registry.hpp"
#include "record/nvtx_out.hpp"
#include "record/recorder_access.hpp"
#include "record/scope_stack.hpp"
#include "record/thread_registry.hpp"

namespace plumb {
inline namespace v1 {

Recorder::Recorder() noexcept = default;
Recorder::~Recorder() { record::forget_nvtx(*this); }

void RecorderAccess::prepare(Recorder& recorder, const StampOptions& options) noexcept {
    recorder.clock_ = options.clock;
    recorder.serialise_ = options.serialise;
    recorder.serialise_layers_ = options.serialise_layers;
    recorder.host_only_ = options.host_only;
    recorder.tiles_ = options.tiles;
    recorder.hide_traces_ = options.hide_traces;
    recorder.device_every_ = options.device_every == 0 ? 1 : options.device_every;
    recorder.generation_ = record::new_generation();
    recorder.slot_ = static_cast<std::uint32_t>(recorder.generation_ % detail::thread_slots);
}

void RecorderAccess::connect(Recorder& recorder, record::RingSet* rings) noexcept {
    // Release: whoever finds the rings finds them complete.
    recorder.rings_.store(rings, std::memory_order_release);
}

void RecorderAccess::set_enabled(Recorder& recorder, bool on) noexcept {
    // Callers serialise toggles. Recorders load it relaxed: attach_thread() acquires what they need.
    const std::uint32_t old = recorder.mode_.load(std::memory_order_relaxed);
    if (((old & detail::mode_on) != 0) == on) {
        return;
    }
    const bool indirect = recorder.clock_ != nullptr || recorder.serialise_ || record::tells_nvtx(recorder);
    const std::uint32_t epoch = (old & ~(detail::mode_epoch - 1)) + detail::mode_epoch;
    const bool tensors = on && recorder.tensors_.load(std::memory_order_relaxed) != nullptr; // toggles are serialised
    const bool tiles = on && recorder.tiles_;
    recorder.mode_.store(epoch | (on ? detail::mode_on : 0) | (indirect ? detail::mode_indirect : 0) |
                             (tensors ? detail::mode_tensors : 0) | (tiles ? detail::mode_tiles : 0),
                         std::memory_order_relaxed);
}

void RecorderAccess::connect_tensors(Recorder& recorder, record::TensorSink* sink) noexcept {
    // Release: whoever finds the sink finds it complete.
    recorder.tensors_.store(sink, std::memory_order_release);
}

namespace {

// A step's facts in one word, so that readers never see half of them: step id + 1 (24 bits), phase (4), position + 1 (36).
constexpr std::uint64_t fact_step_mask = (std::uint64_t{1} << 24) - 1;
constexpr std::uint64_t fact_position_mask = (std::uint64_t{1} << 36) - 1;

} // namespace

void Recorder::note_step(std::uint64_t id, Phase phase, const StepValues& values) noexcept {
    const std::uint64_t tokens = values.prefill_tokens + values.decode_tokens;
    // A batch has a position for each sequence, which the caller alone knows.
    const bool known = values.sequences <= 1 && values.kv_length >= tokens && values.kv_length != 0;
    const std::uint64_t position_plus_one = known ? values.kv_length - tokens + 1 : 0;
    // Relaxed: a thread that works for this step learned of it by its own synchronisation.
    steps_[id % known_steps].store(((id + 1) & fact_step_mask) << 40 | static_cast<std::uint64_t>(phase) << 36 |
                                       (position_plus_one & fact_position_mask),
                                   std::memory_order_relaxed);
}

RunningStep RecorderAccess::step_facts(const Recorder& recorder, std::uint64_t step_plus_one) noexcept {
    RunningStep facts;
    if (step_plus_one == 0) {
        return facts;
    }
    const std::uint64_t noted =
        recorder.steps_[(step_plus_one - 1) % Recorder::known_steps].load(std::memory_order_relaxed);
    if (noted >> 40 == (step_plus_one & fact_step_mask)) {
        facts.phase = static_cast<Phase>(noted >> 36 & 15);
        facts.position = static_cast<std::int64_t>(noted & fact_position_mask) - 1;
    }
    return facts;
}

std::uint64_t RecorderAccess::thread_cpu_ns(const Recorder& recorder) noexcept {
    return static_cast<std::uint64_t>(recorder.clock_ != nullptr ? recorder.clock_->thread_cpu_ns()
                                                                 : base::thread_cpu_ns());
}

std::uint64_t Recorder::plain_stamp() const noexcept {
    return clock_ != nullptr ? clock_->now_ticks() : detail::read_ticks();
}

namespace {

// Earlier work is done before the serialised stamp, later work begins after it.
void fence_before_stamp() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_mfence();
    _mm_lfence();
#elif defined(__aarch64__)
    asm volatile("dsb sy\n\tisb" ::: "memory");
#endif
}

void fence_after_stamp() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

} // namespace

std::uint64_t Recorder::stamp() const noexcept {
    if (!serialise_) {
        return plain_stamp();
    }
    fence_before_stamp();
    const std::uint64_t ticks = plain_stamp();
    fence_after_stamp();
    return ticks;
}

std::uint64_t Recorder::layer_stamp() const noexcept {
    if (!serialise_layers_) {
        return stamp();
    }
    fence_before_stamp();
    const std::uint64_t ticks = plain_stamp();
    fence_after_stamp();
    return ticks;
}

Timestamp Recorder::now() const noexcept { return {stamp()}; }

detail::ThreadRecorder* Recorder::attach_thread() noexcept {
    record::RingSet* rings = rings_.load(std::memory_order_acquire);
    if (rings == nullptr) {
        return nullptr;
    }
    detail::ThreadRecorder* pen = nullptr;
    if (record::Ring* known = record::find_ring(generation_); known != nullptr) {
        pen = &known->pen(); // another profiler had taken the slot
    } else if (!record::thread_is_ending()) {
        pen = rings->attach(*this);
    }
    if (pen == nullptr) {
        rings->drops_without_ring.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    detail::thread_slot_table[slot_] = detail::ThreadSlot{generation_, pen};
    return pen;
}

void Recorder::begin_token(Token& token, Name name, bool has_work, const Work& work) noexcept {
    const std::uint32_t now_mode = mode();
    const bool on = (now_mode & detail::mode_on) != 0;
    detail::ThreadRecorder* pen = on ? thread() : nullptr;
    if (pen == nullptr) {
        token.track = on ? begun_without_ring : begun_off;
        return;
    }
    token.bits = pack(RecordKind::span, name.id) | (has_work ? flag_work : 0);
    token.mode = now_mode;
    token.track = pen->track;
    token.work = work;
    token.begin = stamp();
}

void Recorder::end_token(Token& token) noexcept {
    const std::uint64_t now = stamp();
    const std::uint32_t now_mode = mode();
    if (token.track == begun_without_ring) {
        token.track = 0;
        return;
    }
    detail::ThreadRecorder* pen = thread();
    std::uint64_t bits = token.bits;
    token.bits = 0;
    if (pen == nullptr) {
        return;
    }
    if (bits == 0) {
        pen->drop(token.track == begun_off ? Drop::across_toggle : Drop::bad_token);
        token.track = 0;
        return;
    }
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
    if (!pen->has_room(3)) { // an origin alone would be taken for the next span's
        pen->drop(Drop::ring_full);
        return;
    }
    if (moved) {
        pen->push(token.track, pack(RecordKind::origin));
    }
    pen->push_timed(token.begin, bits, now - token.begin);
    pen->sample_after(detail::long_ticks, now); // a thread that tells spans alone has no other place for it
}

void Recorder::put_span(Name name, Timestamp begin, Timestamp end, bool has_work, const Work& work) noexcept {
    detail::ThreadRecorder* pen = thread();
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
    pen->sample_after(detail::long_ticks, plain_stamp());
}

void Recorder::record_device(Name name, Queue queue, DeviceToken token, const Work* work, bool lap) noexcept {
    detail::ThreadRecorder* pen = enabled() && queue.timer != nullptr && !host_only_ ? thread() : nullptr;
    if (pen != nullptr) {
        const std::uint64_t bits =
            pack(RecordKind::scope, name.id) | (work != nullptr ? flag_work : 0) | (lap ? flag_lap : 0);
        pen->push_device(
            {queue.timer, queue.track, mode(), token.value, plain_stamp(), bits, work != nullptr ? *work : Work{}}, 0);
    } else if (queue.timer != nullptr) {
        queue.timer->cancel(token);
    }
}

void Recorder::record_graph_launch(std::uint64_t key, std::uint16_t flags, Queue queue, Timestamp begin,
                                   Timestamp end) noexcept {
    detail::ThreadRecorder* pen = enabled() ? thread() : nullptr;
    if (pen == nullptr) {
        return;
    }
    if (end.ticks < begin.ticks) {
        pen->drop(Drop::negative_span);
        return;
    }
    if (!pen->has_room(3)) { // a device_submit alone would be taken for the next device scope's
        pen->drop(Drop::ring_full);
        return;
    }
    pen->push_timed(begin.ticks, pack(RecordKind::device_submit), end.ticks - begin.ticks);
    pen->push(key, pack(RecordKind::graph_launch, flags, queue.track));
}

void Recorder::put_label(Name label, std::uint64_t nanoseconds) noexcept {
    detail::ThreadRecorder* pen = thread();
    if (pen != nullptr && !pen->push(nanoseconds, pack(RecordKind::label, label.id))) {
        pen->drop(Drop::ring_full);
    }
}

Context Recorder::context() noexcept {
    const std::uint32_t now_mode = mode();
    detail::ThreadRecorder* pen = (now_mode & detail::mode_on) != 0 ? thread() : nullptr;
    if (pen == nullptr) {
        return {};
    }
    record::drop_stale(*pen, now_mode);
    return {pen->step_plus_one, pen->layer_plus_one};
}

} // namespace v1
} // namespace plumb

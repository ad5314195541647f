// SPDX-License-Identifier: Apache-2.0
// The rare paths of scopes and laps: gaps, long scopes, indirect clocks, toggles, device queues.
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "record/device_label.hpp"
#include "record/nvtx_out.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {
namespace {

constexpr std::uint64_t refused = ~std::uint64_t{0};

bool device_begin(const detail::ThreadRecorder& pen, Queue queue, std::uint64_t bits, std::uint64_t& token) noexcept {
    const Result<DeviceToken> begun = queue.timer->begin_labelled(label_of(pen, bits));
    token = begun.ok() ? begun->value : refused;
    return begun.ok();
}

} // namespace

detail::SlowBegin detail::begin_scope_slow(detail::ThreadRecorder& pen, Queue queue, std::uint64_t bits) noexcept {
    if (pen.depth >= max_depth) {
        pen.drop(Drop::too_deep);
        return {0, refused, false, false};
    }
    ++pen.depth;
    record::nvtx_push(*pen.recorder, bits);
    detail::SlowBegin begun{0, refused, true, queue.timer != nullptr && !pen.recorder->host_only()};
    if (begun.on_device && !device_begin(pen, queue, bits, begun.token)) {
        pen.drop(Drop::device_failed);
    }
    begun.begin = pen.recorder->stamp();
    if (begun.begin >= pen.deadline) {
        pen.sample_cpu_time();
        begun.begin = pen.recorder->stamp();
    }
    return begun;
}

std::uint64_t detail::begin_after_gap(detail::ThreadRecorder& pen) noexcept {
    pen.sample_cpu_time();
    return pen.recorder->plain_stamp();
}

namespace {

/// False when there is nothing to record: not timed in this step, or refused by the device (counted).
bool end_on_device(detail::ThreadRecorder& pen, const detail::SlowEnd& ended) noexcept {
    if (ended.token == refused) {
        return false;
    }
    if (ended.token == token_not_timed) {
        return false;
    }
    if (!ended.queue.timer->end_labelled(DeviceToken{ended.token}, given_work(ended.bits, ended.work)).ok()) {
        ended.queue.timer->cancel(DeviceToken{ended.token});
        pen.drop(Drop::device_failed);
        return false;
    }
    return true;
}

} // namespace

void detail::end_scope_slow(detail::ThreadRecorder& pen, const detail::SlowEnd& ended) noexcept {
    Recorder& recorder = *pen.recorder;
    const std::uint64_t now = (ended.mode & detail::mode_indirect) != 0 ? recorder.stamp() : ended.now;
    const std::uint32_t mode = recorder.mode();
    pen.end_lap(now, mode);
    --pen.depth;
    record::nvtx_pop(recorder);
    const bool on_device = ended.queue.timer != nullptr;
    if (on_device && !end_on_device(pen, ended)) {
        return;
    }
    if ((ended.mode & ~mode_slow_end) != mode) {
        if (on_device) {
            ended.queue.timer->cancel(DeviceToken{ended.token});
        }
        pen.drop(Drop::across_toggle);
        return;
    }
    const std::uint64_t duration = now - ended.begin;
    pen.deadline = now + long_ticks;
    if (now < ended.begin) { // the counters of two cores may disagree by a little: unresolvable, not zero
        if (on_device) {
            ended.queue.timer->cancel(DeviceToken{ended.token});
        }
        pen.drop(Drop::negative_span);
        return;
    }
    if (on_device) {
        pen.push_device({ended.queue.timer, ended.queue.track, mode, ended.token, ended.begin, ended.bits, ended.work},
                        duration);
        pen.sample_after(duration, now); // it may have held a wait for the device
        return;
    }
    std::uint64_t bits = ended.bits;
    if ((bits & flag_work) != 0) {
        bits = pen.push_work(bits, ended.work);
    }
    if (!pen.push_timed(ended.begin, bits, duration)) {
        pen.drop(Drop::ring_full);
    }
    pen.sample_after(duration, now);
}

namespace {

// A queue's lap ends where the next begins, on whatever queue: one device lap is open per depth.
void device_lap(Recorder& recorder, detail::ThreadRecorder& pen, std::uint32_t mode, Queue queue, std::uint64_t bits,
                const Work& work) noexcept {
    const std::uint64_t now = recorder.stamp();
    const detail::OpenDeviceLap before = pen.device_laps[pen.depth];
    const bool follows = before.timer == queue.timer && before.mode == mode && now >= before.begin;
    if (!follows) {
        pen.end_device_lap(now, mode);
    } else {
        record::nvtx_pop(recorder);
    }
    const ScopeLabel label = label_of(pen, bits);
    const Result<DeviceToken> begun =
        follows ? queue.timer->lap(DeviceToken{before.token}, given_work(before.bits, before.work), label)
                : queue.timer->begin_labelled(label);
    if (follows) {
        pen.device_laps[pen.depth].timer = nullptr;
        pen.note_laps();
        begun.ok() ? pen.push_device(before, now - before.begin) : pen.drop(Drop::device_failed);
    }
    if (!begun.ok()) {
        pen.drop(Drop::device_failed);
        return;
    }
    const detail::OpenDeviceLap lap{queue.timer, queue.track, mode, begun->value, now, bits, work};
    pen.device_laps[pen.depth] = lap;
    record::nvtx_push(recorder, bits);
    pen.note_laps();
}

} // namespace

void detail::lap_slow(Recorder& recorder, detail::ThreadRecorder& pen, std::uint32_t mode, Queue queue,
                      std::uint64_t bits, const Work& work) noexcept {
    if (pen.depth == 0) {
        pen.drop(Drop::lap_outside_scope);
        return;
    }
    if (queue.timer != nullptr && !recorder.host_only()) {
        device_lap(recorder, pen, mode, queue, bits, work);
        return;
    }
    std::uint64_t now = recorder.stamp();
    const bool gap = !pen.lap_open() && now >= pen.deadline;
    pen.end_host_lap(now, mode);
    if (gap) {
        pen.sample_cpu_time();
        now = recorder.stamp();
    }
    detail::OpenLap& lap = pen.laps[pen.depth];
    lap.begin = now;
    lap.bits = bits;
    lap.mode = mode;
    lap.work = work;
    pen.note_laps();
    record::nvtx_push(recorder, bits);
    pen.deadline = now + long_ticks;
}

void detail::end_lap(Recorder& recorder, Queue queue) noexcept {
    detail::ThreadRecorder* pen = recorder.thread();
    if (pen == nullptr) {
        return;
    }
    if (queue.timer != nullptr && !recorder.host_only()) {
        pen->end_device_lap(recorder.stamp(), recorder.mode());
    } else {
        pen->end_host_lap(recorder.stamp(), recorder.mode());
    }
}

} // namespace v1
} // namespace plumb

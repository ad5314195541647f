// SPDX-License-Identifier: Apache-2.0
#include "plumb/thread_recorder.hpp"

#include "plumb/backend.hpp"
#include "plumb/clock.hpp"
#include "plumb/record.hpp"
#include "record/device_label.hpp"
#include "record/nvtx_out.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {
bool detail::ThreadRecorder::refill(std::uint64_t head) noexcept {
    // Acquire: the drain has copied everything before tail before we write over it.
    limit = ring->tail.load(std::memory_order_acquire) + mask + 1 - reserved;
    return head != limit;
}

bool detail::ThreadRecorder::has_room(std::uint64_t count) noexcept {
    // Relaxed: only this thread stores head.
    const std::uint64_t head = ring->head.load(std::memory_order_relaxed);
    if (limit - head < count) {
        refill(head);
    }
    return limit - head >= count;
}

namespace {

constexpr std::uint32_t end_slots = 2; // a step_end or layer_end of any length; head never passes limit

} // namespace

bool detail::ThreadRecorder::reserve_structure(std::uint64_t count) noexcept {
    if (!has_room(count + end_slots)) {
        drop(Drop::ring_full);
        return false;
    }
    reserved += end_slots;
    limit -= end_slots;
    return true;
}

void detail::ThreadRecorder::release_structure() noexcept {
    reserved -= end_slots;
    limit += end_slots;
}

void detail::ThreadRecorder::drop(Drop reason) noexcept {
    auto& count = detail::drops_of(*ring, static_cast<std::size_t>(reason));
    // Relaxed, and no read-modify-write: only this thread adds; readers want a number, not an order.
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void detail::ThreadRecorder::push_collective(Name name, const Collective& of) noexcept {
    if (!push(of.sequence_plus_one, pack(RecordKind::collective, of.group, name.id))) {
        drop(Drop::ring_full);
    }
}

std::uint64_t detail::ThreadRecorder::push_changed_work(std::uint64_t bits, detail::KnownWork& known,
                                                        const Work& work) noexcept {
    const auto id = static_cast<std::uint16_t>(bits >> id_shift);
    const double given[] = {work.bytes, work.flops, work.elements, work.bytes_per_kv};
    const double last[] = {known.work.bytes, known.work.flops, known.work.elements, known.work.bytes_per_kv};
    const bool same_name = known.id == id;
    for (std::size_t i = 0; i < work_quantities; ++i) {
        if (same_name && same(given[i], last[i])) {
            continue;
        }
        std::uint64_t value = 0;
        std::memcpy(&value, &given[i], sizeof value);
        if (!push(value, pack(RecordKind::work, id, i))) {
            known.id = no_name_id; // unknown to the reader from here on
            return bits & ~flag_work;
        }
    }
    known.work = work;
    known.id = id;
    return bits;
}

bool detail::ThreadRecorder::push_timed(std::uint64_t first, std::uint64_t bits, std::uint64_t duration) noexcept {
    if (duration < payload_mask) {
        return push(first, bits | duration);
    }
    // Both or neither: a long value alone would be taken for the next record's.
    return has_room(2) && push(duration, pack(RecordKind::long_value)) && push(first, bits | payload_mask);
}

void detail::ThreadRecorder::sample_cpu_time() noexcept {
    const std::uint64_t cpu = record::RecorderAccess::thread_cpu_ns(*recorder);
    const std::uint64_t now = recorder->plain_stamp();
    if (!push(now, (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) | (cpu & cpu_time_mask))) {
        drop(Drop::ring_full);
    }
    sampled = now;
}

void detail::ThreadRecorder::sample_after(std::uint64_t duration, std::uint64_t now) noexcept {
    if (duration >= long_ticks && now - sampled >= sample_ticks) {
        sample_cpu_time();
    }
}

void detail::ThreadRecorder::end_lap(std::uint64_t now, std::uint32_t mode) noexcept {
    if (depth == 0 || !lap_open()) {
        return;
    }
    end_device_lap(now, mode);
    end_host_lap(now, mode);
    deadline = now + long_ticks;
}

void detail::ThreadRecorder::note_laps() noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (depth - 1);
    const bool open = laps[depth].bits != 0 || device_laps[depth].timer != nullptr;
    open_laps = open ? open_laps | bit : open_laps & ~bit;
}

void detail::ThreadRecorder::end_host_lap(std::uint64_t now, std::uint32_t mode) noexcept {
    detail::OpenLap& lap = laps[depth];
    std::uint64_t bits = lap.bits;
    if (bits == 0) {
        return;
    }
    lap.bits = 0;
    note_laps();
    record::nvtx_pop(*recorder);
    const std::uint32_t begun_in = lap.mode;
    if (begun_in != mode || now < lap.begin) {
        drop(begun_in != mode ? Drop::across_toggle : Drop::negative_span);
        return;
    }
    if ((bits & flag_work) != 0) {
        bits = push_work(bits, lap.work);
    }
    if (!push_timed(lap.begin, bits, now - lap.begin)) {
        drop(Drop::ring_full);
    }
    sample_after(now - lap.begin, now);
}

void detail::ThreadRecorder::end_device_lap(std::uint64_t now, std::uint32_t mode) noexcept {
    detail::OpenDeviceLap lap = device_laps[depth];
    if (lap.timer == nullptr) {
        return;
    }
    device_laps[depth].timer = nullptr;
    note_laps();
    record::nvtx_pop(*recorder);
    const DeviceToken token{lap.token};
    if (lap.token == token_not_timed) {
        return;
    }
    if (!lap.timer->end_labelled(token, given_work(lap.bits, lap.work)).ok()) {
        lap.timer->cancel(token);
        drop(Drop::device_failed);
    } else if (lap.mode != mode || now < lap.begin) {
        lap.timer->cancel(token);
        drop(lap.mode != mode ? Drop::across_toggle : Drop::negative_span);
    } else {
        push_device(lap, now - lap.begin);
    }
}

namespace {

/// sync=immediate: the timer's own, or that of this recorder, whose stamps are then serialised. A queue on the host's
/// clock has nothing to wait for.
bool waits_for(const Recorder& recorder, const QueueTimer& timer) noexcept {
    return timer.immediate() || (record::RecorderAccess::stamps(recorder).serialise && !timer.clock_is_host());
}

} // namespace

void detail::ThreadRecorder::push_device(const detail::OpenDeviceLap& ended, std::uint64_t duration) noexcept {
    if (ended.token == token_not_timed || (ended.token & token_noted) != 0) {
        return;
    }
    std::uint64_t bits = ended.bits;
    if ((bits & flag_work) != 0) {
        bits = push_work(bits, ended.work);
    }
    const auto id = static_cast<std::uint16_t>(bits >> id_shift);
    if (waits_for(*recorder, *ended.timer) && !ended.timer->wait(DeviceToken{ended.token}).ok()) {
        ended.timer->cancel(DeviceToken{ended.token});
        drop(Drop::device_failed);
        return;
    }
    if (!has_room(3)) { // a device_submit alone would be taken for the next device scope's
        ended.timer->cancel(DeviceToken{ended.token});
        drop(Drop::ring_full);
        return;
    }
    push_timed(ended.begin, pack(RecordKind::device_submit), duration);
    push(ended.token, pack(RecordKind::device_scope, id, ended.track) | (bits & (flag_work | flag_lap)));
}

} // namespace v1
} // namespace plumb

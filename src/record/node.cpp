// SPDX-License-Identifier: Apache-2.0
// Kernels, transfers, tasks and the dependencies between them: a group of records each, written whole or not at all.
#include "base/layout.hpp"
#include "plumb/record.hpp"

namespace plumb {
inline namespace v1 {
namespace {

constexpr std::uint64_t packed(Extent extent) noexcept { return extent.x | std::uint64_t{extent.y} << 32; }

constexpr std::uint16_t id_of(TransferPart part) noexcept { return static_cast<std::uint16_t>(part); }
constexpr std::uint16_t id_of(TaskPart part) noexcept { return static_cast<std::uint16_t>(part); }

/// Room for the parts and for the node itself, of any duration; false and counted where there is none, or no such time.
bool may_write(detail::ThreadRecorder& pen, const NodeTags& tags, std::uint64_t parts) noexcept {
    if (tags.is_timed && tags.end.ticks < tags.begin.ticks) {
        pen.drop(Drop::negative_span);
        return false;
    }
    if (!pen.has_room(parts + 2)) {
        pen.drop(Drop::ring_full);
        return false;
    }
    return true;
}

/// REQUIRES: may_write().
NodeHandle write_node(detail::ThreadRecorder& pen, std::uint64_t bits, const NodeTags& tags) noexcept {
    if (tags.is_timed) {
        pen.push_timed(tags.begin.ticks, bits, tags.end.ticks - tags.begin.ticks);
    } else {
        pen.push(pen.recorder->plain_stamp(), bits | flag_moment);
    }
    // Relaxed: only this thread stores head. The node is the record before it.
    return {pen.ring->head.load(std::memory_order_relaxed) - 1, pen.track};
}

} // namespace

NodeHandle Recorder::put_kernel(Name name, std::uint64_t hash, Extent grid, Extent block, std::uint32_t shared_bytes,
                                const NodeTags& tags) noexcept {
    detail::ThreadRecorder* pen = thread();
    std::uint64_t bits = pack(RecordKind::kernel, name.id);
    if (pen != nullptr && tags.has_work) {
        bits = pen->push_work(bits | flag_work, tags.work);
    }
    if (pen == nullptr || !may_write(*pen, tags, 3)) {
        return {};
    }
    pen->push(hash, pack(RecordKind::kernel_code, name.id, shared_bytes));
    pen->push(packed(grid), pack(RecordKind::kernel_extent, 0, grid.z));
    pen->push(packed(block), pack(RecordKind::kernel_extent, 1, block.z));
    return write_node(*pen, bits, tags);
}

NodeHandle Recorder::put_transfer(Buffer source, Buffer target, std::uint64_t size, TransferDirection direction,
                                  const NodeTags& tags) noexcept {
    detail::ThreadRecorder* pen = thread();
    if (pen == nullptr || !may_write(*pen, tags, 3)) {
        return {};
    }
    pen->push(source.number, pack(RecordKind::transfer_part, id_of(TransferPart::source)));
    pen->push(target.number, pack(RecordKind::transfer_part, id_of(TransferPart::target)));
    pen->push(size, pack(RecordKind::transfer_part, id_of(TransferPart::bytes)));
    return write_node(*pen, pack(RecordKind::transfer, static_cast<std::uint16_t>(direction)), tags);
}

NodeHandle Recorder::put_task(Name name, std::uint64_t polls, std::uint64_t yields,
                              std::uint64_t nanoseconds) noexcept {
    detail::ThreadRecorder* pen = thread();
    const NodeTags untimed;
    if (pen == nullptr || !may_write(*pen, untimed, 3)) {
        return {};
    }
    pen->push(polls, pack(RecordKind::task_part, id_of(TaskPart::polls)));
    pen->push(yields, pack(RecordKind::task_part, id_of(TaskPart::yields)));
    pen->push(nanoseconds, pack(RecordKind::task_part, id_of(TaskPart::nanoseconds)));
    return write_node(*pen, pack(RecordKind::task, name.id), untimed);
}

void Recorder::put_dependency(NodeHandle earlier, NodeHandle later) noexcept {
    detail::ThreadRecorder* pen = thread();
    if (pen == nullptr) {
        return;
    }
    if (!earlier.recorded() || !later.recorded()) {
        pen->drop(Drop::unrecorded_node);
        return;
    }
    if (!pen->has_room(2)) { // the earlier node alone would be taken for that of the next pair
        pen->drop(Drop::ring_full);
        return;
    }
    pen->push(earlier.sequence, pack(RecordKind::dependency, 0, earlier.track));
    pen->push(later.sequence, pack(RecordKind::dependency, 1, later.track));
}

} // namespace v1
} // namespace plumb

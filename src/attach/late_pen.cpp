// SPDX-License-Identifier: Apache-2.0
#include "attach/late_pen.hpp"

#include "base/layout.hpp"

namespace plumb::attach {

void LatePen::layer(std::int32_t index, std::uint64_t at) noexcept {
    if (thread_ == nullptr || index == layer_) {
        return;
    }
    if (layer_ >= 0 && written_) {
        thread_->release_structure();
        thread_->push_timed(layer_begin_, pack(RecordKind::layer_end, static_cast<std::uint16_t>(layer_)),
                            at - layer_begin_);
    }
    layer_ = index;
    layer_begin_ = at;
    const bool beyond =
        index >= 0 && static_cast<std::uint32_t>(index) >= max_layers; // its low half would be another layer
    if (beyond) {
        thread_->drop(Drop::layer_beyond);
    }
    written_ = index >= 0 && !beyond && thread_->reserve_structure(1);
    if (written_) {
        thread_->push(at, pack(RecordKind::layer_begin, static_cast<std::uint16_t>(index)));
    }
}

void LatePen::scope(Name name, std::uint64_t begin, std::uint64_t end, const Work& work,
                    std::optional<std::uint64_t> waited) noexcept {
    if (thread_ == nullptr) {
        return;
    }
    if (end < begin) {
        thread_->drop(Drop::negative_span);
        return;
    }
    const std::uint64_t bits = thread_->push_work(pack(RecordKind::scope, name.id) | flag_work, work);
    // Without room for what it waited there is no scope either: else it would take that of the one before.
    if ((waited && !thread_->push(*waited, pack(RecordKind::barrier_wait))) ||
        !thread_->push_timed(begin, bits, end - begin)) {
        thread_->drop(Drop::ring_full);
    }
}

void LatePen::device_scope(Name name, const Queue& queue, DeviceToken token, std::uint64_t submitted,
                           const Work& work) noexcept {
    if (thread_ == nullptr) {
        queue.timer->cancel(token);
        return;
    }
    const std::uint64_t bits = pack(RecordKind::scope, name.id) | flag_work;
    thread_->push_device({queue.timer, queue.track, thread_->recorder->mode(), token.value, submitted, bits, work}, 0);
}

void LatePen::cpu_time(std::uint64_t at, std::uint64_t nanoseconds) noexcept {
    if (thread_ == nullptr) {
        return;
    }
    const std::uint64_t bits = static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift;
    if (!thread_->push(at, bits | (nanoseconds & cpu_time_mask))) {
        thread_->drop(Drop::ring_full);
    }
    thread_->sampled = at;
}

void LatePen::finish(std::uint64_t at) noexcept {
    layer(-1, at);
    if (thread_ != nullptr) {
        thread_->deadline = at + long_ticks;
    }
}

} // namespace plumb::attach

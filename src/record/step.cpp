// SPDX-License-Identifier: Apache-2.0
// Steps, layers and carried context: a few per forward pass, so out of line.
#include <cstdint>
#include <iterator>
#include <limits>

#include "plumb/record.hpp"
#include "record/nvtx_out.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {
namespace {

// Steps shorter than this share a sample of CPU time: 0.7 us each would be 0.5 % of a step of 0.15 ms.
constexpr std::uint64_t longest_without_sample = 2 * sample_ticks;

/// Null when the thread cannot record or nests too deep (counted).
detail::ThreadRecorder* enter(Recorder& recorder) noexcept {
    detail::ThreadRecorder* pen = recorder.thread();
    if (pen != nullptr && pen->depth >= max_depth) {
        pen->drop(Drop::too_deep);
        return nullptr;
    }
    if (pen != nullptr) {
        ++pen->depth;
    }
    return pen;
}

struct Ended {
    std::uint64_t begin, now;
    std::uint32_t begun_in; // mode
    bool written;           // its begin found room
};

/// Ends the open lap and the depth, and writes the end of what was written. It has none when the profiler was toggled
/// meanwhile, or time went back: the mark says so. False in that case.
bool leave(detail::ThreadRecorder& pen, const Ended& ended, std::uint64_t bits, Mark cut) noexcept {
    const std::uint32_t mode = pen.recorder->mode();
    pen.end_lap(ended.now, mode);
    --pen.depth;
    record::nvtx_pop(*pen.recorder);
    const bool toggled = mode != ended.begun_in;
    const bool sound = !toggled && ended.now >= ended.begin;
    if (!ended.written) {
        return sound; // counted when it began
    }
    pen.release_structure();
    if (sound) {
        pen.push_timed(ended.begin, bits, ended.now - ended.begin);
    } else {
        pen.push(ended.now, pack(RecordKind::mark, static_cast<std::uint16_t>(cut)));
        pen.drop(toggled ? Drop::across_toggle : Drop::negative_span);
    }
    return sound;
}

} // namespace

void Step::begin(Recorder& recorder, std::uint32_t mode, Queue, Phase phase, const StepValues& values) noexcept {
    thread_ = enter(recorder);
    if (thread_ == nullptr) {
        return;
    }
    detail::ThreadRecorder& pen = *thread_;
    mode_ = mode;
    phase_ = phase;
    outer_ = {pen.step_plus_one, pen.layer_plus_one};
    record::nvtx_push_step(recorder, phase);
    const std::uint64_t id = recorder.next_step_id();
    pen.step_plus_one = id + 1;
    pen.layer_plus_one = 0;
    if ((mode & detail::mode_tensors) != 0) {
        recorder.note_step(id, phase, values);
    }
    begin_ = recorder.stamp();
    if (begin_ >= pen.deadline) { // only after a long gap, as scopes do: one more read costs 0.5 % of a 0.1 ms step
        pen.sample_cpu_time();
        begin_ = recorder.stamp();
    }
    const std::uint64_t given[] = {values.prefill_tokens, values.decode_tokens, values.sequences, values.kv_length};
    written_ =
        pen.reserve_structure(1 + std::size(given)); // all or nothing: a step without its tokens gives wrong rates
    if (written_) {
        pen.push(begin_, pack(RecordKind::step_begin, static_cast<std::uint16_t>(phase), id));
        for (std::uint16_t i = 0; i < std::size(given); ++i) {
            if (given[i] != 0) {
                pen.push(given[i], pack(RecordKind::step_value, static_cast<std::uint16_t>(i + 1)));
            }
        }
    }
    pen.deadline = recorder.plain_stamp() + long_ticks;
}

void Step::end() noexcept {
    if (thread_ == nullptr) {
        return;
    }
    detail::ThreadRecorder& pen = *thread_;
    thread_ = nullptr;
    const std::uint64_t now = pen.recorder->stamp();
    pen.step_plus_one = outer_.step_plus_one;
    pen.layer_plus_one = outer_.layer_plus_one;
    const std::uint64_t bits = pack(RecordKind::step_end, static_cast<std::uint16_t>(phase_));
    if (leave(pen, {begin_, now, mode_, written_}, bits, Mark::cut_step)) {
        if (now - pen.sampled >= longest_without_sample) {
            pen.sample_cpu_time();
        }
        pen.deadline = now + long_ticks;
    }
}

void detail::put_step_kernels(Recorder& recorder, std::uint64_t kernels_ns, std::uint64_t stretch_ns) noexcept {
    detail::ThreadRecorder* pen = recorder.thread();
    if (pen == nullptr || pen->step_plus_one == 0 || kernels_ns > stretch_ns ||
        stretch_ns > std::numeric_limits<std::uint32_t>::max()) {
        return;
    }
    if (!pen->has_room(2)) { // both or none
        pen->drop(Drop::ring_full);
        return;
    }
    pen->push(kernels_ns, pack(RecordKind::step_value, static_cast<std::uint16_t>(StepValue::kernels)));
    pen->push(stretch_ns, pack(RecordKind::step_value, static_cast<std::uint16_t>(StepValue::kernel_stretch)));
}

void Layer::begin(Recorder& recorder, std::uint32_t mode, std::uint64_t index) noexcept {
    if (index >= max_layers) { // its low half would be another layer
        if (detail::ThreadRecorder* const pen = recorder.thread(); pen != nullptr) {
            pen->drop(Drop::layer_beyond);
        }
        return;
    }
    thread_ = enter(recorder);
    if (thread_ == nullptr) {
        return;
    }
    detail::ThreadRecorder& pen = *thread_;
    mode_ = mode;
    layer_ = static_cast<std::uint32_t>(index);
    outer_plus_one_ = pen.layer_plus_one;
    pen.layer_plus_one = layer_ + 1;
    record::nvtx_push_layer(recorder, layer_);
    begin_ = recorder.layer_stamp();
    written_ = pen.reserve_structure(1);
    if (written_) {
        pen.push(begin_, pack(RecordKind::layer_begin, static_cast<std::uint16_t>(index)));
    }
}

void Layer::end() noexcept {
    if (thread_ == nullptr) {
        return;
    }
    detail::ThreadRecorder& pen = *thread_;
    thread_ = nullptr;
    const std::uint64_t now = pen.recorder->layer_stamp();
    pen.layer_plus_one = outer_plus_one_;
    const std::uint64_t bits = pack(RecordKind::layer_end, static_cast<std::uint16_t>(layer_));
    (void)leave(pen, {begin_, now, mode_, written_}, bits, Mark::cut_layer);
}

ContextScope::ContextScope(Recorder& recorder, std::uint32_t, Context context) noexcept : thread_(recorder.thread()) {
    if (thread_ == nullptr) {
        return;
    }
    outer_ = {thread_->step_plus_one, thread_->layer_plus_one};
    thread_->step_plus_one = context.step_plus_one;
    thread_->layer_plus_one = context.layer_plus_one;
    written_ = thread_->reserve_structure(1);
    if (written_) {
        thread_->push(context.step_plus_one,
                      pack(RecordKind::context, static_cast<std::uint16_t>(context.layer_plus_one)));
    }
}

void ContextScope::end() noexcept {
    thread_->step_plus_one = outer_.step_plus_one;
    thread_->layer_plus_one = outer_.layer_plus_one;
    if (written_) {
        thread_->release_structure();
        thread_->push(0, pack(RecordKind::context_end));
    }
}

} // namespace v1
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// Steps, layers and carried context: a few per forward pass, so out of line.
#include "plumb/record.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {
namespace {

/// Null when the thread cannot record or nests too deep (counted).
ThreadRecorder* enter(Recorder& recorder) noexcept {
    ThreadRecorder* pen = recorder.thread();
    if (pen != nullptr && pen->depth >= max_depth) {
        pen->drop(Drop::too_deep);
        return nullptr;
    }
    if (pen != nullptr) {
        ++pen->depth;
    }
    return pen;
}

/// Ends the open lap and the depth. False when the profiler was toggled meanwhile: the mark says that what began has no end.
bool leave(ThreadRecorder& pen, std::uint64_t now, std::uint32_t begun_in, Mark cut) noexcept {
    const std::uint32_t mode = pen.recorder->mode();
    pen.end_lap(now, mode);
    --pen.depth;
    if (mode == begun_in) {
        return true;
    }
    pen.push(now, pack(RecordKind::mark, static_cast<std::uint16_t>(cut)));
    pen.drop(Drop::across_toggle);
    return false;
}

void push_or_count(ThreadRecorder& pen, std::uint64_t first, std::uint64_t second) noexcept {
    if (!pen.push(first, second)) {
        pen.drop(Drop::ring_full);
    }
}

} // namespace

void Step::begin(Recorder& recorder, std::uint32_t mode, Queue, Phase phase, const StepValues& values) noexcept {
    thread_ = enter(recorder);
    if (thread_ == nullptr) {
        return;
    }
    ThreadRecorder& pen = *thread_;
    mode_ = mode;
    phase_ = phase;
    outer_ = {pen.step_plus_one, pen.layer_plus_one};
    const std::uint64_t id = recorder.next_step_id();
    pen.step_plus_one = id + 1;
    pen.layer_plus_one = 0;
    pen.sample_cpu_time();
    begin_ = recorder.stamp();
    push_or_count(pen, begin_, pack(RecordKind::step_begin, static_cast<std::uint16_t>(phase), id));
    const std::uint64_t given[] = {values.prefill_tokens, values.decode_tokens, values.sequences, values.kv_length};
    for (std::uint16_t i = 0; i < 4; ++i) {
        if (given[i] != 0) {
            push_or_count(pen, given[i], pack(RecordKind::step_value, static_cast<std::uint16_t>(i + 1)));
        }
    }
    pen.deadline = recorder.plain_stamp() + long_ticks;
}

void Step::end() noexcept {
    if (thread_ == nullptr) {
        return;
    }
    ThreadRecorder& pen = *thread_;
    thread_ = nullptr;
    const std::uint64_t now = pen.recorder->stamp();
    pen.step_plus_one = outer_.step_plus_one;
    pen.layer_plus_one = outer_.layer_plus_one;
    if (!leave(pen, now, mode_, Mark::cut_step)) {
        return;
    }
    if (!pen.push_timed(begin_, pack(RecordKind::step_end, static_cast<std::uint16_t>(phase_)), now - begin_)) {
        pen.drop(Drop::ring_full);
    }
    pen.sample_cpu_time();
    pen.deadline = now + long_ticks;
}

void Layer::begin(Recorder& recorder, std::uint32_t mode, std::uint32_t index) noexcept {
    thread_ = enter(recorder);
    if (thread_ == nullptr) {
        return;
    }
    ThreadRecorder& pen = *thread_;
    mode_ = mode;
    layer_ = index;
    outer_plus_one_ = pen.layer_plus_one;
    pen.layer_plus_one = index + 1;
    begin_ = recorder.stamp();
    push_or_count(pen, begin_, pack(RecordKind::layer_begin, static_cast<std::uint16_t>(index)));
}

void Layer::end() noexcept {
    if (thread_ == nullptr) {
        return;
    }
    ThreadRecorder& pen = *thread_;
    thread_ = nullptr;
    const std::uint64_t now = pen.recorder->stamp();
    pen.layer_plus_one = outer_plus_one_;
    if (!leave(pen, now, mode_, Mark::cut_layer)) {
        return;
    }
    if (!pen.push_timed(begin_, pack(RecordKind::layer_end, static_cast<std::uint16_t>(layer_)), now - begin_)) {
        pen.drop(Drop::ring_full);
    }
}

ContextScope::ContextScope(Recorder& recorder, std::uint32_t, Context context) noexcept : thread_(recorder.thread()) {
    if (thread_ == nullptr) {
        return;
    }
    outer_ = {thread_->step_plus_one, thread_->layer_plus_one};
    thread_->step_plus_one = context.step_plus_one;
    thread_->layer_plus_one = context.layer_plus_one;
    push_or_count(*thread_, context.step_plus_one,
                  pack(RecordKind::context, static_cast<std::uint16_t>(context.layer_plus_one)));
}

ContextScope::~ContextScope() {
    if (thread_ == nullptr) {
        return;
    }
    thread_->step_plus_one = outer_.step_plus_one;
    thread_->layer_plus_one = outer_.layer_plus_one;
    push_or_count(*thread_, 0, pack(RecordKind::context_end));
}

} // namespace v1
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "record/scope_stack.hpp"

#include "base/layout.hpp"

namespace plumb::record {

void end_other(detail::PushedScope& slot) noexcept {
    if (slot.kind == detail::PushedScope::Kind::layer) {
        object_in<Layer>(slot).~Layer();
    } else if (slot.kind == detail::PushedScope::Kind::step) {
        object_in<Step>(slot).~Step();
    } else {
        object_in<ContextScope>(slot).~ContextScope();
    }
}

void drop_stale_scopes(detail::ThreadRecorder& pen, std::uint32_t mode) noexcept {
    pen.pushed_beyond = 0;
    while (pen.pushed_count != 0 && pen.pushed[pen.pushed_count - 1].mode != mode) {
        end_innermost(pen);
    }
}

void push_context(Recorder& recorder, Context context) noexcept {
    const std::uint32_t mode = recorder.mode();
    if ((mode & detail::mode_on) == 0) {
        return;
    }
    if (detail::PushedScope* slot = next_slot(recorder, mode, detail::PushedScope::Kind::context); slot != nullptr) {
        new (slot->object) ContextScope(recorder, mode, context);
    }
}

bool set_pushed_work(Recorder& recorder, const Work& work) noexcept {
    detail::ThreadRecorder* pen = recorder.enabled() ? recorder.thread() : nullptr;
    if (pen == nullptr || pen->pushed_beyond != 0) {
        return true; // off, or counted when it could not begin
    }
    drop_stale(*pen, recorder.mode());
    if (pen->pushed_count == 0 || pen->pushed[pen->pushed_count - 1].kind != detail::PushedScope::Kind::scope) {
        return false;
    }
    object_in<Scope>(pen->pushed[pen->pushed_count - 1]).work(work);
    return true;
}

} // namespace plumb::record

namespace plumb {
inline namespace v1 {

void Recorder::push_brick(Queue queue, Name name, bool has_work, const Work& work) noexcept {
    record::push_scope(*this, queue, name, has_work ? &work : nullptr);
}

void Recorder::push_open_layer(std::uint32_t index) noexcept {
    const std::uint32_t now_mode = mode();
    if (detail::PushedScope* slot = record::next_slot(*this, now_mode, detail::PushedScope::Kind::layer);
        slot != nullptr) {
        new (slot->object) Layer(*this, now_mode, index);
    }
}

void Recorder::push_open_step(Queue queue, Phase phase, const StepValues& values) noexcept {
    const std::uint32_t now_mode = mode();
    if (detail::PushedScope* slot = record::next_slot(*this, now_mode, detail::PushedScope::Kind::step);
        slot != nullptr) {
        new (slot->object) Step(*this, now_mode, queue, phase, values);
    }
}

void Recorder::pop_open() noexcept { (void)record::pop_scope(*this); }

} // namespace v1
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// Scopes, layers and steps without an object of the caller's: the objects lie in the pen of their thread.
// Invariant: what is open was begun in one mode, so that a pop after a toggle cannot end somebody else's scope.
#include <new>

#include "base/layout.hpp"
#include "plumb/record.hpp"

namespace plumb {
inline namespace v1 {
namespace {

template <class T>
T& object_in(detail::PushedScope& slot) noexcept {
    static_assert(sizeof(T) <= sizeof slot.object && alignof(T) <= 8, "a pushed scope fits its slot");
    return *std::launder(reinterpret_cast<T*>(slot.object));
}

void end_innermost(detail::ThreadRecorder& pen) noexcept {
    detail::PushedScope& slot = pen.pushed[--pen.pushed_count];
    switch (slot.kind) {
    case detail::PushedScope::Kind::scope:
        object_in<Scope>(slot).~Scope();
        break;
    case detail::PushedScope::Kind::layer:
        object_in<Layer>(slot).~Layer();
        break;
    case detail::PushedScope::Kind::step:
        object_in<Step>(slot).~Step();
        break;
    }
}

/// What was begun in another mode can no longer be told from what was begun while recording was off. Each counts itself.
void drop_stale(detail::ThreadRecorder& pen, std::uint32_t mode) noexcept {
    if (pen.pushed_count != 0 && pen.pushed[pen.pushed_count - 1].mode != mode) {
        pen.pushed_beyond = 0;
    }
    while (pen.pushed_count != 0 && pen.pushed[pen.pushed_count - 1].mode != mode) {
        end_innermost(pen);
    }
}

/// Null when the thread cannot record, or has too many open (counted).
detail::PushedScope* next_slot(Recorder& recorder, std::uint32_t mode, detail::PushedScope::Kind kind) noexcept {
    detail::ThreadRecorder* pen = recorder.thread();
    if (pen == nullptr) {
        return nullptr;
    }
    drop_stale(*pen, mode);
    if (pen->pushed_count == max_depth) {
        ++pen->pushed_beyond;
        pen->drop(Drop::too_deep);
        return nullptr;
    }
    detail::PushedScope& slot = pen->pushed[pen->pushed_count++];
    slot.mode = mode;
    slot.kind = kind;
    return &slot;
}

} // namespace

void Recorder::push_brick(Queue queue, Name name, bool has_work, const Work& work) noexcept {
    const std::uint32_t now_mode = mode();
    detail::PushedScope* slot = next_slot(*this, now_mode, detail::PushedScope::Kind::scope);
    if (slot == nullptr) {
        return;
    }
    Scope* scope = new (slot->object) Scope(*this, now_mode, queue, name);
    if (has_work) {
        scope->work(bytes(work.bytes), flops(work.flops), elements(work.elements), bytes_per_kv(work.bytes_per_kv));
    }
}

void Recorder::push_open_layer(std::uint32_t index) noexcept {
    const std::uint32_t now_mode = mode();
    if (detail::PushedScope* slot = next_slot(*this, now_mode, detail::PushedScope::Kind::layer); slot != nullptr) {
        new (slot->object) Layer(*this, now_mode, index);
    }
}

void Recorder::push_open_step(Queue queue, Phase phase, const StepValues& values) noexcept {
    const std::uint32_t now_mode = mode();
    if (detail::PushedScope* slot = next_slot(*this, now_mode, detail::PushedScope::Kind::step); slot != nullptr) {
        new (slot->object) Step(*this, now_mode, queue, phase, values);
    }
}

void Recorder::pop_open() noexcept {
    detail::ThreadRecorder* pen = thread();
    if (pen == nullptr) {
        return;
    }
    drop_stale(*pen, mode());
    if (pen->pushed_beyond != 0) {
        --pen->pushed_beyond;
        return;
    }
    if (pen->pushed_count == 0) {
        pen->drop(Drop::bad_token);
        return;
    }
    end_innermost(*pen);
}

} // namespace v1
} // namespace plumb

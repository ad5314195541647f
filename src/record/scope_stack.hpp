// SPDX-License-Identifier: Apache-2.0
// Scopes, layers, steps and contexts without an object of the caller's: the objects lie in the pen of their thread. The way of a
// scope is in line here, for plumb.h: calls within calls would be most of what it costs. Thread rule: the pen's own thread.
// Invariant: what is open was begun in one mode, so that a pop after a toggle cannot end somebody else's scope.
#pragma once

#include <new>

#include "plumb/record.hpp"

namespace plumb::record {

/// The object that lies in a slot.
template <class T>
T& object_in(detail::PushedScope& slot) noexcept {
    static_assert(sizeof(T) <= sizeof slot.object && alignof(T) <= 8, "a pushed scope fits its slot");
    return *std::launder(reinterpret_cast<T*>(slot.object));
}

/// What was begun in another mode can no longer be told from what was begun while recording was off. Each counts itself.
PLUMB_NOINLINE void drop_stale_scopes(detail::ThreadRecorder& pen, std::uint32_t mode) noexcept;
/// Ends what is no scope.
PLUMB_NOINLINE void end_other(detail::PushedScope& slot) noexcept;

PLUMB_ALWAYS_INLINE void drop_stale(detail::ThreadRecorder& pen, std::uint32_t mode) noexcept {
    if (PLUMB_UNLIKELY(pen.pushed_count != 0 && pen.pushed[pen.pushed_count - 1].mode != mode)) {
        drop_stale_scopes(pen, mode);
    }
}

PLUMB_ALWAYS_INLINE void end_innermost(detail::ThreadRecorder& pen) noexcept {
    detail::PushedScope& slot = pen.pushed[--pen.pushed_count];
    if (PLUMB_LIKELY(slot.kind == detail::PushedScope::Kind::scope)) {
        object_in<Scope>(slot).~Scope();
    } else {
        end_other(slot);
    }
}

/// Null when the thread cannot record, or has too many open (counted).
PLUMB_ALWAYS_INLINE detail::PushedScope* next_slot(Recorder& recorder, std::uint32_t mode,
                                                   detail::PushedScope::Kind kind) noexcept {
    detail::ThreadRecorder* pen = recorder.thread();
    if (PLUMB_UNLIKELY(pen == nullptr)) {
        return nullptr;
    }
    drop_stale(*pen, mode);
    if (PLUMB_UNLIKELY(pen->pushed_count == max_depth)) {
        ++pen->pushed_beyond;
        pen->drop(detail::Drop::too_deep);
        return nullptr;
    }
    detail::PushedScope& slot = pen->pushed[pen->pushed_count++];
    slot.mode = mode;
    slot.kind = kind;
    return &slot;
}

/// Recorder::push_scope(), for callers that hold their work behind a pointer; null: none.
PLUMB_ALWAYS_INLINE void push_scope(Recorder& recorder, Queue queue, Name name, const Work* work) noexcept {
    const std::uint32_t mode = recorder.mode();
    if (PLUMB_UNLIKELY((mode & detail::mode_on) == 0)) {
        return;
    }
    if (detail::PushedScope* slot = next_slot(recorder, mode, detail::PushedScope::Kind::scope); slot != nullptr) {
        Scope* scope = new (slot->object) Scope(recorder, mode, queue, name);
        if (work != nullptr) {
            // One by one, so that they stay in registers: what is stored by eight bytes is slow to load by sixteen.
            scope->work(bytes(work->bytes), flops(work->flops), elements(work->elements),
                        bytes_per_kv(work->bytes_per_kv));
        }
    }
}

/// Recorder::pop_scope(); false where there was nothing to end, which it counts. True while off.
PLUMB_ALWAYS_INLINE bool pop_scope(Recorder& recorder) noexcept {
    const std::uint32_t mode = recorder.mode();
    detail::ThreadRecorder* pen = (mode & detail::mode_on) != 0 ? recorder.thread() : nullptr;
    if (PLUMB_UNLIKELY(pen == nullptr)) {
        return true;
    }
    drop_stale(*pen, mode);
    if (PLUMB_UNLIKELY(pen->pushed_beyond != 0)) {
        --pen->pushed_beyond;
        return true;
    }
    if (PLUMB_UNLIKELY(pen->pushed_count == 0)) {
        pen->drop(detail::Drop::bad_token);
        return false;
    }
    end_innermost(*pen);
    return true;
}

/// The calling thread works for that step and layer, until the pop_scope() that ends it. Nothing while off.
void push_context(Recorder& recorder, Context context) noexcept;
/// Work of the innermost push_scope(), known only now; replaces what was given before. False: what was pushed last is no scope.
/// True while off.
bool set_pushed_work(Recorder& recorder, const Work& work) noexcept;

} // namespace plumb::record

// SPDX-License-Identifier: Apache-2.0
// What a device queue's timer is told about a scope. Pure functions of the recording thread's own state.
#pragma once

#include "base/layout.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"

namespace plumb {
inline namespace v1 {

/// Whether the open step is one of those in which queues with a price are timed; outside of steps everything is.
/// By step id, so that all ranks time the same steps; the first step is warm-up and not among them.
inline bool times_this_step(const detail::ThreadRecorder& pen) noexcept {
    const std::uint64_t every = pen.recorder->device_every();
    return every <= 1 || pen.step_plus_one == 0 || pen.step_plus_one % every == 0;
}

inline ScopeLabel label_of(const detail::ThreadRecorder& pen, std::uint64_t bits) noexcept {
    ScopeLabel label;
    label.recorder = pen.recorder;
    label.name = static_cast<std::uint16_t>(bits >> id_shift);
    label.layer_plus_one = static_cast<std::uint16_t>(pen.layer_plus_one);
    label.lap = (bits & flag_lap) != 0;
    label.timed = times_this_step(pen);
    return label;
}

/// Null where the record bits say that no work was given.
inline const Work* given_work(std::uint64_t bits, const Work& work) noexcept {
    return (bits & flag_work) != 0 ? &work : nullptr;
}

} // namespace v1
} // namespace plumb

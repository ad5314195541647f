// SPDX-License-Identifier: Apache-2.0
// Seen by a unit with PLUMB_DISABLE and by one without: the same inline functions, macros that act in one of them.
#pragma once

#include <plumb/plumb.hpp>

/// Inline and the same in both units: whichever copy the linker keeps must record.
inline void shared_run_time_scope(plumb::Profiler& prof) {
    const plumb::Scope scope = prof.scope(plumb::host, plumb::Brick::attention);
}

int enabled_unit(plumb::Profiler& prof);
int disabled_unit(plumb::Profiler& prof);

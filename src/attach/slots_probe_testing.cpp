// SPDX-License-Identifier: Apache-2.0
// A library for slots_test: it calls a function of its own through a slot, and one with a longer name.
#include "plumb/api.hpp"

namespace {
volatile int one = 1; // so that no compiler knows what the functions return
}

extern "C" PLUMB_API PLUMB_NOINLINE int plumb_probe_target() { return one; }
extern "C" PLUMB_API PLUMB_NOINLINE int plumb_probe_target_longer() { return one + 1; }
extern "C" PLUMB_API int plumb_probe_call() { return plumb_probe_target(); }
extern "C" PLUMB_API int plumb_probe_call_longer() { return plumb_probe_target_longer(); }

// SPDX-License-Identifier: Apache-2.0
// What recording costs on this machine now: a few thousand scopes into a scratch ring when a run starts, under 1 ms.
// Plain function; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/clock.hpp"

namespace plumb::session {

/// Nanoseconds by name: "scope", "lap", "clock_reads" (two of them), "floor" (what an empty scope reads). Empty with an
/// injected clock: its time is not this machine's.
std::vector<std::pair<std::string, double>> measure_own_cost(const HostClock* clock, bool serialise, bool injected);

} // namespace plumb::session

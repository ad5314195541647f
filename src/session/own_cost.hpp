// SPDX-License-Identifier: Apache-2.0
// What recording costs on this machine now: a few thousand scopes into a scratch ring when a run starts, under 1 ms.
// Plain function; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "record/recorder_access.hpp"

namespace plumb::session {

/// Nanoseconds by name: "scope", "lap", "layer" (both borders), "cpu_time" (a sample of it), "clock_reads" (two of them),
/// "floor" (what an empty scope reads), "tile" (where tiles are kept), as the sync mode makes them. Empty with an injected clock: its time is not this
/// machine's.
std::vector<std::pair<std::string, double>> measure_own_cost(const StampOptions& stamps, bool injected);

} // namespace plumb::session

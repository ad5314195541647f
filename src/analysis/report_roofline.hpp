// SPDX-License-Identifier: Apache-2.0
// Puts the rooflines of rows and the speed of light of phases into a report that has its rows and peaks. Pure; any thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "plumb/results.hpp"

namespace plumb::analysis {

/// What tells them apart, by the backend that the source of their times names.
using DevicesOfBackends = std::map<std::string, std::set<std::string>>;

/// "cuda_event" -> "cuda".
[[nodiscard]] std::string backend_of(const std::string& source);

/// `damaged`: records are missing that may have told work. `devices`: those that were timed.
void add_rooflines(Report& report, bool damaged, const DevicesOfBackends& devices = {});

/// For a report that has its rooflines: one sentence for each phase with a brick that no cache explains and that moves more
/// than the kept peaks allow, and one for each with bricks whose calls run side by side.
void add_peak_notes(Report& report);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Puts the rooflines of rows and the speed of light of phases into a report that has its rows and peaks. Pure; any thread.
#pragma once

#include "plumb/results.hpp"

namespace plumb::analysis {

/// `damaged`: records are missing that may have told work.
void add_rooflines(Report& report, bool damaged);

/// For a report that has its rooflines: one sentence for each phase with a brick that no cache explains and that moves more
/// than the kept peaks allow, and one for each with bricks whose calls run side by side.
void add_peak_notes(Report& report);

} // namespace plumb::analysis

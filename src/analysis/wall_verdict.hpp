// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, and what there is to gain at most: from the lanes of a phase (docs/reference/wall.md). Pure functions.
#pragma once

#include "analysis/wall_report.hpp"

namespace plumb::analysis {

/// Of the gains, the one whose cause is not known.
inline constexpr const char* gain_of_unknown_cause = "no idle time of unknown cause";

/// Sets bound, reason and gains. REQUIRES: lanes, tokens, steps and in_graph_busy_ns are set.
void judge(WallPhase& phase);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, and what there is to gain at most: from the lanes of a phase (docs/wall.md). Pure functions.
#pragma once

#include "analysis/wall_report.hpp"

namespace plumb::analysis {

/// Sets bound, reason and gains. REQUIRES: lanes, tokens, steps and in_graph_busy_ns are set.
void judge(WallPhase& phase);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Layers of a step in which a brick did not run that runs in the others. Pure; no thread rule.
#pragma once

#include <string>
#include <vector>

#include "plumb/execgraph.hpp"

namespace plumb::analysis {

/// One sentence for each layer whose bricks are those that most layers have, less some. A layer with a brick of its own is
/// of another kind and misses nothing.
[[nodiscard]] std::vector<std::string> missing_bricks(const ExecGraph& graph);

} // namespace plumb::analysis

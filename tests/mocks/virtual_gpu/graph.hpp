// SPDX-License-Identifier: Apache-2.0
// Graphs and executables among themselves. Under the Gpu's lock.
#pragma once

#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

/// A copy of a graph that belongs to a child graph node.
std::shared_ptr<GraphObject> embed(const GraphObject& child);

/// A graph's nodes, child graphs unfolded, each after everything that it waits for; empty if there is a cycle.
bool flatten(const GraphObject& graph, std::vector<ExecNode>* nodes);

} // namespace plumb::vgpu

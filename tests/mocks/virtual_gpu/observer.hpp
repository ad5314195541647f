// SPDX-License-Identifier: Apache-2.0
// What the stand-in libcupti.so needs of the stand-in libcuda.so.1 beyond control.hpp: to hear of graph nodes as they come
// to life, with their ids, and of launches. Under the Gpu's lock.
#pragma once

#include <functional>

#include "virtual_gpu/control.hpp"

namespace plumb::vgpu {

struct NodeBirth {
    bool cloned = false; // from `original`: into a clone, or into an executable
    Graph graph = nullptr;
    GraphNode node = nullptr;
    GraphNode original = nullptr;
    GraphExec exec = nullptr; // null: into a graph
    NodeType type = NodeType::empty;
};
/// Called at each birth until reset(); an empty function ends it.
PLUMB_VGPU_API void observe_births(std::function<void(const NodeBirth&)> observer);
/// Called on the launching thread at each launch of a kernel, a copy or a graph, until reset(); an empty function ends it.
PLUMB_VGPU_API void observe_launches(std::function<void(const Operation&)> observer);
/// 0: no such node. Takes nodes of graphs and those that NodeBirth names for executables.
PLUMB_VGPU_API std::uint64_t node_id(GraphNode node);
/// Operation::graph_id of an executable; 0: no such executable.
PLUMB_VGPU_API std::uint64_t graph_id(GraphExec exec);

void tell_of_birth(const NodeBirth& birth);
void tell_of_launch(const Operation& operation);
GraphNode exec_node_handle(std::uint64_t id);

} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
// From collected nodes and edges to a checked graph in compressed rows, O(V+E). Containment becomes edges only where a node
// that contains others has dependencies of its own: it then begins at its vertex, ends at a further one, and has no weight
// at either, so that a node and what it contains never both count. Owned by one build(); one thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plumb/execgraph.hpp"

namespace plumb {

class GraphAssembly {
  public:
    using Edges = std::vector<std::pair<NodeId, NodeId>>;

    /// Takes over what the graph holds; `edges` is freed as soon as it is not needed.
    GraphAssembly(ExecGraph& graph, Edges& edges) : graph_(graph), edges_(edges) {}

    void take(std::vector<GraphNode>& nodes, std::vector<std::string>& names);
    void take(std::vector<LaunchShape>& launches, std::vector<TransferShape>& transfers, std::vector<TaskShape>& tasks);
    [[nodiscard]] Status run();

  private:
    [[nodiscard]] Status check_nodes();
    [[nodiscard]] Status check_edges();
    void partition();
    void find_ends();
    void connect();
    [[nodiscard]] Status sort();
    void relabel();
    Status weigh();
    [[nodiscard]] Error cycle_error(const std::vector<std::uint32_t>& cycle, const char* what,
                                    const char* advice) const;
    [[nodiscard]] std::uint32_t end_of(NodeId node) const;
    template <class Visit>
    void for_each_edge(Visit&& visit) const;

    ExecGraph& graph_;
    Edges& edges_;
    std::vector<NodeId> around_;         // by node: the nearest outer one with an end vertex; empty where there is none
    std::vector<std::uint32_t> ends_;    // by node: its end vertex; empty where there is none
    std::vector<std::uint32_t> waiting_; // by vertex: edges that lead to it
    bool sorted_ = true;                 // each edge leads to a higher vertex
};

} // namespace plumb

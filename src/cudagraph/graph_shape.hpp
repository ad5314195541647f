// SPDX-License-Identifier: Apache-2.0
// A captured graph as plain data: nodes, what they are, edges. Read once from the driver; nothing is changed by it.
// Owned by whoever holds the value; immutable after read_shape(). Thread rule: read_shape() while nobody changes the graph.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::cudagraph {

inline constexpr unsigned deepest_child = 16; // graphs within graphs within graphs

struct ShapeEdge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool full = true; // false: carries edge data (programmatic launch), so that nothing may come between
};

struct GraphShape {
    std::vector<backends::cuda::GraphNode> nodes; // handles in the graph that was read
    std::vector<backends::cuda::NodeType> types;
    std::vector<std::uint32_t> name_of; // kernel name or node type, per node: an index of `names`
    std::vector<std::string> names;
    std::vector<ShapeEdge> edges;
    // What it consists of, child graphs included: their nodes are numbered behind the graph's own.
    std::vector<recording::CapturedKind> kinds;
    std::vector<std::uint32_t> kind_of;         // per node of both sorts: an index of `kinds`
    std::vector<std::uint32_t> inner_parent_of; // per node of a child graph: the node of that child graph
    std::vector<ShapeEdge> inner_edges;
    std::vector<recording::NamedCount> nodes_by_type; // graphs inside child nodes included
    std::vector<recording::NamedCount> kernels;       // by name, the same; in order of name
    std::unordered_map<backends::cuda::GraphNode, std::uint32_t> index_of;
    backends::cuda::Context context = nullptr; // of the first kernel that tells it
    std::string not_cloneable;                 // why there can be no twin: "n/a (memory nodes)"; empty: there should
};

/// Error: the driver's own answer, with the call that gave it.
[[nodiscard]] Result<GraphShape> read_shape(const backends::cuda::Driver& driver, backends::cuda::Graph graph);

/// "kernel", "memcpy", …; "type 17" for those we do not know.
[[nodiscard]] std::string word_of(backends::cuda::NodeType type);

/// How often each kernel occurs, before against after; only what differs, in order of name.
[[nodiscard]] std::vector<recording::GraphNodeChange> compare_kernels(const std::vector<recording::NamedCount>& before,
                                                                      const std::vector<recording::NamedCount>& after);

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// Which scope each node of a graph belongs to, and where stamps can go. Pure: graphs in, tables out; linear in nodes,
// edges and frontiers (times a logarithm for equal frontiers, and per stream where several take part).
//
// A scope was noted as two capture frontiers: the nodes that its stream's next work would have waited for when the scope
// began and when it ended. Borders of scopes are visited in the order in which they happened; whatever is reached for the
// first time at a border ran since the one before, and so belongs to the innermost scope that was open. Of several
// streams only each one's own order is known; a border of another stream that lies behind a frontier comes first.
#pragma once

#include <cstdint>
#include <vector>

#include "cudagraph/graph_shape.hpp"

namespace plumb::cudagraph {

inline constexpr std::uint32_t no_index = 0xffffffff;

/// A noted scope, frontiers as indexes of nodes. Scopes come in the order in which they began; parents precede children.
struct MappedScope {
    std::uint32_t parent = no_index; // of the same stream
    std::uint32_t stream = 0;        // streams of the capture, counted from 0
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> end;
};

/// A moment of a replay at which time can be taken: when all of `after` have finished.
struct StampPlace {
    std::vector<std::uint32_t> after; // sorted; empty: before the first node
    /// Everything that runs later waits for it, and a stamp put between changes no other dependency: `cut` are the edges
    /// that it is put into. Else it is a leaf: nothing waits for it.
    bool in_line = false;
    std::vector<std::uint32_t> cut; // indexes of edges
    std::uint32_t level = 0;        // places in line that everything in `after` waits for
};

struct NodeMap {
    std::vector<std::uint32_t> owner;       // per node: index of a scope, or no_index
    std::vector<StampPlace> places;         // in order of time; the first is the graph's head, the last its tail
    std::vector<std::uint32_t> begin_place; // per scope
    std::vector<std::uint32_t> end_place;   // per scope; the same as begin_place where the scope holds no node
    std::vector<std::uint32_t> roots;       // nodes that wait for nothing
};

[[nodiscard]] NodeMap map_nodes(const GraphShape& shape, const std::vector<MappedScope>& scopes);

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// What a captured graph consists of, as recordings keep it: its nodes with their scopes, its edges. Pure: a shape and its map
// in, a table out; O(n log n). The value is immutable and may be shared between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cudagraph/graph_shape.hpp"
#include "cudagraph/node_map.hpp"

namespace plumb::cudagraph {

/// Nodes of the shape, those of child graphs too, in an order in which every edge leads forward: of those that may come next
/// the one that was captured first. Fewer than there are where the driver's edges go round.
[[nodiscard]] std::vector<std::uint32_t> order_of(const GraphShape& shape);

/// Nodes in an order in which every edge leads forward, cut to the bounds of recordings; null where the driver's edges go
/// round. A node of a child graph has the scope of that child graph's node.
[[nodiscard]] std::shared_ptr<const recording::GraphContent> content_of(const GraphShape& shape, const NodeMap& map);

} // namespace plumb::cudagraph

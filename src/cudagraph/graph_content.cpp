// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/graph_content.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "recording/graph_content_codec.hpp"

namespace plumb::cudagraph {

std::vector<std::uint32_t> order_of(const GraphShape& shape) {
    const std::size_t own = shape.nodes.size(), all = shape.kind_of.size();
    std::vector<std::vector<std::uint32_t>> later(all);
    std::vector<std::uint32_t> waits_for(all, 0);
    const auto follow = [&](std::uint32_t from, std::uint32_t to) {
        later[from].push_back(to);
        ++waits_for[to];
    };
    for (const auto* edges : {&shape.edges, &shape.inner_edges}) {
        for (const ShapeEdge& edge : *edges) {
            follow(edge.from, edge.to);
        }
    }
    for (std::size_t i = own; i < all; ++i) {
        follow(shape.inner_parent_of[i - own], static_cast<std::uint32_t>(i));
    }
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < all; ++i) {
        if (waits_for[i] == 0) {
            ready.push(i);
        }
    }
    std::vector<std::uint32_t> order;
    order.reserve(all);
    while (!ready.empty()) {
        const std::uint32_t node = ready.top();
        ready.pop();
        order.push_back(node);
        for (const std::uint32_t next : later[node]) {
            if (--waits_for[next] == 0) {
                ready.push(next);
            }
        }
    }
    return order;
}

std::shared_ptr<const recording::GraphContent> content_of(const GraphShape& shape, const NodeMap& map) {
    const std::size_t own = shape.nodes.size(), all = shape.kind_of.size();
    const std::vector<std::uint32_t> order = order_of(shape);
    if (order.size() != all) {
        return nullptr;
    }
    recording::GraphContent content;
    content.kinds = shape.kinds;
    std::vector<std::uint32_t> place(all, no_index);
    for (const std::uint32_t node : order) {
        place[node] = static_cast<std::uint32_t>(content.nodes.size());
        recording::CapturedNode made;
        made.kind = shape.kind_of[node];
        if (node < own) {
            made.site_plus_one = map.owner[node] + 1; // no_index: 0
        } else {
            made.parent_plus_one = place[shape.inner_parent_of[node - own]] + 1;
            made.site_plus_one = content.nodes[made.parent_plus_one - 1].site_plus_one;
        }
        content.nodes.push_back(made);
    }
    for (const auto* edges : {&shape.edges, &shape.inner_edges}) {
        for (const ShapeEdge& edge : *edges) {
            content.edges.emplace_back(place[edge.from], place[edge.to]);
        }
    }
    std::sort(content.edges.begin(), content.edges.end());
    return std::make_shared<const recording::GraphContent>(recording::bounded(std::move(content)));
}

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// The two passes in topological order that give path and slack.
#include <algorithm>
#include <limits>

#include "plumb/execgraph.hpp"

namespace plumb {

/// All by row. What contains others begins and ends without weight.
struct ExecGraph::Passes {
    const ExecGraph& graph;

    [[nodiscard]] std::int64_t weight(std::uint32_t row) const {
        return std::max<std::int64_t>(graph.weights_[row], 0);
    }

    /// The longest way from the begin of each to the end of everything.
    template <class Weight>
    [[nodiscard]] std::vector<std::int64_t> tails(Weight&& weight_of) const {
        std::vector<std::int64_t> tails(graph.rows(), 0);
        for (auto row = static_cast<std::uint32_t>(graph.rows()); row-- > 0;) {
            std::int64_t longest = 0;
            for (std::uint64_t e = graph.offsets_[row]; e < graph.offsets_[row + 1]; ++e) {
                longest = std::max(longest, tails[graph.targets_[e]]);
            }
            tails[row] = longest + weight_of(row);
        }
        return tails;
    }

    /// The longest way from the begin of everything to the begin of each.
    [[nodiscard]] std::vector<std::int64_t> heads() const {
        std::vector<std::int64_t> heads(graph.rows(), 0);
        for (std::uint32_t row = 0; row < heads.size(); ++row) {
            const std::int64_t end = heads[row] + weight(row);
            for (std::uint64_t e = graph.offsets_[row]; e < graph.offsets_[row + 1]; ++e) {
                heads[graph.targets_[e]] = std::max(heads[graph.targets_[e]], end);
            }
        }
        return heads;
    }

    [[nodiscard]] std::vector<NodeId> path(const std::vector<std::int64_t>& tails) const {
        std::vector<NodeId> path;
        if (tails.empty()) {
            return path;
        }
        auto at = static_cast<std::uint32_t>(std::max_element(tails.begin(), tails.end()) - tails.begin());
        for (;;) {
            if (graph.weights_[at] >= 0 && graph.nodes_[graph.node_of_row(at)].timed) {
                path.push_back(graph.node_of_row(at));
            }
            const std::int64_t rest = tails[at] - weight(at);
            std::uint64_t e = graph.offsets_[at];
            while (e < graph.offsets_[at + 1] && tails[graph.targets_[e]] != rest) {
                ++e;
            }
            if (e == graph.offsets_[at + 1]) {
                return path;
            }
            at = graph.targets_[e];
        }
    }

    /// Turns the times before each leaf into its slack, by node; `before` is used up.
    [[nodiscard]] std::vector<std::int64_t> slack(std::vector<std::int64_t>& before,
                                                  const std::vector<std::int64_t>& tails, std::int64_t length) const {
        constexpr auto none = std::numeric_limits<std::int64_t>::max();
        for (std::size_t row = 0; row < before.size(); ++row) {
            before[row] = graph.weights_[row] < 0 ? none : length - before[row] - tails[row];
        }
        std::vector<std::int64_t> slack;
        if (graph.order_.empty()) {
            slack = std::move(before);
            slack.resize(graph.nodes_.size());
        } else {
            slack.resize(graph.nodes_.size());
            for (std::size_t row = 0; row < before.size(); ++row) {
                if (graph.order_[row] < slack.size()) {
                    slack[graph.order_[row]] = before[row];
                }
            }
        }
        spread(slack);
        return slack;
    }

    void spread(std::vector<std::int64_t>& slack) const {
        const auto give = [&](NodeId id) {
            const NodeId parent = graph.nodes_[id].parent;
            if (parent != no_node) {
                slack[parent] = std::min(slack[parent], slack[id]);
            }
        };
        if (!graph.containment_) {
            return;
        }
        if (graph.outer_first_) {
            for (auto id = static_cast<NodeId>(graph.nodes_.size()); id-- > 0;) {
                give(id);
            }
            return;
        }
        const std::vector<NodeId> order = graph.outer_first();
        for (auto id = order.rbegin(); id != order.rend(); ++id) {
            give(*id);
        }
    }
};

PathAnalysis ExecGraph::analyse() const {
    const Passes passes{*this};
    const std::vector<std::int64_t> tails = passes.tails([&](std::uint32_t row) { return passes.weight(row); });
    PathAnalysis result;
    result.path = passes.path(tails);
    result.length_ns = tails.empty() ? 0 : *std::max_element(tails.begin(), tails.end());
    std::vector<std::int64_t> before = passes.heads();
    result.slack_ns = passes.slack(before, tails, result.length_ns);
    return result;
}

std::int64_t ExecGraph::length_without(const GraphNode& like) const {
    const Passes passes{*this};
    const std::vector<std::int64_t> tails = passes.tails([&](std::uint32_t row) {
        const GraphNode& node = nodes_[node_of_row(row)];
        const bool left_out = node.name == like.name && node.kind == like.kind && node.device == like.device;
        return left_out ? 0 : passes.weight(row);
    });
    return tails.empty() ? 0 : *std::max_element(tails.begin(), tails.end());
}

std::int64_t ExecGraph::length_without_all(const std::vector<NodeId>& leaves) const {
    std::vector<bool> left_out(nodes_.size());
    for (const NodeId id : leaves) {
        left_out[id] = true;
    }
    const Passes passes{*this};
    const std::vector<std::int64_t> tails =
        passes.tails([&](std::uint32_t row) { return left_out[node_of_row(row)] ? 0 : passes.weight(row); });
    return tails.empty() ? 0 : *std::max_element(tails.begin(), tails.end());
}

std::vector<NodeId> ExecGraph::outer_first() const {
    std::vector<NodeId> order;
    order.reserve(nodes_.size());
    if (outer_first_) {
        for (NodeId id = 0; id < nodes_.size(); ++id) {
            order.push_back(id);
        }
        return order;
    }
    // Inner ones by outer one, as linked lists; what a circle holds never gets a turn.
    std::vector<NodeId> first(nodes_.size(), no_node), next(nodes_.size(), no_node);
    for (auto id = static_cast<NodeId>(nodes_.size()); id > 0; --id) {
        const NodeId parent = nodes_[id - 1].parent;
        if (parent == no_node) {
            continue;
        }
        next[id - 1] = first[parent];
        first[parent] = id - 1;
    }
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        if (nodes_[id].parent == no_node) {
            order.push_back(id);
        }
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
        for (NodeId inner = first[order[at]]; inner != no_node; inner = next[inner]) {
            order.push_back(inner);
        }
    }
    return order;
}

} // namespace plumb

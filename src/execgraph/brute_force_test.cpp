// SPDX-License-Identifier: Apache-2.0
// Small random graphs against an answer that knows no better than to try every path.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

constexpr int graphs = 100'000;
constexpr std::size_t most_nodes = 9;

struct Planted {
    std::vector<GraphNode> nodes;
    std::vector<std::pair<NodeId, NodeId>> edges;
};

std::vector<NodeId> leaves_of(const Planted& planted, NodeId outer) {
    std::vector<NodeId> leaves;
    for (NodeId id = 0; id < planted.nodes.size(); ++id) {
        if (planted.nodes[id].container) {
            continue;
        }
        for (NodeId at = id; at != no_node; at = planted.nodes[at].parent) {
            if (at == outer) {
                leaves.push_back(id);
                break;
            }
        }
    }
    return leaves;
}

/// Node numbers are in no order of time: each leaf's place in time is drawn apart.
Planted draw(std::mt19937_64& random) {
    const auto below = [&random](std::size_t n) {
        return static_cast<std::size_t>(random() % n);
    };
    Planted planted;
    const std::size_t size = 1 + below(most_nodes);
    std::vector<NodeId> numbers(size);
    for (std::size_t i = 0; i < size; ++i) {
        numbers[i] = static_cast<NodeId>(i);
    }
    std::shuffle(numbers.begin(), numbers.end(), random);
    planted.nodes.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        planted.nodes[i].duration_ns = static_cast<std::int64_t>(below(4) == 0 ? 0 : below(50));
        // Containment without circles: an outer one stands before it in the shuffled row.
        if (i > 0 && below(3) == 0) {
            planted.nodes[numbers[i]].parent = numbers[below(i)];
            planted.nodes[planted.nodes[numbers[i]].parent].container = true;
        }
    }
    std::vector<NodeId> time(size);
    for (std::size_t i = 0; i < size; ++i) {
        time[i] = static_cast<NodeId>(i);
    }
    std::shuffle(time.begin(), time.end(), random);
    const bool any_edge = below(10) == 0; // some with cycles
    const std::size_t tries = below(3 * size);
    for (std::size_t i = 0; i < tries; ++i) {
        const auto from = static_cast<NodeId>(below(size)), to = static_cast<NodeId>(below(size));
        std::size_t last = 0, first = size;
        for (const NodeId leaf : leaves_of(planted, from)) {
            last = std::max<std::size_t>(last, time[leaf]);
        }
        for (const NodeId leaf : leaves_of(planted, to)) {
            first = std::min<std::size_t>(first, time[leaf]);
        }
        if (any_edge || last < first) {
            planted.edges.emplace_back(from, to);
        }
    }
    return planted;
}

/// Which leaf must end before which other begins.
std::vector<std::vector<NodeId>> leaf_edges(const Planted& planted) {
    std::vector<std::vector<NodeId>> after(planted.nodes.size());
    for (const auto& [from, to] : planted.edges) {
        for (const NodeId a : leaves_of(planted, from)) {
            for (const NodeId b : leaves_of(planted, to)) {
                after[a].push_back(b);
            }
        }
    }
    return after;
}

struct Truth {
    std::vector<std::int64_t> through; // by leaf: the longest path it lies on
    std::int64_t length = 0;
    bool cycle = false;
};

void try_all(const Planted& planted, const std::vector<std::vector<NodeId>>& after, std::vector<NodeId>& path,
             std::int64_t length, Truth& truth) {
    for (const NodeId id : path) {
        truth.through[id] = std::max(truth.through[id], length);
    }
    truth.length = std::max(truth.length, length);
    const std::vector<NodeId>& next = after[path.back()];
    for (auto at = next.begin(); at != next.end() && !truth.cycle; ++at) {
        if (std::find(next.begin(), at, *at) != at) {
            continue;
        }
        if (std::find(path.begin(), path.end(), *at) != path.end()) {
            truth.cycle = true;
            return;
        }
        path.push_back(*at);
        try_all(planted, after, path, length + planted.nodes[*at].duration_ns, truth);
        path.pop_back();
    }
}

Truth truth_of(const Planted& planted) {
    Truth truth;
    truth.through.assign(planted.nodes.size(), 0);
    const auto after = leaf_edges(planted);
    for (NodeId id = 0; id < planted.nodes.size() && !truth.cycle; ++id) {
        if (planted.nodes[id].container) {
            continue;
        }
        std::vector<NodeId> path{id};
        try_all(planted, after, path, planted.nodes[id].duration_ns, truth);
    }
    return truth;
}

/// Empty: as it should be.
std::string difference(const Planted& planted, const Truth& truth, const ExecGraph& graph) {
    const PathAnalysis found = graph.analyse();
    if (found.length_ns != truth.length) {
        return "length " + std::to_string(found.length_ns) + ", not " + std::to_string(truth.length);
    }
    std::int64_t sum = 0;
    for (const NodeId id : found.path) {
        sum += planted.nodes[id].duration_ns;
        if (planted.nodes[id].container) {
            return "node " + std::to_string(id) + " contains others and is on the path";
        }
        if (truth.through[id] != truth.length) {
            return "node " + std::to_string(id) + " is on the path and must not be";
        }
    }
    if (sum != truth.length) {
        return "the path's parts are " + std::to_string(sum) + " long, not " + std::to_string(truth.length);
    }
    for (NodeId id = 0; id < planted.nodes.size(); ++id) {
        std::int64_t slack = truth.length;
        for (const NodeId leaf : leaves_of(planted, id)) {
            slack = std::min(slack, truth.length - truth.through[leaf]);
        }
        if (found.slack_ns[id] != slack) {
            return "node " + std::to_string(id) + " has slack " + std::to_string(found.slack_ns[id]) + ", not " +
                   std::to_string(slack);
        }
    }
    return {};
}

TEST(ExecGraphBruteForce, T10_a_hundred_thousand_random_graphs_have_the_path_and_slack_that_trying_every_path_finds) {
    std::mt19937_64 random(20);
    int cycles = 0, containers = 0, out_of_order = 0;
    for (int i = 0; i < graphs; ++i) {
        const Planted planted = draw(random);
        const Truth truth = truth_of(planted);
        ExecGraphBuilder builder;
        const std::uint32_t name = builder.name("x");
        for (GraphNode node : planted.nodes) {
            node.name = name;
            builder.add(node);
            containers += node.container ? 1 : 0;
        }
        for (const auto& [from, to] : planted.edges) {
            builder.depend(from, to);
            out_of_order += from > to ? 1 : 0;
        }
        const Result<ExecGraph> graph = builder.build();
        cycles += truth.cycle ? 1 : 0;
        ASSERT_EQ(graph.ok(), !truth.cycle) << "graph " << i;
        const std::string wrong = graph.ok() ? difference(planted, truth, *graph) : "";
        ASSERT_EQ(wrong, "") << "graph " << i;
    }
    EXPECT_GT(cycles, graphs / 100);
    EXPECT_GT(containers, graphs / 10);
    EXPECT_GT(out_of_order, graphs / 10);
}

} // namespace
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

struct Builder {
    ExecGraphBuilder builder;

    NodeId add(const std::string& name, std::int64_t duration, NodeId parent = no_node) {
        GraphNode node;
        node.name = builder.name(name);
        node.duration_ns = duration;
        node.parent = parent;
        return builder.add(node);
    }
    ExecGraph build() {
        auto graph = builder.build();
        EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
        return graph.ok() ? std::move(*graph) : ExecGraph();
    }
};

TEST(CriticalPath, T10_a_parent_and_its_child_never_both_count) {
    Builder b;
    const NodeId layer = b.add("layer", 100);
    const NodeId first = b.add("first", 40, layer), second = b.add("second", 50, layer);
    b.builder.depend(first, second);
    const ExecGraph graph = b.build();
    const PathAnalysis found = graph.analyse();
    EXPECT_EQ(found.length_ns, 90);
    EXPECT_EQ(found.path, (std::vector<NodeId>{first, second}));
}

TEST(CriticalPath, T10_an_edge_to_a_parent_holds_for_all_that_it_contains_at_any_depth) {
    Builder b;
    const NodeId earlier = b.add("earlier", 10);
    const NodeId outer = b.add("outer", 1000), middle = b.add("middle", 1000, outer);
    const NodeId inner = b.add("inner", 7, middle), later = b.add("later", 20);
    b.builder.depend(earlier, outer);
    b.builder.depend(outer, later);
    const ExecGraph graph = b.build();
    const PathAnalysis found = graph.analyse();
    EXPECT_EQ(found.length_ns, 37);
    EXPECT_EQ(found.path, (std::vector<NodeId>{earlier, inner, later}));
    EXPECT_EQ(found.slack_ns[outer], 0);
}

TEST(CriticalPath, T10_slack_does_not_depend_on_the_order_nodes_were_added_in) {
    // short: a(10) -> c(5); long: b(30); both before d(1). Added backwards and forwards.
    for (const bool backwards : {false, true}) {
        Builder b;
        std::int64_t durations[] = {10, 30, 5, 1};
        NodeId ids[4];
        for (int i = 0; i < 4; ++i) {
            const int which = backwards ? 3 - i : i;
            ids[which] = b.add(std::string(1, static_cast<char>('a' + which)), durations[which]);
        }
        b.builder.depend(ids[0], ids[2]);
        b.builder.depend(ids[2], ids[3]);
        b.builder.depend(ids[1], ids[3]);
        const ExecGraph graph = b.build();
        const PathAnalysis found = graph.analyse();
        EXPECT_EQ(found.length_ns, 31);
        EXPECT_EQ(found.path, (std::vector<NodeId>{ids[1], ids[3]}));
        EXPECT_EQ(found.slack_ns[ids[0]], 15);
        EXPECT_EQ(found.slack_ns[ids[1]], 0);
        EXPECT_EQ(found.slack_ns[ids[2]], 15);
        EXPECT_EQ(found.slack_ns[ids[3]], 0);
    }
}

TEST(CriticalPath, what_a_part_is_worth_ends_where_the_next_path_begins) {
    Builder b;
    b.add("long", 100);
    b.add("next", 70);
    const ExecGraph graph = b.build();
    EXPECT_EQ(graph.length_without(graph[0]), 70) << "not 0: the other one is still there";
    EXPECT_EQ(graph.length_without(graph[1]), 100);
}

/// Two ways of 100 and 70; the first is two parts of 50.
TEST(CriticalPath, what_several_parts_are_worth_together_is_not_the_sum_of_what_each_is) {
    Builder b;
    const NodeId there = b.add("there", 50), back = b.add("back", 50), beside = b.add("beside", 70);
    b.builder.depend(there, back);
    const ExecGraph graph = b.build();
    EXPECT_EQ(graph.length_without_all({there}), 70);
    EXPECT_EQ(graph.length_without_all({there, back}), 70) << "not 40 shorter";
    EXPECT_EQ(graph.length_without_all({there, back, beside}), 0);
}

TEST(CriticalPath, a_part_of_the_host_is_not_one_of_the_device_that_has_its_name) {
    ExecGraphBuilder builder;
    GraphNode part;
    part.name = builder.name("attention");
    part.duration_ns = 30;
    const NodeId host = builder.add(part);
    part.device = true;
    part.duration_ns = 40;
    const NodeId device = builder.add(part);
    builder.depend(host, device);
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(graph->length_without((*graph)[host]), 40);
    EXPECT_EQ(graph->length_without((*graph)[device]), 30);
}

TEST(CriticalPath, T10_a_chain_of_a_million_in_the_wrong_order_is_no_deep_recursion) {
    Builder b;
    constexpr NodeId count = 1'000'000;
    b.builder.reserve(count, count);
    for (NodeId i = 0; i < count; ++i) {
        b.add("n", 1);
        if (i > 0) {
            b.builder.depend(i, i - 1);
        }
    }
    const PathAnalysis found = b.build().analyse();
    EXPECT_EQ(found.length_ns, count);
    EXPECT_EQ(found.path.front(), count - 1);
}

} // namespace
} // namespace plumb

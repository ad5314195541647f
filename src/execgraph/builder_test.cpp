// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

NodeId add(ExecGraphBuilder& builder, const std::string& name, std::int64_t duration = 1, NodeId parent = no_node) {
    GraphNode node;
    node.name = builder.name(name);
    node.duration_ns = duration;
    node.parent = parent;
    return builder.add(node);
}

std::string error_of(ExecGraphBuilder& builder) {
    const auto graph = builder.build();
    return graph.ok() ? "" : graph.error().message;
}

TEST(ExecGraphBuilder, T10_a_cycle_is_an_error_that_names_its_nodes_and_no_others) {
    ExecGraphBuilder builder;
    const NodeId before = add(builder, "before"), a = add(builder, "gate"), b = add(builder, "up");
    const NodeId c = add(builder, "down"), after = add(builder, "after");
    builder.depend(before, a);
    builder.depend(a, b);
    builder.depend(b, c);
    builder.depend(c, a);
    builder.depend(c, after);
    EXPECT_EQ(error_of(builder), "the dependencies form a cycle: gate (node 1) -> up (node 2) -> down (node 3) -> gate "
                                 "(node 1); remove one of them");
}

TEST(ExecGraphBuilder, T10_a_node_that_waits_for_itself_or_for_what_contains_it_is_a_cycle) {
    ExecGraphBuilder builder;
    const NodeId alone = add(builder, "alone");
    builder.depend(alone, alone);
    EXPECT_NE(error_of(builder).find("cycle: alone (node 0) -> alone (node 0)"), std::string::npos);
    for (const bool inward : {false, true}) {
        const NodeId outer = add(builder, "layer"), inner = add(builder, "brick", 1, outer);
        builder.depend(inward ? outer : inner, inward ? inner : outer);
        const std::string error = error_of(builder);
        EXPECT_NE(error.find("layer (node 0)"), std::string::npos) << error;
        EXPECT_NE(error.find("brick (node 1)"), std::string::npos) << error;
    }
}

TEST(ExecGraphBuilder, T11_nodes_that_contain_each_other_in_a_circle_are_an_error_not_an_endless_tree) {
    ExecGraphBuilder builder;
    add(builder, "fine");
    const NodeId a = add(builder, "outer"), b = add(builder, "inner", 1, a);
    builder.contain(b, a);
    EXPECT_EQ(error_of(builder),
              "nodes contain each other in a circle: outer (node 1) -> inner (node 2) -> outer (node "
              "1); give each node an outer one that does not lie inside it");
    const NodeId self = add(builder, "self");
    builder.contain(self, self);
    EXPECT_NE(error_of(builder).find("self (node 0) -> self (node 0)"), std::string::npos);
}

TEST(ExecGraphBuilder, a_long_cycle_is_named_by_its_first_nodes) {
    ExecGraphBuilder builder;
    for (NodeId i = 0; i < 100'000; ++i) {
        add(builder, "n" + std::to_string(i));
        builder.depend(i, i == 99'999 ? 0 : i + 1);
    }
    const std::string error = error_of(builder);
    EXPECT_NE(error.find("n0 (node 0) -> n1 (node 1)"), std::string::npos) << error;
    EXPECT_NE(error.find("99992 more"), std::string::npos) << error;
    EXPECT_LT(error.size(), 400u);
}

TEST(ExecGraphBuilder, T11_more_than_100000_nodes_are_no_limit) {
    ExecGraphBuilder builder;
    for (NodeId i = 0; i < 300'000; ++i) {
        add(builder, "n");
        if (i > 0) {
            builder.depend(i - 1, i);
        }
    }
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(graph->size(), 300'000u);
    EXPECT_EQ(graph->analyse().path.size(), 300'000u);
}

TEST(ExecGraphBuilder, what_was_never_added_and_negative_times_are_errors) {
    ExecGraphBuilder builder;
    builder.depend(add(builder, "a"), 7);
    EXPECT_EQ(error_of(builder), "an edge names node 7, which was never added; add that one first");
    add(builder, "a", 1, 9);
    EXPECT_NE(error_of(builder).find("lies inside node 9, which was never added"), std::string::npos);
    builder.contain(0, 3);
    EXPECT_NE(error_of(builder).find("never added"), std::string::npos);
    add(builder, "late", -1);
    EXPECT_NE(error_of(builder).find("node 0 (late) has a negative duration"), std::string::npos);
    GraphNode nameless;
    nameless.name = 3;
    builder.add(nameless);
    EXPECT_NE(error_of(builder).find("has no name"), std::string::npos);
}

TEST(ExecGraphBuilder, a_node_may_be_told_what_contains_it_before_either_is_added) {
    ExecGraphBuilder builder;
    builder.contain(0, 1);
    add(builder, "layer", 10);
    add(builder, "brick", 10);
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ((*graph)[1].parent, 0u);
    EXPECT_EQ(graph->edges(), 0u);
    EXPECT_EQ(graph->analyse().length_ns, 10) << "the one is the time of the other";
    add(builder, "alone");
    builder.contain(0, 3);
    EXPECT_EQ(error_of(builder), "node 3, which was never added, lies inside node 0; add that one too");
}

TEST(ExecGraphBuilder, durations_that_no_path_could_sum_up_are_an_error) {
    ExecGraphBuilder builder;
    constexpr std::int64_t absurd = (std::int64_t{1} << 62) - 1;
    const NodeId first = add(builder, "a", absurd), second = add(builder, "a", absurd),
                 third = add(builder, "a", absurd);
    builder.depend(first, second);
    builder.depend(second, third);
    EXPECT_NE(error_of(builder).find("292 years"), std::string::npos);
}

TEST(ExecGraphBuilder, an_empty_graph_has_no_path) {
    ExecGraphBuilder builder;
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(graph->analyse().length_ns, 0);
    EXPECT_TRUE(graph->analyse().path.empty());
    EXPECT_TRUE(graph->slowest_kernels(3).empty());
}

TEST(ExecGraphBuilder, a_name_has_one_number_however_many_there_are) {
    ExecGraphBuilder builder;
    for (std::uint32_t i = 0; i < 5'000; ++i) {
        ASSERT_EQ(builder.name("name " + std::to_string(i)), i);
    }
    for (std::uint32_t i = 0; i < 5'000; ++i) {
        ASSERT_EQ(builder.name("name " + std::to_string(i)), i);
    }
}

} // namespace
} // namespace plumb

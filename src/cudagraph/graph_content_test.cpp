// SPDX-License-Identifier: Apache-2.0
// What a recording is told about the nodes of a captured graph.
#include "cudagraph/graph_content.hpp"

#include <gtest/gtest.h>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using recording::GraphContent;

std::string name_of_node(const GraphContent& content, std::size_t node) {
    return content.kinds[content.nodes[node].kind].name;
}

/// Name, scope and layer of each node, in order of name.
record::Words nodes_of(const recording::GraphInfo& row) {
    record::Words lines;
    for (std::size_t i = 0; i < row.content->nodes.size(); ++i) {
        const std::uint32_t site = row.content->nodes[i].site_plus_one;
        lines.push_back(name_of_node(*row.content, i) +
                        (site == 0 ? std::string(" in no scope")
                         : site > row.sites.size()
                             ? std::string(" in a scope that is not there")
                             : " in " + std::to_string(row.sites[site - 1].name - first_name) + " of layer " +
                                   std::to_string(row.sites[site - 1].layer_plus_one - 1)));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

record::Words edges_of(const GraphContent& content) {
    record::Words lines;
    for (const auto& [from, to] : content.edges) {
        lines.push_back(name_of_node(content, from) + " -> " + name_of_node(content, to));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

/// Two bricks of three kernels each; within the second, one kernel runs beside another. k0, outside any scope, comes first.
KnownGraph capture_fork(ProbeBench& bench, std::int64_t ns = 10'000) {
    bench.begin_capture();
    bench.kernel(ns);
    bench.layer(4, [&] {
        bench.scope([&] {
            for (int i = 0; i < 3; ++i) {
                bench.kernel(ns);
            }
        });
        bench.scope([&] {
            bench.kernel(ns);
            bench.fork([&] { bench.kernel(ns, true); });
            bench.kernel(ns);
            bench.join();
        });
    });
    bench.kernel(ns);
    return bench.end_capture();
}

TEST(GraphContent, F6_every_kernel_of_a_captured_graph_has_its_name_brick_layer_and_edges_though_it_never_ran) {
    ProbeBench bench;
    const auto probe = bench.captured(7, capture_fork(bench));
    const recording::GraphInfo row = bench.row(7);
    ASSERT_NE(row.content, nullptr);
    EXPECT_EQ(nodes_of(row),
              (record::Words{"k0 in no scope", "k1 in 0 of layer 4", "k2 in 0 of layer 4", "k3 in 0 of layer 4",
                             "k4 in 1 of layer 4", "k5 in 1 of layer 4", "k6 in 1 of layer 4", "k7 in no scope"}));
    EXPECT_EQ(edges_of(*row.content), (record::Words{"k0 -> k1", "k1 -> k2", "k2 -> k3", "k3 -> k4", "k4 -> k5",
                                                     "k4 -> k6", "k5 -> k7", "k6 -> k7"}));
    for (const auto& [from, to] : row.content->edges) {
        EXPECT_LT(from, to);
    }
    EXPECT_TRUE(row.content->kinds[0].shaped);
    EXPECT_GE(row.content->kinds[0].block[0], 1u);
    EXPECT_EQ(row.replays, 0u);
}

TEST(GraphContent, a_key_captured_anew_has_the_nodes_of_the_last_capture) {
    ProbeBench bench;
    const auto first = bench.captured(7, capture_fork(bench));
    const auto old = bench.row(7).content;
    bench.begin_capture();
    bench.scope([&] { bench.named_kernel("fused", 9'000); });
    const auto second = bench.captured(7, bench.end_capture());
    const recording::GraphInfo row = bench.row(7);
    ASSERT_NE(row.content, nullptr);
    EXPECT_NE(row.content, old);
    ASSERT_EQ(row.content->nodes.size(), 1u);
    EXPECT_EQ(name_of_node(*row.content, 0), "fused");
    bench.recorder.off();
    const auto third = bench.captured(7, capture_fork(bench));
    EXPECT_EQ(bench.row(7).content, nullptr) << "nobody looked into this one";
}

TEST(GraphContent, nodes_of_a_child_graph_lie_in_its_node_and_in_its_scope) {
    ProbeBench bench;
    bench.begin_capture();
    bench.named_kernel("inner_first", 1'000);
    bench.named_kernel("inner_second", 1'000);
    const KnownGraph child = bench.end_capture();
    bench.begin_capture();
    bench.layer(2, [&] {
        bench.scope([&] {
            bench.kernel(1'000);
            EXPECT_EQ(bench.engine.cu.graph_launch(child.exec, bench.stream), vgpu::CuResult::success);
        });
    });
    const auto probe = bench.captured(7, bench.end_capture());
    const recording::GraphInfo row = bench.row(7);
    ASSERT_NE(row.content, nullptr);
    const GraphContent& content = *row.content;
    ASSERT_EQ(content.nodes.size(), 4u);
    std::map<std::string, std::uint32_t> place;
    for (std::uint32_t i = 0; i < 4; ++i) {
        place[name_of_node(content, i)] = i;
        EXPECT_EQ(content.nodes[i].site_plus_one, 1u) << name_of_node(content, i);
    }
    EXPECT_EQ(content.nodes[place.at("inner_first")].parent_plus_one, place.at("child graph") + 1);
    EXPECT_EQ(content.nodes[place.at("inner_second")].parent_plus_one, place.at("child graph") + 1);
    EXPECT_EQ(content.nodes[place.at("child graph")].parent_plus_one, 0u);
    EXPECT_NE(std::find(content.edges.begin(), content.edges.end(),
                        std::pair(place.at("inner_first"), place.at("inner_second"))),
              content.edges.end());
}

TEST(GraphContent, edges_that_go_round_have_no_table) {
    GraphShape shape;
    shape.nodes.resize(2);
    shape.kinds = {{0, "a"}};
    shape.kind_of = {0, 0};
    shape.edges = {{0, 1}, {1, 0}};
    NodeMap map;
    map.owner = {no_index, no_index};
    EXPECT_EQ(content_of(shape, map), nullptr);
    shape.edges.pop_back();
    const auto content = content_of(shape, map);
    ASSERT_NE(content, nullptr);
    EXPECT_EQ(content->edges.size(), 1u);
}

} // namespace
} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// Graphs on the virtual GPU, as far as no truth says it.
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

constexpr CuResult ok = CuResult::success;

struct GraphTest {
    GraphTest() : cu(engine.cu) { cu.graph_create(&graph, 0); }

    GraphNode kernel_node(const char* name, const std::vector<GraphNode>& after = {}, Graph to = nullptr) {
        const KernelNodeParams p{engine.function(name), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr, nullptr};
        GraphNode node = nullptr;
        EXPECT_EQ(cu.graph_add_kernel_node(&node, to != nullptr ? to : graph, after.data(), after.size(), &p), ok);
        return node;
    }
    GraphExec instantiate() {
        GraphExec exec = nullptr;
        EXPECT_EQ(cu.graph_instantiate(&exec, graph, 0), ok);
        return exec;
    }

    Engine engine;
    EngineDriver& cu;
    Graph graph = nullptr;
};

TEST(Graphs, with_conditional_nodes_cannot_be_cloned) {
    GraphTest t;
    add_bare_node(t.graph, NodeType::conditional);
    Graph clone = nullptr;
    EXPECT_EQ(t.cu.graph_clone(&clone, t.graph), CuResult::not_supported);
}

TEST(Graphs, find_copies_in_clones_only) {
    GraphTest t;
    const GraphNode node = t.kernel_node("k");
    GraphNode copy = nullptr;
    EXPECT_NE(t.cu.graph_node_find_in_clone(&copy, node, t.graph), ok);
}

TEST(Graphs, that_are_gone_are_noticed_in_calls_on_their_executables) {
    GraphTest t;
    const GraphNode node = t.kernel_node("k");
    const GraphExec exec = t.instantiate();
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, node, 0), ok);
    t.cu.graph_destroy(t.graph);
    EXPECT_NE(t.cu.graph_node_set_enabled(exec, node, 1), ok);
    EXPECT_EQ(errors().size(), 1u);
    EXPECT_EQ(t.cu.graph_launch(exec, t.engine.stream()), ok);
}

TEST(Graphs, refuse_cycles_and_foreign_nodes) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a"), b = t.kernel_node("b", {a});
    ASSERT_EQ(t.cu.graph_add_dependencies_v12030(t.graph, &b, &a, nullptr, 1), ok);
    GraphExec exec = nullptr;
    EXPECT_NE(t.cu.graph_instantiate(&exec, t.graph, 0), ok);
    Graph other = nullptr;
    t.cu.graph_create(&other, 0);
    GraphNode node = nullptr;
    EXPECT_NE(t.cu.graph_add_empty_node(&node, other, &a, 1), ok);
}

TEST(Graphs, run_child_graphs_in_their_place) {
    GraphTest t;
    Graph child = nullptr;
    t.cu.graph_create(&child, 0);
    t.kernel_node("inner", {}, child);
    const GraphNode a = t.kernel_node("a");
    GraphNode embedded = nullptr;
    ASSERT_EQ(t.cu.graph_add_child_graph_node(&embedded, t.graph, &a, 1, child), ok);
    t.kernel_node("z", {embedded});
    t.cu.graph_launch(t.instantiate(), t.engine.stream());
    const auto run = operations();
    ASSERT_EQ(run.size(), 4u);
    EXPECT_STREQ(run[2].name, "inner");
    EXPECT_GE(run[2].start_ns, run[1].end_ns);
    EXPECT_GE(run[3].start_ns, run[2].end_ns);
    Graph inside = nullptr;
    EXPECT_EQ(t.cu.graph_child_node_get_graph(embedded, &inside), ok);
    EXPECT_NE(inside, child);
}

} // namespace
} // namespace plumb::vgpu

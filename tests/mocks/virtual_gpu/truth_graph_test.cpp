// SPDX-License-Identifier: Apache-2.0
// What truth_table.hpp says of graphs that are not running.
#include <algorithm>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

constexpr CuResult ok = CuResult::success;

struct GraphTest {
    explicit GraphTest(const Config& config = {}) : engine(config), cu(engine.cu) { cu.graph_create(&graph, 0); }

    GraphNode kernel_node(const char* name, const std::vector<GraphNode>& after = {}, void** params = nullptr,
                          Graph to = nullptr) {
        const KernelNodeParams p{engine.function(name), 1, 1, 1, 32, 1, 1, 0, params, nullptr, nullptr, nullptr};
        GraphNode node = nullptr;
        EXPECT_EQ(cu.graph_add_kernel_node(&node, to != nullptr ? to : graph, after.data(), after.size(), &p), ok);
        return node;
    }
    GraphExec instantiate(Graph of = nullptr) {
        GraphExec exec = nullptr;
        EXPECT_EQ(cu.graph_instantiate(&exec, of != nullptr ? of : graph, 0), ok);
        return exec;
    }
    std::size_t edge_count() {
        std::size_t count = 0;
        cu.graph_get_edges_v12030(graph, nullptr, nullptr, nullptr, &count);
        return count;
    }

    Engine engine;
    EngineDriver& cu;
    Graph graph = nullptr;
};

TEST(Truth, node_order_is_unspecified) {
    GraphTest t;
    std::vector<GraphNode> made, first(20), second(20);
    for (int i = 0; i < 20; ++i) {
        made.push_back(t.kernel_node("k", made.empty() ? std::vector<GraphNode>{} : std::vector{made.back()}));
    }
    std::size_t count = 20;
    t.cu.graph_get_nodes(t.graph, first.data(), &count);
    t.cu.graph_get_nodes(t.graph, second.data(), &count);
    EXPECT_NE(first, made);
    EXPECT_NE(first, second);
    EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), made.begin()));
}

TEST(Truth, only_kernel_memset_memcpy_can_be_disabled) {
    GraphTest t;
    DevicePointer device = 0;
    t.cu.mem_alloc(&device, 64);
    const GraphNode run = t.kernel_node("k");
    const MemsetNodeParams memset{device, 0, 1, 4, 4, 1};
    const HostNodeParams host{[](void*) {}, nullptr};
    GraphNode set = nullptr, event = nullptr, call = nullptr;
    ASSERT_EQ(t.cu.graph_add_memset_node(&set, t.graph, nullptr, 0, &memset, t.engine.context), ok);
    ASSERT_EQ(t.cu.graph_add_event_record_node(&event, t.graph, nullptr, 0, t.engine.event()), ok);
    ASSERT_EQ(t.cu.graph_add_host_node(&call, t.graph, nullptr, 0, &host), ok);
    const GraphExec exec = t.instantiate();
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, run, 0), ok);
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, set, 0), ok);
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, event, 0), CuResult::invalid_value);
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, call, 0), CuResult::invalid_value);
}

TEST(Truth, update_refuses_another_topology) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a");
    t.kernel_node("b", {a});
    const GraphExec exec = t.instantiate();
    Graph other = nullptr;
    t.cu.graph_create(&other, 0);
    t.kernel_node("a", {}, nullptr, other);
    t.kernel_node("b", {}, nullptr, other);
    ExecUpdateInfo info{};
    EXPECT_EQ(t.cu.graph_exec_update_v12000(exec, other, &info), CuResult::graph_exec_update_failure);
    EXPECT_EQ(info.result, 2);
    t.cu.graph_launch(exec, t.engine.stream());
    EXPECT_EQ(operation_count(), 3u);
}

TEST(Truth, update_takes_new_parameters) {
    GraphTest t;
    int seen = 0;
    kernel("k", {{sizeof(int)}, 1'000, 1'000, [&seen](const KernelRun& run) {
                     seen = run.param<int>(0);
                 }});
    int value = 1;
    void* params[] = {&value};
    t.kernel_node("k", {}, params);
    const GraphExec exec = t.instantiate();
    Graph other = nullptr;
    t.cu.graph_create(&other, 0);
    value = 2;
    t.kernel_node("k", {}, params, other);
    ExecUpdateInfo info{};
    EXPECT_EQ(t.cu.graph_exec_update_v12000(exec, other, &info), ok);
    EXPECT_EQ(t.cu.graph_destroy(other), ok);
    t.cu.graph_launch(exec, t.engine.stream());
    run_dry();
    EXPECT_EQ(seen, 2);
}

TEST(Truth, destroy_node_does_not_bridge) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a"), b = t.kernel_node("b", {a});
    t.kernel_node("c", {b});
    ASSERT_EQ(t.edge_count(), 2u);
    EXPECT_EQ(t.cu.graph_destroy_node(b), ok);
    EXPECT_EQ(t.edge_count(), 0u);
    NodeType type{};
    EXPECT_NE(t.cu.graph_node_get_type(b, &type), ok);
}

TEST(Truth, memory_nodes_cannot_be_cloned) {
    for (const NodeType type : {NodeType::mem_alloc, NodeType::mem_free, NodeType::conditional}) {
        GraphTest t;
        add_bare_node(t.graph, type);
        Graph clone = nullptr;
        EXPECT_EQ(t.cu.graph_clone(&clone, t.graph), CuResult::not_supported);
    }
}

TEST(Truth, clone_knows_its_original) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a"), b = t.kernel_node("b", {a});
    Graph clone = nullptr;
    ASSERT_EQ(t.cu.graph_clone(&clone, t.graph), ok);
    GraphNode copy_a = nullptr, copy_b = nullptr;
    EXPECT_EQ(t.cu.graph_node_find_in_clone(&copy_a, a, clone), ok);
    EXPECT_EQ(t.cu.graph_node_find_in_clone(&copy_b, b, clone), ok);
    EXPECT_NE(copy_a, a);
    GraphNode from = nullptr, to = nullptr;
    std::size_t count = 1;
    EXPECT_EQ(t.cu.graph_get_edges_v12030(clone, &from, &to, nullptr, &count), ok);
    EXPECT_EQ(from, copy_a);
    EXPECT_EQ(to, copy_b);
    EXPECT_NE(t.cu.graph_node_find_in_clone(&copy_a, a, t.graph), ok);
}

TEST(Truth, clone_is_independent) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a");
    Graph clone = nullptr;
    t.cu.graph_clone(&clone, t.graph);
    t.kernel_node("b", {a});
    t.cu.graph_destroy(t.graph);
    std::size_t count = 0;
    EXPECT_EQ(t.cu.graph_get_nodes(clone, nullptr, &count), ok);
    EXPECT_EQ(count, 1u);
}

TEST(Truth, memory_nodes_allow_one_executable) {
    GraphTest t;
    MemAllocNodeParams params{};
    params.bytes = 64;
    GraphNode node = nullptr;
    ASSERT_EQ(t.cu.graph_add_mem_alloc_node(&node, t.graph, nullptr, 0, &params), ok);
    const GraphExec exec = t.instantiate();
    GraphExec second = nullptr;
    EXPECT_NE(t.cu.graph_instantiate(&second, t.graph, 0), ok);
    t.cu.graph_exec_destroy(exec);
    EXPECT_EQ(t.cu.graph_instantiate(&second, t.graph, 0), ok);
}

TEST(Truth, exec_calls_need_the_source_node) {
    GraphTest t;
    const GraphNode node = t.kernel_node("k");
    const GraphExec exec = t.instantiate();
    EXPECT_EQ(t.cu.graph_node_set_enabled(exec, node, 0), ok);
    t.cu.graph_destroy(t.graph);
    EXPECT_NE(t.cu.graph_node_set_enabled(exec, node, 1), ok);
    EXPECT_EQ(errors().size(), 1u);
    EXPECT_EQ(t.cu.graph_launch(exec, t.engine.stream()), ok);
}

TEST(Truth, existing_edge_cannot_be_added) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a"), b = t.kernel_node("b");
    EXPECT_EQ(t.cu.graph_add_dependencies_v12030(t.graph, &a, &b, nullptr, 1), ok);
    EXPECT_NE(t.cu.graph_add_dependencies_v12030(t.graph, &a, &b, nullptr, 1), ok);
    EXPECT_EQ(t.cu.graph_remove_dependencies_v12030(t.graph, &a, &b, nullptr, 1), ok);
    EXPECT_NE(t.cu.graph_remove_dependencies_v12030(t.graph, &a, &b, nullptr, 1), ok);
}

TEST(Truth, programmatic_edges_join_kernels_only) {
    GraphTest t;
    const GraphNode a = t.kernel_node("a"), b = t.kernel_node("b");
    GraphNode empty = nullptr;
    t.cu.graph_add_empty_node(&empty, t.graph, nullptr, 0);
    const EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    EXPECT_NE(t.cu.graph_add_dependencies_v12030(t.graph, &a, &empty, &edge, 1), ok);
    EXPECT_EQ(t.cu.graph_add_dependencies_v12030(t.graph, &a, &b, &edge, 1), ok);
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
    t.kernel_node("inner", {}, nullptr, child);
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

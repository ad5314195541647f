// SPDX-License-Identifier: Apache-2.0
// Graphs on the virtual GPU, as far as no truth says it.
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

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

struct TiedObject {
    explicit TiedObject(GraphTest& t) {
        EXPECT_EQ(t.cu.user_object_create(
                      &handle, this, [](void* self) { ++static_cast<TiedObject*>(self)->destroyed; }, 1,
                      user_object_no_destructor_sync),
                  ok);
        EXPECT_EQ(t.cu.graph_retain_user_object(t.graph, handle, 1, graph_user_object_move), ok);
    }
    UserObject handle = nullptr;
    int destroyed = 0;
};

TEST(Graphs, keep_user_objects_until_their_launches_are_done) {
    GraphTest t;
    t.kernel_node("k");
    TiedObject object(t);
    const Stream stream = t.engine.stream();
    const GraphExec exec = t.instantiate();
    EXPECT_EQ(t.cu.graph_destroy(t.graph), ok);
    EXPECT_EQ(t.cu.graph_launch(exec, stream), ok);
    EXPECT_EQ(t.cu.graph_exec_destroy(exec), ok);
    EXPECT_EQ(object.destroyed, 0) << "the launch is not done";
    EXPECT_EQ(leaks(), "1 context, 1 stream, 1 module, 1 user object");
    run_dry();
    EXPECT_EQ(object.destroyed, 1);
    EXPECT_EQ(errors(), std::vector<std::string>());
}

TEST(Graphs, of_child_nodes_hold_their_user_objects_and_updates_replace_those_of_executables) {
    GraphTest t;
    t.kernel_node("k");
    TiedObject object(t);
    Graph outer = nullptr;
    GraphNode child = nullptr;
    EXPECT_EQ(t.cu.graph_create(&outer, 0), ok);
    EXPECT_EQ(t.cu.graph_add_child_graph_node(&child, outer, nullptr, 0, t.graph), ok);
    EXPECT_EQ(t.cu.graph_destroy(t.graph), ok);
    GraphExec exec = nullptr;
    EXPECT_EQ(t.cu.graph_instantiate(&exec, outer, 0), ok);
    EXPECT_EQ(t.cu.graph_destroy(outer), ok);
    EXPECT_EQ(object.destroyed, 0);
    Graph inner = nullptr;
    Graph other = nullptr;
    EXPECT_EQ(t.cu.graph_create(&inner, 0), ok);
    t.kernel_node("k", {}, inner);
    EXPECT_EQ(t.cu.graph_create(&other, 0), ok);
    EXPECT_EQ(t.cu.graph_add_child_graph_node(&child, other, nullptr, 0, inner), ok);
    ExecUpdateInfo info{};
    EXPECT_EQ(t.cu.graph_exec_update_v12000(exec, other, &info), ok);
    EXPECT_EQ(object.destroyed, 1) << "the new graph ties nothing";
}

TEST(Graphs, with_device_updatable_nodes_can_be_cloned) {
    GraphTest t;
    const GraphNode node = t.kernel_node("k");
    LaunchAttributeValue value{};
    value.device_updatable.updatable = 1;
    EXPECT_EQ(t.cu.graph_kernel_node_set_attribute(node, attribute_device_updatable, &value), ok);
    Graph clone = nullptr;
    GraphExec first = nullptr;
    GraphExec second = nullptr;
    EXPECT_EQ(t.cu.graph_clone(&clone, t.graph), ok);
    EXPECT_EQ(t.cu.graph_instantiate(&first, t.graph, 0), ok);
    EXPECT_EQ(t.cu.graph_instantiate(&second, clone, 0), ok);
    value.device_updatable.updatable = 0;
    EXPECT_EQ(t.cu.graph_kernel_node_set_attribute(node, attribute_device_updatable, &value), CuResult::invalid_value);
    EXPECT_EQ(t.cu.graph_destroy_node(node), CuResult::invalid_value);
}

TEST(Graphs, run_at_the_priorities_that_their_flags_say) {
    GraphTest t;
    LaunchAttributeValue value{};
    value.priority = -3;
    EXPECT_EQ(t.cu.graph_kernel_node_set_attribute(t.kernel_node("k"), attribute_priority, &value), ok);
    Stream stream = nullptr;
    EXPECT_EQ(t.cu.stream_create_with_priority(&stream, stream_non_blocking, -1), ok);
    for (const auto& [flags, wanted] : {std::pair{0ULL, -1}, std::pair{instantiate_use_node_priority, -3}}) {
        GraphExec exec = nullptr;
        EXPECT_EQ(t.cu.graph_instantiate(&exec, t.graph, flags), ok);
        EXPECT_EQ(t.cu.graph_launch(exec, stream), ok);
        EXPECT_EQ(operations().back().priority, wanted);
    }
}

Config two_devices() {
    Config config;
    config.devices = 2;
    return config;
}

TEST(Graphs, run_kernels_on_the_device_of_their_module) {
    Engine engine(two_devices());
    EngineDriver& cu = engine.cu;
    Context second = nullptr;
    Context popped = nullptr;
    EXPECT_EQ(cu.primary_ctx_retain(&second, 1), ok);
    EXPECT_EQ(cu.ctx_push_current(second), ok);
    Graph graph = nullptr;
    GraphNode node = nullptr;
    GraphExec exec = nullptr;
    EXPECT_EQ(cu.graph_create(&graph, 0), ok);
    const KernelNodeParams p{engine.function("k"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr, nullptr};
    EXPECT_EQ(cu.graph_add_kernel_node(&node, graph, nullptr, 0, &p), ok);
    KernelNodeParams told{};
    EXPECT_EQ(cu.graph_kernel_node_get_params(node, &told), ok);
    EXPECT_EQ(told.ctx, engine.context);
    EXPECT_EQ(cu.graph_instantiate(&exec, graph, 0), ok);
    EXPECT_EQ(cu.graph_launch(exec, engine.stream()), ok);
    EXPECT_EQ(operations().back().device, 0);
    EXPECT_EQ(engine.launch("k", engine.stream()), CuResult::invalid_handle);
    EXPECT_EQ(cu.ctx_pop_current(&popped), ok);
    EXPECT_EQ(cu.primary_ctx_release(1), ok);
}

} // namespace
} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
// What truth_table.hpp says of the nodes of a capture.
#include "virtual_gpu/capture_bench.hpp"

namespace plumb::vgpu {
namespace {

TEST(Truth, capture_scope_adds_no_node) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    for (int i = 0; i < 5; ++i) {
        frontier(engine, stream);
    }
    engine.launch("b", stream);
    EXPECT_EQ(nodes_of(engine, end(engine, stream)).size(), 2u);
}

TEST(Truth, frontier_is_what_the_next_node_waits_for) {
    Engine engine;
    const Stream stream = begin(engine);
    EXPECT_TRUE(frontier(engine, stream).empty());
    engine.launch("a", stream);
    const auto before = frontier(engine, stream);
    engine.launch("b", stream);
    const auto after = frontier(engine, stream);
    ASSERT_EQ(before.size(), 1u);
    ASSERT_EQ(after.size(), 1u);
    const Graph graph = end(engine, stream);
    const EdgeList edges = edges_of(engine, graph);
    EXPECT_EQ(edges.from.size(), 1u);
    EXPECT_TRUE(edges.has(before[0], after[0]));
}

TEST(Truth, frontier_array_goes_stale) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    CaptureStatus status{};
    const GraphNode* nodes = nullptr;
    std::size_t count = 0;
    Graph graph = nullptr;
    ASSERT_EQ(engine.cu.stream_get_capture_info_v11030(stream, &status, nullptr, &graph, &nodes, &count), ok);
    const GraphNode copied = nodes[0];
    engine.launch("b", stream);
    NodeType type{};
    EXPECT_EQ(engine.cu.graph_node_get_type(copied, &type), ok);
    EXPECT_TRUE(errors().empty());
    EXPECT_NE(nodes[0], copied);
    EXPECT_EQ(engine.cu.graph_node_get_type(nodes[0], &type), CuResult::invalid_value);
    EXPECT_EQ(errors().size(), 1u);
}

TEST(Truth, capture_ids_are_unique) {
    Engine engine;
    const Stream stream = engine.stream();
    unsigned long long ids[2] = {0, 0};
    for (unsigned long long& id : ids) {
        CaptureStatus status{};
        engine.cu.stream_begin_capture(stream, CaptureMode::relaxed);
        engine.cu.stream_get_capture_info_v12030(stream, &status, &id, nullptr, nullptr, nullptr, nullptr);
        end(engine, stream);
    }
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_NE(ids[0], 0u);
}

TEST(Truth, captured_fork_and_join_by_events) {
    Engine engine;
    const Stream main = begin(engine), side = engine.stream();
    const Event fork = engine.event(), join = engine.event();
    engine.launch("a", main);
    engine.cu.event_record(fork, main);
    EXPECT_EQ(engine.cu.stream_wait_event(side, fork, 0), ok);
    EXPECT_EQ(status_of(engine, side), CaptureStatus::active);
    engine.launch("b", side);
    engine.launch("c", main);
    engine.cu.event_record(join, side);
    EXPECT_EQ(engine.cu.stream_wait_event(main, join, 0), ok);
    EXPECT_EQ(frontier(engine, main).size(), 2u);
    engine.launch("d", main);
    const Graph graph = end(engine, main);
    EXPECT_EQ(nodes_of(engine, graph).size(), 4u);
    EXPECT_EQ(edges_of(engine, graph).from.size(), 4u);
    EXPECT_EQ(status_of(engine, side), CaptureStatus::none);
}

TEST(Truth, unjoined_stream_fails_the_capture) {
    Engine engine;
    const Stream main = begin(engine), side = engine.stream();
    const Event fork = engine.event();
    engine.cu.event_record(fork, main);
    engine.cu.stream_wait_event(side, fork, 0);
    engine.launch("b", side);
    EXPECT_EQ(end(engine, main, CuResult::stream_capture_unjoined), nullptr);
    EXPECT_EQ(engine.launch("b", side), ok);
    EXPECT_EQ(alive().graphs, 0u);
}

TEST(Truth, plain_record_in_capture_is_unreadable) {
    Engine engine;
    const Event first = engine.event(), second = engine.event();
    const Stream stream = begin(engine);
    engine.cu.event_record(first, stream);
    engine.launch("k", stream);
    engine.cu.event_record(second, stream);
    const Graph graph = end(engine, stream);
    EXPECT_EQ(nodes_of(engine, graph).size(), 1u);
    GraphExec exec = nullptr;
    engine.cu.graph_instantiate(&exec, graph, 0);
    engine.cu.graph_launch(exec, stream);
    run_dry();
    float ms = 0;
    EXPECT_NE(engine.cu.event_elapsed_time_v12080(&ms, first, second), ok);
}

TEST(Truth, nodes_may_be_added_during_capture) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    Graph graph = nullptr;
    auto before = frontier(engine, stream, &graph);
    GraphNode added = nullptr;
    ASSERT_EQ(engine.cu.graph_add_empty_node(&added, graph, before.data(), before.size()), ok);
    ASSERT_EQ(engine.cu.stream_update_dependencies_v11030(stream, &added, 1, set_capture_dependencies), ok);
    engine.launch("b", stream);
    const GraphNode last = frontier(engine, stream)[0];
    ASSERT_EQ(end(engine, stream), graph);
    const EdgeList edges = edges_of(engine, graph);
    EXPECT_TRUE(edges.has(before[0], added));
    EXPECT_TRUE(edges.has(added, last));
    EXPECT_EQ(edges.from.size(), 2u);
}

TEST(Truth, nodes_cannot_be_destroyed_during_capture) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    Graph graph = nullptr;
    const auto nodes = frontier(engine, stream, &graph);
    EXPECT_NE(engine.cu.graph_destroy_node(nodes[0]), ok);
    EXPECT_NE(engine.cu.graph_destroy(graph), ok);
    end(engine, stream);
    EXPECT_EQ(engine.cu.graph_destroy_node(nodes[0]), ok);
}

CuResult launch_programmatic(Engine& engine, const char* name, Stream stream) {
    LaunchAttribute attribute{attribute_programmatic_serialization, 0, {}};
    attribute.value.programmatic_allowed = 1;
    const LaunchConfig config{1, 1, 1, 32, 1, 1, 0, stream, &attribute, 1};
    return engine.cu.launch_kernel_ex(&config, engine.function(name), nullptr, nullptr);
}

TEST(Truth, programmatic_edge_makes_v2_info_lossy) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    auto nodes = frontier(engine, stream);
    EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    ASSERT_EQ(engine.cu.stream_update_dependencies_v12030(stream, nodes.data(), &edge, 1, set_capture_dependencies),
              ok);
    CaptureStatus status{};
    const GraphNode* array = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.stream_get_capture_info_v11030(stream, &status, nullptr, nullptr, &array, &count),
              CuResult::lossy_query);
    EXPECT_EQ(frontier(engine, stream).size(), 1u);
    engine.launch("b", stream);
    EXPECT_EQ(edges_of(engine, end(engine, stream)).data[0].type, edge_type_programmatic);
}

TEST(Truth, edges_without_data_are_lossy) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    ASSERT_EQ(launch_programmatic(engine, "b", stream), ok);
    const Graph graph = end(engine, stream);
    std::size_t count = 1;
    GraphNode from = nullptr, to = nullptr;
    EXPECT_EQ(engine.cu.graph_get_edges_v10000(graph, &from, &to, &count), CuResult::lossy_query);
    EXPECT_EQ(edges_of(engine, graph).data[0].from_port, edge_port_programmatic);
}

} // namespace
} // namespace plumb::vgpu

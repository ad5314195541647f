// SPDX-License-Identifier: Apache-2.0
// What truth_table.hpp says of capture.
#include <thread>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

constexpr CuResult ok = CuResult::success;

std::vector<GraphNode> frontier(Engine& engine, Stream stream, Graph* graph = nullptr) {
    CaptureStatus status{};
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.stream_get_capture_info_v12030(stream, &status, nullptr, graph, &nodes, &edges, &count), ok);
    EXPECT_EQ(status, CaptureStatus::active);
    return {nodes, nodes + count};
}

std::vector<GraphNode> nodes_of(Engine& engine, Graph graph) {
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.graph_get_nodes(graph, nullptr, &count), ok);
    std::vector<GraphNode> nodes(count);
    EXPECT_EQ(engine.cu.graph_get_nodes(graph, nodes.data(), &count), ok);
    return nodes;
}

struct EdgeList {
    std::vector<GraphNode> from, to;
    std::vector<EdgeData> data;
    bool has(GraphNode a, GraphNode b) const {
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (from[i] == a && to[i] == b)
                return true;
        }
        return false;
    }
};

EdgeList edges_of(Engine& engine, Graph graph) {
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, nullptr, nullptr, nullptr, &count), ok);
    EdgeList edges{std::vector<GraphNode>(count), std::vector<GraphNode>(count), std::vector<EdgeData>(count)};
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, edges.from.data(), edges.to.data(), edges.data.data(), &count),
              ok);
    return edges;
}

CaptureStatus status_of(Engine& engine, Stream stream) {
    CaptureStatus status{};
    EXPECT_EQ(engine.cu.stream_is_capturing(stream, &status), ok);
    return status;
}

Stream begin(Engine& engine, CaptureMode mode = CaptureMode::global) {
    const Stream stream = engine.stream();
    EXPECT_EQ(engine.cu.stream_begin_capture(stream, mode), ok);
    return stream;
}

Graph end(Engine& engine, Stream stream, CuResult expected = ok) {
    Graph graph = reinterpret_cast<Graph>(1);
    EXPECT_EQ(engine.cu.stream_end_capture(stream, &graph), expected);
    return graph;
}

template <class F>
void in_another_thread(Engine& engine, F&& f) {
    std::thread([&] {
        engine.cu.ctx_push_current(engine.context);
        f();
    }).join();
}

TEST(Truth, capture_scope_adds_no_node) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    for (int i = 0; i < 5; ++i)
        frontier(engine, stream);
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

TEST(Truth, event_query_breaks_global_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] { EXPECT_EQ(engine.cu.event_query(event), CuResult::stream_capture_unsupported); });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::invalidated);
    ASSERT_EQ(invalidations().size(), 1u);
    EXPECT_EQ(invalidations()[0].call, "cuEventQuery");
    EXPECT_NE(invalidations()[0].thread, invalidations()[0].owner);
    EXPECT_EQ(end(engine, stream, CuResult::stream_capture_invalidated), nullptr);
}

TEST(Truth, thread_local_capture_ignores_other_threads) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::thread_local_mode);
    in_another_thread(engine, [&] { EXPECT_EQ(engine.cu.event_query(event), ok); });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::active);
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Truth, relaxed_thread_breaks_no_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::relaxed;
        EXPECT_EQ(engine.cu.thread_exchange_capture_mode(&mode), ok);
        EXPECT_EQ(mode, CaptureMode::global);
        EXPECT_EQ(engine.cu.event_query(event), ok);
        DevicePointer memory = 0;
        EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), ok);
    });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::active);
    EXPECT_NE(end(engine, stream), nullptr);
    EXPECT_TRUE(invalidations().empty());
}

TEST(Truth, own_unsafe_call_breaks_own_capture) {
    Engine engine;
    DevicePointer memory = 0;
    for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_mode}) {
        const Stream stream = begin(engine, mode);
        EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), CuResult::stream_capture_unsupported);
        end(engine, stream, CuResult::stream_capture_invalidated);
    }
    const Stream stream = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), ok);
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Truth, query_of_captured_event_breaks_any_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::relaxed);
    engine.cu.event_record(event, stream);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::relaxed;
        engine.cu.thread_exchange_capture_mode(&mode);
        EXPECT_EQ(engine.cu.event_query(event), CuResult::captured_event);
    });
    end(engine, stream, CuResult::stream_capture_invalidated);
    EXPECT_EQ(engine.cu.event_query(event), CuResult::captured_event);
    engine.cu.event_record(event, stream);
    run_dry();
    EXPECT_EQ(engine.cu.event_query(event), ok);
}

TEST(Truth, synchronising_a_capturing_stream_breaks_it) {
    Engine engine;
    const Stream queried = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_query(queried), CuResult::stream_capture_unsupported);
    end(engine, queried, CuResult::stream_capture_invalidated);
    const Stream awaited = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_synchronize(awaited), CuResult::stream_capture_unsupported);
    end(engine, awaited, CuResult::stream_capture_invalidated);
    const Stream any = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.ctx_synchronize(), CuResult::stream_capture_unsupported);
    end(engine, any, CuResult::stream_capture_invalidated);
    EXPECT_EQ(synchronising_calls(), 0u);
}

TEST(Truth, invalidated_capture_leaves_the_stream_usable) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("k", stream);
    engine.cu.stream_query(stream);
    EXPECT_EQ(engine.launch("k", stream), CuResult::stream_capture_invalidated);
    EXPECT_EQ(end(engine, stream, CuResult::stream_capture_invalidated), nullptr);
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::none);
    EXPECT_EQ(engine.launch("k", stream), ok);
    EXPECT_EQ(engine.cu.stream_synchronize(stream), ok);
    EXPECT_EQ(alive().graphs, 0u);
}

TEST(Truth, capture_ends_in_its_thread) {
    Engine engine;
    const Stream strict = begin(engine, CaptureMode::thread_local_mode);
    const Stream relaxed = begin(engine, CaptureMode::relaxed);
    in_another_thread(engine, [&] {
        end(engine, strict, CuResult::stream_capture_wrong_thread);
        EXPECT_NE(end(engine, relaxed), nullptr);
    });
    EXPECT_NE(end(engine, strict), nullptr);
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

TEST(Truth, waiting_for_an_outside_event_breaks_the_capture) {
    Engine engine;
    const Event event = engine.event();
    engine.cu.event_record(event, engine.stream());
    const Stream stream = begin(engine);
    EXPECT_EQ(engine.cu.stream_wait_event(stream, event, 0), CuResult::stream_capture_isolation);
    end(engine, stream, CuResult::stream_capture_invalidated);
}

TEST(Truth, merging_two_captures_breaks_both) {
    Engine engine;
    const Stream first = begin(engine), second = begin(engine);
    const Event event = engine.event();
    engine.cu.event_record(event, first);
    EXPECT_EQ(engine.cu.stream_wait_event(second, event, 0), CuResult::stream_capture_merge);
    end(engine, first, CuResult::stream_capture_invalidated);
    end(engine, second, CuResult::stream_capture_invalidated);
}

TEST(Truth, legacy_stream_is_implicit) {
    Engine engine;
    const Stream blocking = engine.stream(event_default);
    engine.cu.stream_begin_capture(blocking, CaptureMode::relaxed);
    CaptureStatus status{};
    EXPECT_EQ(engine.cu.stream_is_capturing(nullptr, &status), CuResult::stream_capture_implicit);
    EXPECT_EQ(status_of(engine, blocking), CaptureStatus::active); // asking does no harm
    EXPECT_EQ(engine.launch("k", nullptr), CuResult::stream_capture_implicit);
    end(engine, blocking, CuResult::stream_capture_invalidated);
    const Stream free = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_is_capturing(nullptr, &status), ok);
    EXPECT_EQ(engine.launch("k", nullptr), ok);
    EXPECT_NE(end(engine, free), nullptr);
}

TEST(Truth, legacy_stream_cannot_capture) {
    Engine engine;
    EXPECT_EQ(engine.cu.stream_begin_capture(nullptr, CaptureMode::relaxed), CuResult::stream_capture_unsupported);
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

TEST(Truth, stream_ids_are_not_reused) {
    Engine engine;
    const Stream first = engine.stream();
    unsigned long long first_id = 0, second_id = 0;
    engine.cu.stream_get_id(first, &first_id);
    engine.cu.stream_destroy(first);
    const Stream second = engine.stream();
    engine.cu.stream_get_id(second, &second_id);
    EXPECT_EQ(first, second);
    EXPECT_NE(first_id, second_id);
}

TEST(Capture, must_end_where_it_began_and_cannot_begin_twice) {
    Engine engine;
    const Stream main = begin(engine, CaptureMode::relaxed), side = engine.stream();
    EXPECT_EQ(engine.cu.stream_begin_capture(main, CaptureMode::relaxed), CuResult::illegal_state);
    const Event fork = engine.event();
    engine.cu.event_record(fork, main);
    engine.cu.stream_wait_event(side, fork, 0);
    end(engine, side, CuResult::stream_capture_unmatched);
    end(engine, main, CuResult::stream_capture_invalidated);
    end(engine, main, CuResult::illegal_state);
}

} // namespace
} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
// Captures on the virtual GPU, as far as no truth says it: what its ledger tells, and rules without an entry of their own.
#include <thread>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

std::vector<GraphNode> frontier(Engine& engine, Stream stream, Graph* graph = nullptr) {
    CaptureStatus status{};
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.stream_get_capture_info_v12030(stream, &status, nullptr, graph, &nodes, &edges, &count), ok);
    EXPECT_EQ(status, CaptureStatus::active);
    return {nodes, nodes + count};
}

std::vector<EdgeData> edge_data_of(Engine& engine, Graph graph) {
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, nullptr, nullptr, nullptr, &count), ok);
    std::vector<GraphNode> from(count), to(count);
    std::vector<EdgeData> data(count);
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, from.data(), to.data(), data.data(), &count), ok);
    return data;
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

TEST(Capture, that_was_broken_names_the_call_and_its_thread) {
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

TEST(Capture, refuses_waits_without_counting_them) {
    Engine engine;
    const Stream stream = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_synchronize(stream), CuResult::stream_capture_unsupported);
    EXPECT_EQ(end(engine, stream, CuResult::stream_capture_invalidated), nullptr);
    EXPECT_EQ(synchronising_calls(), 0u);
    EXPECT_EQ(alive().graphs, 0u);
}

TEST(Capture, keeps_its_graph_from_being_destroyed) {
    Engine engine;
    const Stream stream = begin(engine);
    Graph graph = nullptr;
    frontier(engine, stream, &graph);
    EXPECT_NE(engine.cu.graph_destroy(graph), ok);
    EXPECT_EQ(end(engine, stream), graph);
}

CuResult launch_programmatic(Engine& engine, const char* name, Stream stream) {
    LaunchAttribute attribute{attribute_programmatic_serialization, 0, {}};
    attribute.value.programmatic_allowed = 1;
    const LaunchConfig config{1, 1, 1, 32, 1, 1, 0, stream, &attribute, 1};
    return engine.cu.launch_kernel_ex(&config, engine.function(name), nullptr, nullptr);
}

TEST(Capture, makes_programmatic_edges_of_programmatic_launches) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("a", stream);
    ASSERT_EQ(launch_programmatic(engine, "b", stream), ok);
    const Graph graph = end(engine, stream);
    std::size_t count = 1;
    GraphNode from = nullptr, to = nullptr;
    EXPECT_EQ(engine.cu.graph_get_edges_v10000(graph, &from, &to, &count), CuResult::lossy_query);
    EXPECT_EQ(edge_data_of(engine, graph).at(0).from_port, edge_port_programmatic);
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

TEST(Capture, is_left_alone_by_a_thread_in_thread_local_mode) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::thread_local_mode;
        engine.cu.thread_exchange_capture_mode(&mode);
        EXPECT_EQ(engine.cu.event_query(event), ok);
    });
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Capture, is_left_alone_by_its_own_thread_in_relaxed_mode) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    CaptureMode mode = CaptureMode::relaxed;
    engine.cu.thread_exchange_capture_mode(&mode);
    EXPECT_EQ(engine.cu.event_query(event), ok);
    engine.cu.thread_exchange_capture_mode(&mode);
    EXPECT_EQ(mode, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.event_query(event), CuResult::stream_capture_unsupported);
    end(engine, stream, CuResult::stream_capture_invalidated);
}

} // namespace
} // namespace plumb::vgpu

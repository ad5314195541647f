// SPDX-License-Identifier: Apache-2.0
// What the tests of capture share: begin, end, and what a capture knows of itself. Test-only.
#pragma once

#include <thread>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {

inline constexpr CuResult ok = CuResult::success;

inline std::vector<GraphNode> frontier(Engine& engine, Stream stream, Graph* graph = nullptr) {
    CaptureStatus status{};
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.stream_get_capture_info_v12030(stream, &status, nullptr, graph, &nodes, &edges, &count), ok);
    EXPECT_EQ(status, CaptureStatus::active);
    return {nodes, nodes + count};
}

inline std::vector<GraphNode> nodes_of(Engine& engine, Graph graph) {
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
            if (from[i] == a && to[i] == b) {
                return true;
            }
        }
        return false;
    }
};

inline EdgeList edges_of(Engine& engine, Graph graph) {
    std::size_t count = 0;
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, nullptr, nullptr, nullptr, &count), ok);
    EdgeList edges{std::vector<GraphNode>(count), std::vector<GraphNode>(count), std::vector<EdgeData>(count)};
    EXPECT_EQ(engine.cu.graph_get_edges_v12030(graph, edges.from.data(), edges.to.data(), edges.data.data(), &count),
              ok);
    return edges;
}

inline CaptureStatus status_of(Engine& engine, Stream stream) {
    CaptureStatus status{};
    EXPECT_EQ(engine.cu.stream_is_capturing(stream, &status), ok);
    return status;
}

inline Stream begin(Engine& engine, CaptureMode mode = CaptureMode::global) {
    const Stream stream = engine.stream();
    EXPECT_EQ(engine.cu.stream_begin_capture(stream, mode), ok);
    return stream;
}

inline Graph end(Engine& engine, Stream stream, CuResult expected = ok) {
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

} // namespace plumb::vgpu

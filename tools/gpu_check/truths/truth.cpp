// SPDX-License-Identifier: Apache-2.0
#include "truths/truth.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <thread>

namespace gpu_check {
namespace {

std::string said;

} // namespace

void say(std::string detail) { said = std::move(detail); }

std::string take_said() { return std::exchange(said, {}); }

void* find_entry(const char* symbol, int version) {
    using Find = CuResult(const char*, void**, int, unsigned long long, int*);
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    static auto* const find =
        library != nullptr ? reinterpret_cast<Find*>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
    void* address = nullptr;
    int status = 0;
    return find != nullptr && find(symbol, &address, version, 1, &status) == CuResult::success ? address : nullptr;
}

void in_thread(Gpu& gpu, const std::function<void()>& body) {
    std::string problem;
    std::thread([&] {
        const CurrentContext current(gpu.d, gpu.context);
        try {
            body();
        } catch (const Failure& failure) {
            problem = failure.sentence;
        }
    }).join();
    expect(problem.empty(), problem);
}

Capturing::Capturing(Gpu& gpu, Stream stream, CaptureMode mode) : gpu_(gpu), stream_(stream), graph_(gpu) {
    gpu.must(gpu.d.stream_begin_capture(stream, mode), "cuStreamBeginCapture");
}

Capturing::~Capturing() {
    if (open_) {
        static_cast<void>(end());
    }
}

CuResult Capturing::end() {
    open_ = false;
    return gpu_.d.stream_end_capture(stream_, graph_.out());
}

Graph Capturing::graph() {
    gpu_.must(end(), "cuStreamEndCapture");
    return graph_;
}

void Capturing::expect_invalidated(const char* by) {
    expect(status() == CaptureStatus::invalidated, std::string(by) + " did not invalidate the capture");
    gpu_.expect_result(end(), CuResult::stream_capture_invalidated, "cuStreamEndCapture of an invalidated capture");
    expect(graph_ == nullptr, "an invalidated capture gave a graph");
}

CaptureStatus Capturing::status() const {
    CaptureStatus status = CaptureStatus::none;
    gpu_.must(gpu_.d.stream_is_capturing(stream_, &status), "cuStreamIsCapturing");
    return status;
}

std::vector<GraphNode> Capturing::frontier(Graph* graph, unsigned long long* id) const {
    CaptureStatus status = CaptureStatus::none;
    unsigned long long own_id = 0;
    Graph own_graph = nullptr;
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    gpu_.must(gpu_.d.capture_info(stream_, &status, id != nullptr ? id : &own_id, graph != nullptr ? graph : &own_graph,
                                  &nodes, &edges, &count),
              "cuStreamGetCaptureInfo");
    return {nodes, nodes + count};
}

NodeType type_of(Gpu& gpu, GraphNode node) {
    NodeType type{};
    gpu.must(gpu.d.graph_node_get_type(node, &type), "cuGraphNodeGetType");
    return type;
}

GraphNode node_of_type(Gpu& gpu, Graph graph, NodeType type) {
    for (const GraphNode node : nodes_of(gpu, graph)) {
        if (type_of(gpu, node) == type) {
            return node;
        }
    }
    fail("the captured graph has no node of type " + std::to_string(static_cast<int>(type)));
}

bool Edges::has(GraphNode a, GraphNode b) const {
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == a && to[i] == b) {
            return true;
        }
    }
    return false;
}

std::vector<GraphNode> Edges::before(GraphNode node) const {
    std::vector<GraphNode> found;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (to[i] == node) {
            found.push_back(from[i]);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

Edges edges_of(Gpu& gpu, Graph graph) {
    std::size_t count = 0;
    gpu.must(gpu.d.edges_of(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges");
    Edges edges{std::vector<GraphNode>(count), std::vector<GraphNode>(count), std::vector<EdgeData>(count)};
    if (count != 0) {
        gpu.must(gpu.d.edges_of(graph, edges.from.data(), edges.to.data(), edges.data.data(), &count),
                 "cuGraphGetEdges");
    }
    return edges;
}

void launch_graph(Gpu& gpu, GraphExec exec, Stream stream) {
    gpu.must(gpu.d.graph_launch(exec, stream), "cuGraphLaunch");
}

} // namespace gpu_check

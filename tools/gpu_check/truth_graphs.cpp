// SPDX-License-Identifier: Apache-2.0
// Truths about graphs, their nodes, clones and executables.
#include <cstring>

#include "truth.hpp"

namespace gpu_check {
namespace {

struct MemAllocNode {        // CUDA_MEM_ALLOC_NODE_PARAMS
    int pool_properties[22]; // type, handle types, location's type and id, …
    const void* access;
    std::size_t access_count;
    std::size_t bytes;
    DevicePointer address;
};

/// A graph that allocates and frees.
OwnedGraph memory_graph(Gpu& gpu) {
    using Allocate = CuResult(GraphNode*, Graph, const GraphNode*, std::size_t, MemAllocNode*);
    using Free = CuResult(GraphNode*, Graph, const GraphNode*, std::size_t, DevicePointer);
    auto* add_allocate = entry<Allocate>("cuGraphAddMemAllocNode", 11040);
    auto* add_free = entry<Free>("cuGraphAddMemFreeNode", 11040);
    OwnedGraph graph = make_graph(gpu);
    MemAllocNode node{};
    node.pool_properties[0] = 1; // pinned
    node.pool_properties[2] = 1; // on a device
    node.pool_properties[3] = gpu.device;
    node.bytes = 1 << 16;
    GraphNode made = nullptr, freed = nullptr;
    gpu.must(add_allocate(&made, graph, nullptr, 0, &node), "cuGraphAddMemAllocNode");
    gpu.must(add_free(&freed, graph, &made, 1, node.address), "cuGraphAddMemFreeNode");
    return graph;
}

/// memset, copy and kernel as nodes, by capture: value = 1, value += 5, copied = value.
struct Chain {
    OwnedMemory memory;
    OwnedGraph graph;
};
Chain captured_chain(Gpu& gpu) {
    Chain chain{allocate(gpu, 64), OwnedGraph(gpu)};
    const DevicePointer memory = chain.memory;
    gpu.set32(memory, 0, 16);
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    const CuResult set = gpu.d.memset_d32_async(memory, 1, 1, gpu.stream);
    gpu.launch(gpu.stream, gpu.kernel("check_add"), 1, 1, memory, 5U);
    const CuResult copied = gpu.d.memcpy_dtod_async(memory + 4, memory, 4, gpu.stream);
    const CuResult ended = gpu.d.stream_end_capture(gpu.stream, chain.graph.out());
    gpu.must(set, "cuMemsetD32Async in a capture");
    gpu.must(copied, "cuMemcpyDtoDAsync in a capture");
    gpu.must(ended, "cuStreamEndCapture");
    return chain;
}

OwnedGraph chain_of(Gpu& gpu, int kernels) {
    OwnedGraph graph = make_graph(gpu);
    GraphNode last = nullptr;
    for (int i = 0; i < kernels; ++i) {
        last = add_empty_kernel(gpu, graph, last);
    }
    return graph;
}

} // namespace

void truth_node_order_is_unspecified(Gpu& gpu) {
    const OwnedGraph graph = make_graph(gpu);
    std::vector<GraphNode> added;
    for (int i = 0; i < 50; ++i) {
        added.push_back(add_empty_kernel(gpu, graph, nullptr));
    }
    for (std::size_t i = 0; i + 1 < added.size(); ++i) { // each waits for the one added after it
        gpu.must(gpu.d.add_edges(graph, &added[i + 1], &added[i], nullptr, 1), "cuGraphAddDependencies");
    }
    const auto listed = nodes_of(gpu, graph);
    const std::vector<GraphNode> executed(added.rbegin(), added.rend());
    throw NotApplicable{listed == executed ? "nothing is promised; here they came in the order of execution"
                        : listed == added  ? "nothing is promised; here they came in the order of their making"
                                           : "nothing is promised; here they came in neither order"};
}

void truth_only_kernel_memset_memcpy_can_be_disabled(Gpu& gpu) {
    Chain chain = captured_chain(gpu);
    const OwnedEvent event = make_event(gpu);
    const GraphNode record = add_event(gpu, chain.graph, nullptr, event);
    const OwnedExec exec = instantiate(gpu, chain.graph);
    for (const NodeType type : {NodeType::kernel, NodeType::memset, NodeType::memcpy}) {
        gpu.must(gpu.d.graph_node_set_enabled(exec, node_of_type(gpu, chain.graph, type), 0),
                 "cuGraphNodeSetEnabled of a kernel, memset or memcpy node");
    }
    const CuResult refused = gpu.d.graph_node_set_enabled(exec, record, 0);
    say(gpu.name_of(refused));
    expect(refused != CuResult::success, "an event record node was disabled");
}

void truth_update_refuses_another_topology(Gpu& gpu) {
    const OwnedGraph two = chain_of(gpu, 2), three = chain_of(gpu, 3);
    const OwnedExec exec = instantiate(gpu, two);
    ExecUpdateInfo info{};
    gpu.expect_result(gpu.d.exec_update(exec, three, &info), CuResult::graph_exec_update_failure, "cuGraphExecUpdate");
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
}

void truth_update_takes_new_parameters(Gpu& gpu) {
    const OwnedMemory memory = allocate(gpu, 64);
    gpu.set32(memory, 0, 16);
    const auto adding = [&](unsigned by) {
        OwnedGraph graph = make_graph(gpu);
        DevicePointer at = memory;
        void* parameters[] = {&at, &by};
        add_kernel(gpu, graph, nullptr, gpu.kernel("check_add"), parameters);
        return graph;
    };
    const OwnedGraph one = adding(1), five = adding(5);
    const OwnedExec exec = instantiate(gpu, one);
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    ExecUpdateInfo info{};
    gpu.must(gpu.d.exec_update(exec, five, &info), "cuGraphExecUpdate");
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    const unsigned seen = gpu.read<unsigned>(memory, 1)[0];
    expect(seen == 6, "1 and then 5 were added, the sum is " + std::to_string(seen));
}

void truth_destroy_node_does_not_bridge(Gpu& gpu) {
    auto* destroy = entry<CuResult(GraphNode)>("cuGraphDestroyNode", 10000);
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode first = add_empty_kernel(gpu, graph, nullptr);
    const GraphNode second = add_empty_kernel(gpu, graph, first);
    add_empty_kernel(gpu, graph, second);
    gpu.must(destroy(second), "cuGraphDestroyNode");
    const std::size_t edges = edge_count(gpu, graph);
    expect(edges == 0, std::to_string(edges) + " edges are left of a chain without its middle");
}

void truth_memory_nodes_cannot_be_cloned(Gpu& gpu) {
    const OwnedGraph graph = memory_graph(gpu);
    OwnedGraph clone(gpu);
    const CuResult cloned = gpu.d.graph_clone(clone.out(), graph);
    say(gpu.name_of(cloned));
    expect(cloned != CuResult::success, "a graph with an allocation was cloned");
}

void truth_clone_knows_its_original(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 3);
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    for (const GraphNode node : nodes_of(gpu, graph)) {
        GraphNode found = nullptr;
        gpu.must(gpu.d.graph_node_find_in_clone(&found, node, clone), "cuGraphNodeFindInClone");
        expect(found != nullptr && found != node, "the copy of a node is the node itself");
    }
}

void truth_clone_is_independent(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 3);
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    add_empty_kernel(gpu, graph, nullptr);
    expect(nodes_of(gpu, clone).size() == 3, "a node added to the original is in the clone");
}

void truth_memory_nodes_allow_one_executable(Gpu& gpu) {
    const OwnedGraph graph = memory_graph(gpu);
    const OwnedExec first = instantiate(gpu, graph);
    OwnedExec second(gpu);
    const CuResult again = gpu.d.graph_instantiate(second.out(), graph, 0);
    say(gpu.name_of(again));
    expect(again != CuResult::success, "a graph with an allocation was instantiated twice at a time");
}

void truth_exec_calls_need_the_source_node(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 2), other = chain_of(gpu, 2);
    const OwnedExec exec = instantiate(gpu, graph);
    gpu.must(gpu.d.graph_node_set_enabled(exec, nodes_of(gpu, graph)[0], 0), "cuGraphNodeSetEnabled of a source node");
    const CuResult foreign = gpu.d.graph_node_set_enabled(exec, nodes_of(gpu, other)[0], 0);
    say("a node of another graph: " + gpu.name_of(foreign) + "; a destroyed source is not asked: it may crash");
    expect(foreign != CuResult::success, "a node of another graph was taken");
}

void truth_existing_edge_cannot_be_added(Gpu& gpu) {
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode from = add_empty_kernel(gpu, graph, nullptr), to = add_empty_kernel(gpu, graph, from);
    const CuResult again = gpu.d.add_edges(graph, &from, &to, nullptr, 1);
    say(gpu.name_of(again));
    expect(again != CuResult::success, "an edge that was there was added");
}

void truth_programmatic_edges_join_kernels_only(Gpu& gpu) {
    if (gpu.d.graph_add_dependencies_v12030 == nullptr) {
        throw NotApplicable{"this driver knows no edge data"};
    }
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode kernel = add_empty_kernel(gpu, graph, nullptr);
    const OwnedEvent event = make_event(gpu);
    const GraphNode record = add_event(gpu, graph, nullptr, event);
    const EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    const CuResult added = gpu.d.add_edges(graph, &kernel, &record, &edge, 1);
    say(gpu.name_of(added));
    expect(added != CuResult::success, "a programmatic edge from a kernel to an event record was added");
}

void truth_disabled_node_does_nothing(Gpu& gpu) {
    Chain chain = captured_chain(gpu);
    const OwnedExec exec = instantiate(gpu, chain.graph);
    const auto copied = [&](unsigned enabled) {
        gpu.must(gpu.d.graph_node_set_enabled(exec, node_of_type(gpu, chain.graph, NodeType::kernel), enabled),
                 "cuGraphNodeSetEnabled");
        launch_graph(gpu, exec, gpu.stream);
        gpu.wait();
        return gpu.read<unsigned>(chain.memory, 2)[1];
    };
    const unsigned off = copied(0), on = copied(1);
    expect(off == 1, "with its kernel disabled the chain 1, + 5 gave " + std::to_string(off));
    expect(on == 6, "with its kernel enabled again the chain 1, + 5 gave " + std::to_string(on));
}

void truth_launch_into_capture_is_a_child_node(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 2);
    const OwnedExec exec = instantiate(gpu, graph);
    Capturing capturing(gpu, gpu.stream);
    launch_graph(gpu, exec, gpu.stream);
    static_cast<void>(node_of_type(gpu, capturing.graph(), NodeType::graph));
}

} // namespace gpu_check

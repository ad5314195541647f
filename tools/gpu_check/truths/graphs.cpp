// SPDX-License-Identifier: Apache-2.0
// Truths about graphs, their nodes, clones and executables.
#include <atomic>
#include <cstring>

#include "truths/truth.hpp"

namespace gpu_check {
namespace {

struct MemAllocNode {        // CUDA_MEM_ALLOC_NODE_PARAMS
    int pool_properties[22]; // type, handle types, location's type and id, …
    const void* access;
    std::size_t access_count;
    std::size_t bytes;
    DevicePointer address;
};

/// A graph that allocates `address`, and frees nothing.
OwnedGraph allocating_graph(Gpu& gpu, GraphNode& node, DevicePointer& address) {
    using Allocate = CuResult(GraphNode*, Graph, const GraphNode*, std::size_t, MemAllocNode*);
    OwnedGraph graph = make_graph(gpu);
    MemAllocNode memory{};
    memory.pool_properties[0] = 1; // pinned
    memory.pool_properties[2] = 1; // on a device
    memory.pool_properties[3] = gpu.device;
    memory.bytes = 1 << 16;
    gpu.must(entry<Allocate>("cuGraphAddMemAllocNode", 11040)(&node, graph, nullptr, 0, &memory),
             "cuGraphAddMemAllocNode");
    address = memory.address;
    return graph;
}

void add_free(Gpu& gpu, Graph graph, GraphNode after, DevicePointer address) {
    using Free = CuResult(GraphNode*, Graph, const GraphNode*, std::size_t, DevicePointer);
    GraphNode made = nullptr;
    gpu.must(entry<Free>("cuGraphAddMemFreeNode", 11040)(&made, graph, &after, after != nullptr ? 1 : 0, address),
             "cuGraphAddMemFreeNode");
}

/// A graph that allocates and frees.
OwnedGraph memory_graph(Gpu& gpu) {
    GraphNode made = nullptr;
    DevicePointer address = 0;
    OwnedGraph graph = allocating_graph(gpu, made, address);
    add_free(gpu, graph, made, address);
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

/// One kernel, captured on a stream of this priority.
OwnedGraph graph_of_priority(Gpu& gpu, int priority) {
    auto* create = entry<CuResult(Stream*, unsigned, int)>("cuStreamCreateWithPriority", 5050);
    OwnedStream stream(gpu);
    gpu.must(create(stream.out(), stream_non_blocking, priority), "cuStreamCreateWithPriority");
    OwnedGraph graph(gpu);
    gpu.must(gpu.d.stream_begin_capture(stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    gpu.launch_empty(stream);
    gpu.must(gpu.d.stream_end_capture(stream, graph.out()), "cuStreamEndCapture");
    return graph;
}

int priority_of(Gpu& gpu, Graph graph) {
    LaunchAttributeValue value{};
    gpu.must(gpu.d.graph_kernel_node_get_attribute(nodes_of(gpu, graph)[0], attribute_priority, &value),
             "cuGraphKernelNodeGetAttribute");
    return value.priority;
}

int highest_priority(Gpu& gpu) {
    int least = 0, greatest = 0;
    gpu.must(gpu.d.ctx_get_stream_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    say("priorities " + std::to_string(least) + " to " + std::to_string(greatest));
    if (least == greatest) {
        throw NotApplicable{"this device has one priority"};
    }
    return greatest;
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
    using AddHost = CuResult(GraphNode*, Graph, const GraphNode*, std::size_t, const HostNodeParams*);
    const HostNodeParams nothing{[](void*) {}, nullptr};
    GraphNode call = nullptr;
    gpu.must(entry<AddHost>("cuGraphAddHostNode", 10000)(&call, chain.graph, nullptr, 0, &nothing),
             "cuGraphAddHostNode");
    const OwnedExec exec = instantiate(gpu, chain.graph);
    for (const NodeType type : {NodeType::kernel, NodeType::memset, NodeType::memcpy}) {
        gpu.must(gpu.d.graph_node_set_enabled(exec, node_of_type(gpu, chain.graph, type), 0),
                 "cuGraphNodeSetEnabled of a kernel, memset or memcpy node");
    }
    gpu.expect_result(gpu.d.graph_node_set_enabled(exec, record, 0), CuResult::invalid_value,
                      "cuGraphNodeSetEnabled of an event record node");
    gpu.expect_result(gpu.d.graph_node_set_enabled(exec, call, 0), CuResult::invalid_value,
                      "cuGraphNodeSetEnabled of a host node");
}

void truth_update_refuses_another_topology(Gpu& gpu) {
    const OwnedGraph two = chain_of(gpu, 2), three = chain_of(gpu, 3), apart = make_graph(gpu);
    add_empty_kernel(gpu, apart, nullptr);
    add_empty_kernel(gpu, apart, nullptr);
    const OwnedExec exec = instantiate(gpu, two);
    ExecUpdateInfo info{};
    gpu.expect_result(gpu.d.exec_update(exec, three, &info), CuResult::graph_exec_update_failure,
                      "cuGraphExecUpdate with a further node");
    gpu.expect_result(gpu.d.exec_update(exec, apart, &info), CuResult::graph_exec_update_failure,
                      "cuGraphExecUpdate with other edges");
    expect(info.result == 2, "the reason is " + std::to_string(info.result) + ", not a changed topology");
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
    const OwnedGraph one = adding(1);
    OwnedGraph five = adding(5);
    const OwnedExec exec = instantiate(gpu, one);
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    ExecUpdateInfo info{};
    gpu.must(gpu.d.exec_update(exec, five, &info), "cuGraphExecUpdate");
    five.reset(); // the executable has taken what it needs
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
    expect(edges_of(gpu, graph).count() == 2, "a chain of three has not two edges");
    gpu.must(destroy(second), "cuGraphDestroyNode");
    const std::size_t edges = edges_of(gpu, graph).count();
    expect(edges == 0, std::to_string(edges) + " edges are left of a chain without its middle");
}

void truth_memory_nodes_cannot_be_cloned(Gpu& gpu) {
    GraphNode made = nullptr;
    DevicePointer address = 0;
    const OwnedGraph allocating = allocating_graph(gpu, made, address), freeing = make_graph(gpu);
    add_free(gpu, freeing, nullptr, address); // a graph may free what another allocates
    const OwnedGraph both = memory_graph(gpu);
    for (const Graph graph : {Graph(allocating), Graph(freeing), Graph(both)}) {
        OwnedGraph clone(gpu);
        gpu.expect_result(gpu.d.graph_clone(clone.out(), graph), CuResult::not_supported, "cuGraphClone");
    }
}

void truth_clone_knows_its_original(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 3);
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    const auto copy_of = [&](GraphNode node) {
        GraphNode found = nullptr;
        gpu.must(gpu.d.graph_node_find_in_clone(&found, node, clone), "cuGraphNodeFindInClone");
        expect(found != nullptr && found != node, "the copy of a node is the node itself");
        return found;
    };
    const Edges edges = edges_of(gpu, graph), copied = edges_of(gpu, clone);
    expect(copied.count() == edges.count() && edges.count() == 2, "the clone has other edges");
    for (std::size_t i = 0; i < edges.count(); ++i) {
        expect(copied.has(copy_of(edges.from[i]), copy_of(edges.to[i])),
               "the copies of two joined nodes are not joined");
    }
}

void truth_clone_is_independent(Gpu& gpu) {
    OwnedGraph graph = chain_of(gpu, 3);
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    add_empty_kernel(gpu, graph, nullptr);
    expect(nodes_of(gpu, clone).size() == 3, "a node added to the original is in the clone");
    graph.reset();
    expect(nodes_of(gpu, clone).size() == 3, "the clone lost nodes with its original");
}

void truth_memory_nodes_allow_one_executable(Gpu& gpu) {
    const OwnedGraph graph = memory_graph(gpu);
    OwnedExec first = instantiate(gpu, graph);
    OwnedExec second(gpu);
    const CuResult again = gpu.d.graph_instantiate(second.out(), graph, 0);
    say(gpu.name_of(again));
    expect(again != CuResult::success, "a graph with an allocation was instantiated twice at a time");
    first.reset();
    gpu.must(gpu.d.graph_instantiate(second.out(), graph, 0), "cuGraphInstantiate after the first one is gone");
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
    gpu.must(gpu.d.remove_edges(graph, &from, &to, nullptr, 1), "cuGraphRemoveDependencies");
    expect(gpu.d.remove_edges(graph, &from, &to, nullptr, 1) != CuResult::success, "an edge was removed twice");
}

void truth_programmatic_edges_join_kernels_only(Gpu& gpu) {
    if (gpu.d.graph_add_dependencies_v12030 == nullptr) {
        throw NotApplicable{"this driver knows no edge data"};
    }
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode kernel = add_empty_kernel(gpu, graph, nullptr), other = add_empty_kernel(gpu, graph, nullptr);
    const OwnedEvent event = make_event(gpu);
    const GraphNode record = add_event(gpu, graph, nullptr, event);
    GraphNode empty = nullptr;
    gpu.must(gpu.d.graph_add_empty_node(&empty, graph, nullptr, 0), "cuGraphAddEmptyNode");
    const EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    for (const GraphNode node : {record, empty}) {
        const CuResult added = gpu.d.add_edges(graph, &kernel, &node, &edge, 1);
        say(gpu.name_of(added));
        expect(added != CuResult::success, "a programmatic edge from a kernel to another kind of node was added");
    }
    gpu.must(gpu.d.add_edges(graph, &kernel, &other, &edge, 1), "a programmatic edge between kernels");
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
    const Graph outer = capturing.graph();
    static_cast<void>(node_of_type(gpu, outer, NodeType::graph));
    expect(nodes_of(gpu, outer).size() == 1, "a launch in a capture became several nodes");
}

void truth_user_objects_live_in_clones_and_executables(Gpu& gpu) {
    using Object = void*;
    static std::atomic<bool> destroyed{false}; // as long as the driver's thread may write it
    destroyed = false;
    const auto soon = [&] {
        for (int i = 0; i < 200 && !destroyed; ++i) {
            gpu.wait();
            gpu.time.sleep_ns(1'000'000);
        }
        return destroyed.load();
    };
    Object object = nullptr;
    gpu.must(entry<CuResult(Object*, void*, HostFunction, unsigned, unsigned)>("cuUserObjectCreate", 11030)(
                 &object, &destroyed, [](void* to) { *static_cast<std::atomic<bool>*>(to) = true; }, 1, 1),
             "cuUserObjectCreate");
    OwnedGraph graph = chain_of(gpu, 2);
    gpu.must(entry<CuResult(Graph, Object, unsigned, unsigned)>("cuGraphRetainUserObject", 11030)(graph, object, 1, 1),
             "cuGraphRetainUserObject");
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    graph.reset();
    gpu.time.sleep_ns(10'000'000);
    gpu.wait();
    expect(!destroyed, "a user object was destroyed while a clone of its graph was there");
    OwnedExec exec = instantiate(gpu, clone);
    clone.reset();
    gpu.time.sleep_ns(10'000'000);
    gpu.wait();
    expect(!destroyed, "a user object was destroyed while an executable of its graph was there");
    exec.reset();
    expect(soon(), "a user object that nobody holds was not destroyed within 200 ms");
}

void truth_device_updatable_nodes_allow_one_executable(Gpu& gpu) {
    const OwnedGraph graph = chain_of(gpu, 1);
    LaunchAttributeValue value{};
    value.device_updatable.updatable = 1;
    const CuResult set =
        gpu.d.graph_kernel_node_set_attribute(nodes_of(gpu, graph)[0], attribute_device_updatable, &value);
    if (set != CuResult::success) {
        throw NotApplicable{"this driver or device makes no node device-updatable: " + gpu.name_of(set)};
    }
    OwnedGraph clone(gpu);
    const CuResult cloned = gpu.d.graph_clone(clone.out(), graph);
    const OwnedExec first = instantiate(gpu, graph);
    OwnedExec second(gpu), third(gpu);
    const CuResult again = gpu.d.graph_instantiate(second.out(), graph, 0);
    const CuResult of_clone =
        cloned == CuResult::success ? gpu.d.graph_instantiate(third.out(), clone, 0) : CuResult::not_supported;
    say("again: " + gpu.name_of(again) + "; clone: " + gpu.name_of(cloned) +
        "; its executable: " + gpu.name_of(of_clone));
    expect(again != CuResult::success, "a graph with a device-updatable node was instantiated twice at a time");
}

void truth_captured_kernel_has_its_streams_priority(Gpu& gpu) {
    const int highest = highest_priority(gpu);
    const int found = priority_of(gpu, graph_of_priority(gpu, highest));
    expect(found == highest,
           "a kernel captured at priority " + std::to_string(highest) + " has " + std::to_string(found));
}

void truth_clone_keeps_node_attributes(Gpu& gpu) {
    const int highest = highest_priority(gpu);
    const OwnedGraph graph = graph_of_priority(gpu, highest);
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    const int found = priority_of(gpu, clone);
    expect(found == highest,
           "the clone of a kernel of priority " + std::to_string(highest) + " has " + std::to_string(found));
}

void truth_clone_keeps_programmatic_edges(Gpu& gpu) {
    if (gpu.d.graph_add_dependencies_v12030 == nullptr) {
        throw NotApplicable{"this driver knows no edge data"};
    }
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode from = add_empty_kernel(gpu, graph, nullptr), to = add_empty_kernel(gpu, graph, nullptr);
    const EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    gpu.must(gpu.d.add_edges(graph, &from, &to, &edge, 1), "a programmatic edge between kernels");
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    const Edges edges = edges_of(gpu, clone);
    expect(edges.count() == 1, "one edge became " + std::to_string(edges.count()));
    expect(edges.data[0].from_port == edge.from_port && edges.data[0].type == edge.type,
           "a programmatic edge became another one");
}

void truth_executable_tells_its_flags(Gpu& gpu) {
    if (gpu.d.graph_exec_get_flags == nullptr) {
        throw NotApplicable{"this driver has no cuGraphExecGetFlags"};
    }
    const OwnedGraph graph = chain_of(gpu, 1);
    OwnedExec exec(gpu);
    const unsigned long long wanted = instantiate_auto_free_on_launch | instantiate_use_node_priority;
    gpu.must(gpu.d.graph_instantiate(exec.out(), graph, wanted), "cuGraphInstantiateWithFlags");
    unsigned long long flags = 0;
    gpu.must(gpu.d.graph_exec_get_flags(exec, &flags), "cuGraphExecGetFlags");
    expect(flags == wanted, "flags " + std::to_string(wanted) + " came back as " + std::to_string(flags));
}

} // namespace gpu_check

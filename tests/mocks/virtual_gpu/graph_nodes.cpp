// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph: added by hand, asked for their parameters, changed, destroyed.
#include <algorithm>

#include "virtual_gpu/graph.hpp"
#include "virtual_gpu/memory.hpp"

namespace plumb::vgpu {

namespace {

CuResult add(Call& call, GraphNode* node, Graph handle, const GraphNode* after, std::size_t count, Work work) {
    const auto graph = call.graph(handle);
    if (!graph || node == nullptr || (count > 0 && after == nullptr)) {
        return CuResult::invalid_value;
    }
    Frontier frontier;
    for (std::size_t i = 0; i < count; ++i) {
        const auto before = call.node(after[i]);
        const bool doubled =
            std::any_of(frontier.begin(), frontier.end(), [&](const FrontierNode& f) { return f.node == after[i]; });
        if (!before || before->graph != graph.get() || doubled) {
            return CuResult::invalid_value;
        }
        frontier.push_back({after[i], {}});
    }
    *node = add_node(*graph, std::move(work), frontier)->handle;
    return call.done();
}

std::shared_ptr<NodeObject> node_of_type(Call& call, GraphNode handle, NodeType type) {
    auto node = call.node(handle);
    if (node && node->work.type != type) {
        call.refuse(CuResult::invalid_value);
        return nullptr;
    }
    return node;
}

CuResult get_kernel_params(Call& call, GraphNode handle, KernelNodeParams* params, int version) {
    const auto node = node_of_type(call, handle, NodeType::kernel);
    if (!node) {
        return call.result();
    }
    write_kernel_params(node->work, *params, version);
    return call.done();
}

CuResult add_kernel(Call& call, GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                    const KernelNodeParams* params, int version) {
    Work work;
    if (params == nullptr || !read_kernel_params(work, *params, version)) {
        return CuResult::invalid_value;
    }
    return add(call, node, graph, after, count, std::move(work));
}

CuResult add_event(Call& call, GraphNode* node, Graph graph, const GraphNode* after, std::size_t count, Event event,
                   NodeType type) {
    if (!call.event(event)) {
        return CuResult::invalid_value;
    }
    Work work;
    work.type = type;
    work.event = event;
    return add(call, node, graph, after, count, std::move(work));
}

} // namespace

extern "C" {

CuResult vgpu_graph_node_get_type(GraphNode handle, NodeType* type) {
    PLUMB_VGPU_ENTER(graph_node_get_type, {handle});
    const auto node = call.node(handle);
    if (!node) {
        return call.result();
    }
    *type = node->work.type;
    return call.done();
}

CuResult vgpu_graph_kernel_node_get_params(GraphNode node, KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_kernel_node_get_params, {node});
    return get_kernel_params(call, node, params, 2);
}

CuResult vgpu_graph_kernel_node_get_params_v10000(GraphNode node, KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_kernel_node_get_params_v10000, {node});
    return get_kernel_params(call, node, params, 1);
}

CuResult vgpu_graph_kernel_node_set_params(GraphNode handle, const KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_kernel_node_set_params, {handle});
    const auto node = node_of_type(call, handle, NodeType::kernel);
    Work work;
    if (!node || params == nullptr || !read_kernel_params(work, *params, 2)) {
        return CuResult::invalid_value;
    }
    keep_attributes(work, node->work);
    node->work = std::move(work);
    return call.done();
}

CuResult vgpu_graph_kernel_node_get_attribute(GraphNode handle, int attribute, LaunchAttributeValue* value) {
    PLUMB_VGPU_ENTER(graph_kernel_node_get_attribute, {handle});
    const auto node = node_of_type(call, handle, NodeType::kernel);
    if (!node || value == nullptr) {
        return CuResult::invalid_value;
    }
    *value = LaunchAttributeValue{};
    if (attribute == attribute_priority) {
        value->priority = node->work.kernel.priority;
    } else if (attribute == attribute_device_updatable && gpu().config.driver_version >= 12040) {
        value->device_updatable.updatable = node->work.kernel.device_updatable ? 1 : 0;
    } else {
        return CuResult::invalid_value;
    }
    return call.done();
}

CuResult vgpu_graph_kernel_node_set_attribute(GraphNode handle, int attribute, const LaunchAttributeValue* value) {
    PLUMB_VGPU_ENTER(graph_kernel_node_set_attribute, {handle});
    const auto node = node_of_type(call, handle, NodeType::kernel);
    if (!node || value == nullptr) {
        return CuResult::invalid_value;
    }
    KernelWork& kernel = node->work.kernel;
    if (attribute == attribute_priority) {
        kernel.priority = priority_of(value->priority);
    } else if (attribute == attribute_device_updatable && gpu().config.driver_version >= 12040 &&
               value->device_updatable.updatable != 0) { // once it may it always may
        kernel.device_updatable = true;
    } else {
        return CuResult::invalid_value;
    }
    return call.done();
}

CuResult vgpu_graph_memcpy_node_get_params(GraphNode handle, Memcpy3d* params) {
    PLUMB_VGPU_ENTER(graph_memcpy_node_get_params, {handle});
    const auto node = node_of_type(call, handle, NodeType::memcpy);
    if (!node) {
        return call.result();
    }
    *params = node->work.copy;
    return call.done();
}

CuResult vgpu_graph_memset_node_get_params(GraphNode handle, MemsetNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_memset_node_get_params, {handle});
    const auto node = node_of_type(call, handle, NodeType::memset);
    if (!node) {
        return call.result();
    }
    *params = node->work.memset;
    return call.done();
}

CuResult vgpu_graph_host_node_get_params(GraphNode handle, HostNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_host_node_get_params, {handle});
    const auto node = node_of_type(call, handle, NodeType::host);
    if (!node) {
        return call.result();
    }
    *params = node->work.host;
    return call.done();
}

CuResult vgpu_graph_batch_mem_op_node_get_params(GraphNode handle, BatchMemOpNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_batch_mem_op_node_get_params, {handle});
    const auto node = node_of_type(call, handle, NodeType::batch_mem_op);
    if (!node) {
        return call.result();
    }
    std::vector<WriteValueOp>& writes = node->work.writes;
    *params = {nullptr, static_cast<unsigned>(writes.size()), writes.data(), 0};
    return call.done();
}

CuResult vgpu_graph_child_node_get_graph(GraphNode handle, Graph* graph) {
    PLUMB_VGPU_ENTER(graph_child_node_get_graph, {handle});
    const auto node = node_of_type(call, handle, NodeType::graph);
    if (!node) {
        return call.result();
    }
    *graph = node->work.child->handle;
    return call.done();
}

CuResult vgpu_graph_event_record_node_get_event(GraphNode handle, Event* event) {
    PLUMB_VGPU_ENTER(graph_event_record_node_get_event, {handle});
    const auto node = node_of_type(call, handle, NodeType::event_record);
    if (!node) {
        return call.result();
    }
    *event = node->work.event;
    return call.done();
}

CuResult vgpu_graph_add_kernel_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                    const KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_add_kernel_node, {graph});
    return add_kernel(call, node, graph, after, count, params, 2);
}

CuResult vgpu_graph_add_kernel_node_v10000(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                           const KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_add_kernel_node_v10000, {graph});
    return add_kernel(call, node, graph, after, count, params, 1);
}

CuResult vgpu_graph_add_event_record_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                          Event event) {
    PLUMB_VGPU_ENTER(graph_add_event_record_node, {graph});
    return add_event(call, node, graph, after, count, event, NodeType::event_record);
}

CuResult vgpu_graph_add_event_wait_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                        Event event) {
    PLUMB_VGPU_ENTER(graph_add_event_wait_node, {graph});
    return add_event(call, node, graph, after, count, event, NodeType::wait_event);
}

CuResult vgpu_graph_add_empty_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count) {
    PLUMB_VGPU_ENTER(graph_add_empty_node, {graph});
    return add(call, node, graph, after, count, {});
}

CuResult vgpu_graph_add_memcpy_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                    const Memcpy3d* params, Context) {
    PLUMB_VGPU_ENTER(graph_add_memcpy_node, {graph});
    Work work;
    work.type = NodeType::memcpy;
    work.copy = *params;
    return add(call, node, graph, after, count, std::move(work));
}

CuResult vgpu_graph_add_memset_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                    const MemsetNodeParams* params, Context) {
    PLUMB_VGPU_ENTER(graph_add_memset_node, {graph});
    Work work;
    work.type = NodeType::memset;
    work.memset = *params;
    return add(call, node, graph, after, count, std::move(work));
}

CuResult vgpu_graph_add_host_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                  const HostNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_add_host_node, {graph});
    Work work;
    work.type = NodeType::host;
    work.host = *params;
    return add(call, node, graph, after, count, std::move(work));
}

CuResult vgpu_graph_add_child_graph_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                         Graph child) {
    PLUMB_VGPU_ENTER(graph_add_child_graph_node, {graph, child});
    const auto original = call.graph(child);
    if (!original || child == graph) {
        return CuResult::invalid_value;
    }
    if (original->has(NodeType::mem_alloc) || original->has(NodeType::mem_free) ||
        original->has(NodeType::conditional)) {
        return CuResult::not_supported;
    }
    Work work;
    work.type = NodeType::graph;
    work.child = embed(*original);
    const auto embedded = work.child;
    const CuResult result = add(call, node, graph, after, count, std::move(work));
    if (result != CuResult::success) {
        drop_graph(embedded);
    }
    return result;
}

CuResult vgpu_graph_add_mem_alloc_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                       MemAllocNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_add_mem_alloc_node, {graph});
    std::uintptr_t at = 0;
    const CuResult result = allocate(params->bytes, false, true, &at);
    if (result != CuResult::success) {
        return result;
    }
    params->address = at | device_tag;
    Work work;
    work.type = NodeType::mem_alloc;
    work.address = params->address;
    work.bytes = params->bytes;
    return add(call, node, graph, after, count, std::move(work));
}

CuResult vgpu_graph_add_mem_free_node(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                      DevicePointer address) {
    PLUMB_VGPU_ENTER(graph_add_mem_free_node, {graph});
    Work work;
    work.type = NodeType::mem_free;
    work.address = address;
    return add(call, node, graph, after, count, std::move(work));
}

// Its neighbours are cut off from it and not tied to each other.
CuResult vgpu_graph_destroy_node(GraphNode handle) {
    PLUMB_VGPU_ENTER(graph_destroy_node, {handle});
    const auto node = call.node(handle);
    if (!node) {
        return call.result();
    }
    GraphObject& graph = *node->graph;
    if (graph.capturing || node->work.kernel.device_updatable || graph.has(NodeType::mem_alloc) ||
        graph.has(NodeType::mem_free)) {
        return CuResult::invalid_value;
    }
    for (const auto& other : graph.nodes) {
        std::erase_if(other->after, [&node](const Dependency& dependency) { return dependency.from == node.get(); });
    }
    if (node->work.child) {
        drop_graph(node->work.child);
    }
    std::erase(graph.nodes, node);
    gpu().nodes.take(handle);
    return call.done();
}

} // extern "C"

GraphNode add_bare_node(Graph handle, NodeType type, const std::vector<GraphNode>& after) {
    const std::lock_guard lock(gpu().mutex);
    const auto graph = gpu().graphs.find(handle);
    if (!graph) {
        return nullptr;
    }
    Work work;
    work.type = type;
    Frontier frontier;
    for (const GraphNode node : after) {
        frontier.push_back({node, {}});
    }
    return add_node(*graph, std::move(work), frontier)->handle;
}

} // namespace plumb::vgpu

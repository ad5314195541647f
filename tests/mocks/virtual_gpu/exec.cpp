// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiated, updated in place, switched, destroyed.
#include <algorithm>

#include "virtual_gpu/graph.hpp"
#include "virtual_gpu/observer.hpp"

namespace plumb::vgpu {

namespace {

constexpr int update_error = 1;
constexpr int update_topology_changed = 2;
constexpr int update_type_changed = 3;
constexpr int update_parameters_changed = 5;

// Depth-first over dependencies, in order of creation; false: a cycle.
struct Flattener {
    std::vector<ExecNode>* out;
    std::map<const NodeObject*, std::size_t> done; // node -> index of what others wait for
    std::set<const NodeObject*> open;

    bool visit(const NodeObject& node, const std::vector<std::pair<std::size_t, EdgeData>>& outer) {
        if (done.count(&node) != 0) {
            return true;
        }
        if (!open.insert(&node).second) {
            return false;
        }
        ExecNode flat;
        for (const Dependency& dependency : node.after) {
            if (!visit(*dependency.from, outer)) {
                return false;
            }
            flat.after.emplace_back(done.at(dependency.from), dependency.edge);
        }
        if (node.after.empty()) {
            flat.after = outer;
        }
        flat.work = node.work;
        flat.source = node.handle;
        out->push_back(std::move(flat));
        done[&node] = out->size() - 1;
        return node.work.type != NodeType::graph || unfold(node);
    }

    // A child graph: the node itself stands before its roots, an empty one after its leaves.
    bool unfold(const NodeObject& node) {
        const std::size_t begin = out->size() - 1;
        Flattener inner{out, {}, {}};
        std::set<const NodeObject*> waited_for;
        for (const auto& child : node.work.child->nodes) {
            if (!inner.visit(*child, {{begin, {}}})) {
                return false;
            }
            for (const Dependency& dependency : child->after) {
                waited_for.insert(dependency.from);
            }
        }
        ExecNode end;
        end.after.emplace_back(begin, EdgeData{});
        for (const auto& child : node.work.child->nodes) {
            if (waited_for.count(child.get()) == 0) {
                end.after.emplace_back(inner.done.at(child.get()), EdgeData{});
            }
        }
        out->push_back(std::move(end));
        done[&node] = out->size() - 1;
        return true;
    }
};

bool is_single(const GraphObject& graph) {
    return graph.device_updatable() || graph.has(NodeType::mem_alloc) || graph.has(NodeType::mem_free) ||
           graph.has(NodeType::conditional);
}

// Its own and those of its child graphs.
References all_references(const GraphObject& graph) {
    References all = graph.objects;
    for (const auto& node : graph.nodes) {
        if (node->work.child) {
            add_references(all, all_references(*node->work.child));
        }
    }
    return all;
}

bool same_edges(const ExecNode& a, const ExecNode& b) {
    if (a.after.size() != b.after.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.after.size(); ++i) {
        if (a.after[i].first != b.after[i].first || a.after[i].second.type != b.after[i].second.type) {
            return false;
        }
    }
    return true;
}

bool same_memory_kind(const Work& a, const Work& b) {
    return a.type != NodeType::memcpy ||
           (a.copy.src_memory_type == b.copy.src_memory_type && a.copy.dst_memory_type == b.copy.dst_memory_type);
}

int compare(const std::vector<ExecNode>& now, const std::vector<ExecNode>& wanted, GraphNode* culprit) {
    *culprit = nullptr;
    if (now.size() != wanted.size()) {
        return update_topology_changed;
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
        *culprit = wanted[i].source;
        if (!same_edges(now[i], wanted[i])) {
            return update_topology_changed;
        }
        if (now[i].work.type != wanted[i].work.type) {
            return update_type_changed;
        }
        if (!same_memory_kind(now[i].work, wanted[i].work)) {
            return update_parameters_changed;
        }
    }
    *culprit = nullptr;
    return 0;
}

CuResult update(Call& call, GraphExec handle, Graph graph_handle, GraphNode* error_node, int* result) {
    const auto exec = call.exec(handle);
    const auto graph = exec ? call.graph(graph_handle) : nullptr;
    if (!graph) {
        return CuResult::invalid_value;
    }
    std::vector<ExecNode> wanted;
    if (is_single(*graph) || !flatten(*graph, &wanted)) {
        *result = update_error;
        return CuResult::graph_exec_update_failure;
    }
    *result = compare(exec->nodes, wanted, error_node);
    if (*result != 0) {
        return CuResult::graph_exec_update_failure;
    }
    const References before = std::exchange(exec->objects, all_references(*graph));
    retain(exec->objects);
    release(before, std::max(host_now(), exec->last_end_ns));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        exec->nodes[i].work = std::move(wanted[i].work);
    }
    return call.done();
}

// The node of an executable that a node of its source graph names; the source must be alive.
ExecNode* node_in(Call& call, ExecObject& exec, GraphNode handle) {
    if (!call.node(handle)) {
        return nullptr;
    }
    const auto found = exec.index.find(handle);
    if (found == exec.index.end()) {
        call.refuse(CuResult::invalid_value);
        return nullptr;
    }
    return &exec.nodes[found->second];
}

std::int64_t instantiate_cost(Graph graph) {
    const std::lock_guard lock(gpu().mutex);
    const auto object = gpu().graphs.find(graph);
    const auto nodes = object ? static_cast<std::int64_t>(object->nodes.size()) : 0;
    return gpu().config.instantiate_ns + nodes * gpu().config.instantiate_node_ns;
}

} // namespace

bool flatten(const GraphObject& graph, std::vector<ExecNode>* nodes) {
    Flattener flattener{nodes, {}, {}};
    return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                       [&flattener](const auto& node) { return flattener.visit(*node, {}); });
}

extern "C" {

CuResult vgpu_graph_instantiate(GraphExec* exec, Graph handle, unsigned long long flags) {
    PLUMB_VGPU_ENTER(graph_instantiate, {handle}, instantiate_cost(handle));
    const auto graph = call.graph(handle);
    const auto context = context_of(current_context());
    const unsigned long long wrong = instantiate_auto_free_on_launch | instantiate_device_launch; // not both
    if (!graph || graph->capturing || flags > 15 || (flags & instantiate_upload) != 0 || (flags & wrong) == wrong) {
        return CuResult::invalid_value;
    }
    if (gpu().execs.alive() >= gpu().config.exec_limit) {
        return CuResult::out_of_memory;
    }
    if (is_single(*graph) && graph->live_execs > 0) {
        return CuResult::not_supported;
    }
    auto object = std::make_shared<ExecObject>();
    if (!flatten(*graph, &object->nodes)) {
        return CuResult::invalid_value;
    }
    for (const ExecNode& node : object->nodes) {
        if (node.work.type == NodeType::kernel) {
            call.load(*node.work.kernel.function);
        }
    }
    object->id = gpu().next_graph_id++;
    object->source_graph = graph->id;
    object->source = graph;
    object->flags = flags;
    object->objects = all_references(*graph);
    retain(object->objects);
    object->device = context ? context->device : 0;
    ++graph->live_execs;
    *exec = gpu().execs.give(object);
    for (std::size_t i = 0; i < object->nodes.size(); ++i) {
        ExecNode& node = object->nodes[i];
        if (node.source == nullptr) {
            continue;
        }
        object->index[node.source] = i;
        node.id = gpu().next_id++;
        tell_of_birth({true, handle, exec_node_handle(node.id), node.source, *exec, node.work.type});
    }
    return call.done();
}

CuResult vgpu_graph_exec_destroy(GraphExec handle) {
    PLUMB_VGPU_ENTER(graph_exec_destroy, {handle});
    const auto exec = call.exec(handle);
    if (!exec) {
        return call.result();
    }
    if (exec->last_end_ns > host_now()) {
        ++gpu().ledger.destroyed_in_flight;
    }
    if (const auto source = exec->source.lock()) {
        --source->live_execs;
    }
    release(exec->objects, std::max(host_now(), exec->last_end_ns));
    gpu().execs.take(handle);
    return call.done();
}

CuResult vgpu_graph_exec_update_v12000(GraphExec exec, Graph graph, ExecUpdateInfo* info) {
    PLUMB_VGPU_ENTER(graph_exec_update_v12000, {exec, graph});
    info->error_from_node = nullptr;
    return update(call, exec, graph, &info->error_node, &info->result);
}

CuResult vgpu_graph_exec_update_v10020(GraphExec exec, Graph graph, GraphNode* error_node, int* result) {
    PLUMB_VGPU_ENTER(graph_exec_update_v10020, {exec, graph});
    GraphNode unwanted = nullptr;
    return update(call, exec, graph, error_node != nullptr ? error_node : &unwanted, result);
}

CuResult vgpu_graph_node_set_enabled(GraphExec handle, GraphNode node, unsigned enabled) {
    PLUMB_VGPU_ENTER(graph_node_set_enabled, {handle});
    const auto exec = call.exec(handle);
    ExecNode* target = exec ? node_in(call, *exec, node) : nullptr;
    if (target == nullptr) {
        return CuResult::invalid_value;
    }
    const NodeType type = target->work.type;
    if (type != NodeType::kernel && type != NodeType::memset && type != NodeType::memcpy) {
        return CuResult::invalid_value;
    }
    target->enabled = enabled != 0;
    return call.done();
}

CuResult vgpu_graph_exec_event_record_node_set_event(GraphExec handle, GraphNode node, Event event) {
    PLUMB_VGPU_ENTER(graph_exec_event_record_node_set_event, {handle});
    const auto exec = call.exec(handle);
    ExecNode* target = exec ? node_in(call, *exec, node) : nullptr;
    if (target == nullptr || target->work.type != NodeType::event_record || !call.event(event)) {
        return CuResult::invalid_value;
    }
    target->work.event = event;
    return call.done();
}

CuResult vgpu_graph_exec_kernel_node_set_params(GraphExec handle, GraphNode node, const KernelNodeParams* params) {
    PLUMB_VGPU_ENTER(graph_exec_kernel_node_set_params, {handle});
    const auto exec = call.exec(handle);
    ExecNode* target = exec ? node_in(call, *exec, node) : nullptr;
    Work work;
    if (target == nullptr || target->work.type != NodeType::kernel || !read_kernel_params(work, *params, 2)) {
        return CuResult::invalid_value;
    }
    keep_attributes(work, target->work);
    target->work = std::move(work);
    return call.done();
}

CuResult vgpu_graph_exec_get_flags(GraphExec handle, unsigned long long* flags) {
    PLUMB_VGPU_ENTER(graph_exec_get_flags, {handle});
    const auto exec = call.exec(handle);
    if (!exec || flags == nullptr) {
        return CuResult::invalid_value;
    }
    *flags = exec->flags;
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu

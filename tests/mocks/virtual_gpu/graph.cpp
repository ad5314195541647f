// SPDX-License-Identifier: Apache-2.0
// Graphs as objects: made, destroyed, cloned, asked for nodes and edges.
#include <algorithm>

#include "virtual_gpu/call.hpp"
#include "virtual_gpu/observer.hpp"

namespace plumb::vgpu {

namespace {

struct Edge {
    GraphNode from, to;
    EdgeData data;
    bool operator==(const Edge& other) const { return from == other.from && to == other.to; }
};

std::vector<Edge> edges_of(const GraphObject& graph) {
    std::vector<Edge> edges;
    for (const auto& node : graph.nodes) {
        for (const Dependency& dependency : node->after) {
            edges.push_back({dependency.from->handle, node->handle, dependency.edge});
        }
    }
    return edges;
}

template <class T>
void shuffle_if_asked(std::vector<T>& items) {
    if (gpu().config.shuffle_nodes) {
        std::shuffle(items.begin(), items.end(), gpu().random);
    }
}

bool is_plain(const EdgeData& edge) { return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0; }

CuResult get_edges(Call& call, Graph handle, GraphNode* from, GraphNode* to, EdgeData* data, bool knows_data,
                   std::size_t* count) {
    const auto graph = call.graph(handle);
    if (!graph || count == nullptr) {
        return CuResult::invalid_value;
    }
    auto edges = edges_of(*graph);
    if (from == nullptr || to == nullptr) {
        *count = edges.size();
        return from == to && data == nullptr ? call.done() : CuResult::invalid_value;
    }
    shuffle_if_asked(edges);
    const std::size_t given = std::min(*count, edges.size());
    for (std::size_t i = 0; i < *count; ++i) {
        if (i < given && (!knows_data || data == nullptr) && !is_plain(edges[i].data)) {
            return CuResult::lossy_query;
        }
        from[i] = i < given ? edges[i].from : nullptr;
        to[i] = i < given ? edges[i].to : nullptr;
        if (data != nullptr) {
            data[i] = i < given ? edges[i].data : EdgeData{};
        }
    }
    *count = given;
    return call.done();
}

Dependency* find_dependency(NodeObject& to, const NodeObject* from) {
    for (Dependency& dependency : to.after) {
        if (dependency.from == from) {
            return &dependency;
        }
    }
    return nullptr;
}

bool may_join(const NodeObject& from, const NodeObject& to, const EdgeData& edge) {
    return edge.type != edge_type_programmatic ||
           (from.work.type == NodeType::kernel && to.work.type == NodeType::kernel && edge.from_port != 0);
}

// All of it or nothing.
CuResult change_dependencies(Call& call, Graph handle, const GraphNode* from, const GraphNode* to,
                             const EdgeData* edges, std::size_t count, bool add) {
    const auto graph = call.graph(handle);
    if (!graph || (count > 0 && (from == nullptr || to == nullptr))) {
        return CuResult::invalid_value;
    }
    std::vector<std::pair<std::shared_ptr<NodeObject>, Dependency>> changes;
    for (std::size_t i = 0; i < count; ++i) {
        const auto before = call.node(from[i]);
        const auto after = before ? call.node(to[i]) : nullptr;
        if (!after || before->graph != graph.get() || after->graph != graph.get() || before == after) {
            return CuResult::invalid_value;
        }
        const EdgeData edge = edges == nullptr ? EdgeData{} : edges[i];
        const Dependency* known = find_dependency(*after, before.get());
        if ((known != nullptr) == add || !may_join(*before, *after, edge)) {
            return CuResult::invalid_value;
        }
        if (!add && (known->edge.type != edge.type || known->edge.from_port != edge.from_port)) {
            return CuResult::invalid_value;
        }
        changes.emplace_back(after, Dependency{before.get(), edge});
    }
    for (const auto& [node, dependency] : changes) {
        if (add) {
            node->after.push_back(dependency);
        } else {
            std::erase_if(node->after, [&d = dependency](const Dependency& have) { return have.from == d.from; });
        }
    }
    return call.done();
}

std::shared_ptr<GraphObject> clone_of(const GraphObject& original, bool owned) {
    auto clone = make_graph();
    clone->clone_of = original.id;
    clone->owned_by_node = owned;
    clone->objects = original.objects;
    retain(clone->objects);
    std::map<const NodeObject*, GraphNode> handles;
    for (const auto& node : original.nodes) {
        auto copy = std::make_shared<NodeObject>();
        copy->graph = clone.get();
        copy->work = node->work;
        if (node->work.child) {
            copy->work.child = clone_of(*node->work.child, true);
        }
        copy->id = gpu().next_id++;
        copy->original = node->handle;
        copy->handle = gpu().nodes.give(copy);
        clone->nodes.push_back(copy);
        tell_of_birth({true, clone->handle, copy->handle, node->handle, nullptr, copy->work.type});
        handles[node.get()] = copy->handle;
    }
    for (std::size_t i = 0; i < original.nodes.size(); ++i) {
        for (const Dependency& dependency : original.nodes[i]->after) {
            clone->nodes[i]->after.push_back({find_node(handles[dependency.from]).get(), dependency.edge});
        }
    }
    return clone;
}

} // namespace

bool GraphObject::device_updatable() const {
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
        return node->work.kernel.device_updatable || (node->work.child && node->work.child->device_updatable());
    });
}

bool GraphObject::has(NodeType type) const {
    return std::any_of(nodes.begin(), nodes.end(), [type](const auto& node) {
        return node->work.type == type || (node->work.child && node->work.child->has(type));
    });
}

std::shared_ptr<GraphObject> make_graph() {
    auto graph = std::make_shared<GraphObject>();
    graph->id = gpu().next_id++;
    graph->handle = gpu().graphs.give(graph);
    return graph;
}

std::shared_ptr<NodeObject> find_node(GraphNode node) { return gpu().nodes.find(node); }

std::shared_ptr<NodeObject> add_node(GraphObject& graph, Work work, const Frontier& after) {
    auto node = std::make_shared<NodeObject>();
    node->graph = &graph;
    node->work = std::move(work);
    for (const FrontierNode& before : after) {
        if (const auto object = find_node(before.node)) {
            node->after.push_back({object.get(), before.edge});
        }
    }
    node->id = gpu().next_id++;
    node->handle = gpu().nodes.give(node);
    graph.nodes.push_back(node);
    tell_of_birth({false, graph.handle, node->handle, nullptr, nullptr, node->work.type});
    return node;
}

void drop_graph(const std::shared_ptr<GraphObject>& graph) {
    for (const auto& node : graph->nodes) {
        if (node->work.child) {
            drop_graph(node->work.child);
        }
        gpu().nodes.take(node->handle);
    }
    release(graph->objects, host_now());
    gpu().graphs.take(graph->handle);
}

std::shared_ptr<GraphObject> embed(const GraphObject& child) { return clone_of(child, true); }

extern "C" {

CuResult vgpu_graph_create(Graph* graph, unsigned flags) {
    PLUMB_VGPU_ENTER(graph_create);
    if (flags != 0) {
        return CuResult::invalid_value;
    }
    *graph = make_graph()->handle;
    return call.done();
}

CuResult vgpu_graph_destroy(Graph handle) {
    PLUMB_VGPU_ENTER(graph_destroy, {handle});
    const auto graph = call.graph(handle);
    if (!graph || graph->capturing || graph->owned_by_node) {
        return CuResult::invalid_value;
    }
    drop_graph(graph);
    return call.done();
}

CuResult vgpu_graph_clone(Graph* clone, Graph original) {
    PLUMB_VGPU_ENTER(graph_clone, {original});
    const auto graph = call.graph(original);
    if (!graph) {
        return call.result();
    }
    for (const NodeType type : {NodeType::mem_alloc, NodeType::mem_free, NodeType::conditional}) {
        if (graph->has(type)) {
            return CuResult::not_supported;
        }
    }
    *clone = clone_of(*graph, false)->handle;
    return call.done();
}

CuResult vgpu_graph_node_find_in_clone(GraphNode* found, GraphNode original, Graph clone) {
    PLUMB_VGPU_ENTER(graph_node_find_in_clone, {clone});
    const auto node = call.node(original);
    const auto graph = node ? call.graph(clone) : nullptr;
    if (!graph || graph->clone_of != node->graph->id) {
        return CuResult::invalid_value;
    }
    for (const auto& copy : graph->nodes) {
        if (copy->original == original) {
            *found = copy->handle;
            return call.done();
        }
    }
    return CuResult::invalid_value;
}

CuResult vgpu_graph_get_nodes(Graph handle, GraphNode* nodes, std::size_t* count) {
    PLUMB_VGPU_ENTER(graph_get_nodes, {handle});
    const auto graph = call.graph(handle);
    if (!graph || count == nullptr) {
        return CuResult::invalid_value;
    }
    if (nodes == nullptr) {
        *count = graph->nodes.size();
        return call.done();
    }
    std::vector<GraphNode> all;
    for (const auto& node : graph->nodes) {
        all.push_back(node->handle);
    }
    shuffle_if_asked(all);
    const std::size_t given = std::min(*count, all.size());
    std::fill(nodes, nodes + *count, nullptr);
    std::copy_n(all.begin(), given, nodes);
    *count = given;
    return call.done();
}

CuResult vgpu_graph_get_edges_v12030(Graph graph, GraphNode* from, GraphNode* to, EdgeData* edges, std::size_t* count) {
    PLUMB_VGPU_ENTER(graph_get_edges_v12030, {graph});
    return get_edges(call, graph, from, to, edges, true, count);
}

CuResult vgpu_graph_get_edges_v10000(Graph graph, GraphNode* from, GraphNode* to, std::size_t* count) {
    PLUMB_VGPU_ENTER(graph_get_edges_v10000, {graph});
    return get_edges(call, graph, from, to, nullptr, false, count);
}

CuResult vgpu_graph_add_dependencies_v12030(Graph graph, const GraphNode* from, const GraphNode* to,
                                            const EdgeData* edges, std::size_t count) {
    PLUMB_VGPU_ENTER(graph_add_dependencies_v12030, {graph});
    return change_dependencies(call, graph, from, to, edges, count, true);
}

CuResult vgpu_graph_add_dependencies_v10000(Graph graph, const GraphNode* from, const GraphNode* to,
                                            std::size_t count) {
    PLUMB_VGPU_ENTER(graph_add_dependencies_v10000, {graph});
    return change_dependencies(call, graph, from, to, nullptr, count, true);
}

CuResult vgpu_graph_remove_dependencies_v12030(Graph graph, const GraphNode* from, const GraphNode* to,
                                               const EdgeData* edges, std::size_t count) {
    PLUMB_VGPU_ENTER(graph_remove_dependencies_v12030, {graph});
    return change_dependencies(call, graph, from, to, edges, count, false);
}

CuResult vgpu_graph_remove_dependencies_v10000(Graph graph, const GraphNode* from, const GraphNode* to,
                                               std::size_t count) {
    PLUMB_VGPU_ENTER(graph_remove_dependencies_v10000, {graph});
    return change_dependencies(call, graph, from, to, nullptr, count, false);
}

} // extern "C"

} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "execgraph/assembly.hpp"

#include <algorithm>
#include <array>

#include "execgraph/cycle.hpp"

namespace plumb {
namespace {

constexpr std::size_t most_named = 8; // of a cycle's nodes in its error
constexpr unsigned partition_bits = 8;
constexpr std::size_t fits_in_cache = std::size_t{1} << 16; // vertices
constexpr std::size_t ahead = 8;                            // rows asked of memory before they are needed

} // namespace

void GraphAssembly::take(std::vector<GraphNode>& nodes, std::vector<std::string>& names) {
    graph_.nodes_ = std::move(nodes);
    graph_.names_ = std::move(names);
}

void GraphAssembly::take(std::vector<LaunchShape>& launches, std::vector<TransferShape>& transfers,
                         std::vector<TaskShape>& tasks) {
    graph_.launches_ = std::move(launches);
    graph_.transfers_ = std::move(transfers);
    graph_.tasks_ = std::move(tasks);
}

Status GraphAssembly::run() {
    if (Status status = check_nodes(); !status.ok()) {
        return status;
    }
    if (Status status = check_edges(); !status.ok()) {
        return status;
    }
    find_ends();
    partition();
    connect();
    if (Status status = sort(); !status.ok()) {
        return status;
    }
    return weigh();
}

Status GraphAssembly::check_nodes() {
    std::vector<GraphNode>& nodes = graph_.nodes_;
    for (NodeId id = 0; id < nodes.size(); ++id) {
        const GraphNode& node = nodes[id];
        if (node.name >= graph_.names_.size()) {
            return Error{ErrorCode::invalid_argument,
                         "node " + std::to_string(id) + " has no name; give it a number that name() returned"};
        }
        if (node.duration_ns < 0) {
            return Error{ErrorCode::invalid_argument, "node " + std::to_string(id) + " (" + graph_.name_of(id) +
                                                          ") has a negative duration; give its end after its begin"};
        }
        if (node.parent == no_node) {
            continue;
        }
        if (node.parent >= nodes.size()) {
            return Error{ErrorCode::invalid_argument, "node " + std::to_string(id) + " lies inside node " +
                                                          std::to_string(node.parent) +
                                                          ", which was never added; add that one too"};
        }
        nodes[node.parent].container = true;
        graph_.containment_ = true;
        graph_.outer_first_ = graph_.outer_first_ && node.parent < id;
    }
    // In a chain of numbers that only fall there is no way back to its begin.
    if (graph_.outer_first_ || graph_.outer_first().size() == nodes.size()) {
        return {};
    }
    std::vector<std::uint64_t> offsets(nodes.size() + 1, 0);
    std::vector<std::uint32_t> parents;
    for (NodeId id = 0; id < nodes.size(); ++id) {
        if (nodes[id].parent != no_node) {
            parents.push_back(nodes[id].parent);
        }
        offsets[id + 1] = parents.size();
    }
    return cycle_error(execgraph::find_cycle(offsets, parents), "nodes contain each other in a circle: ",
                       "; give each node an outer one that does not lie inside it");
}

Status GraphAssembly::check_edges() {
    const std::size_t nodes = graph_.nodes_.size();
    for (const auto& [from, to] : edges_) {
        sorted_ = sorted_ && from < to;
        if (from >= nodes || to >= nodes) {
            return Error{ErrorCode::invalid_argument, "an edge names node " +
                                                          std::to_string(from >= nodes ? from : to) +
                                                          ", which was never added; add that one first"};
        }
    }
    return {};
}

void GraphAssembly::find_ends() {
    std::vector<GraphNode>& nodes = graph_.nodes_;
    const auto mark = [&](NodeId id) {
        if (!nodes[id].container) {
            return;
        }
        if (ends_.empty()) {
            ends_.assign(nodes.size(), 0);
        }
        if (ends_[id] != 0) {
            return;
        }
        ends_[id] = static_cast<std::uint32_t>(nodes.size() + graph_.ends_.size());
        graph_.ends_.push_back(id);
    };
    for (const auto& [from, to] : edges_) {
        mark(from);
        mark(to);
    }
    if (ends_.empty()) {
        return;
    }
    around_.assign(nodes.size(), no_node);
    for (const NodeId id : graph_.outer_first()) {
        const NodeId parent = nodes[id].parent;
        if (parent != no_node) {
            around_[id] = ends_[parent] != 0 ? parent : around_[parent];
        }
    }
}

std::uint32_t GraphAssembly::end_of(NodeId node) const {
    return ends_.empty() || ends_[node] == 0 ? node : ends_[node];
}

template <class Visit>
void GraphAssembly::for_each_edge(Visit&& visit) const {
    for (const auto& [from, to] : edges_) {
        visit(end_of(from), to);
    }
    for (NodeId id = 0; id < around_.size(); ++id) {
        const bool counts = !graph_.nodes_[id].container || ends_[id] != 0;
        if (around_[id] == no_node || !counts) {
            continue;
        }
        visit(around_[id], id);
        visit(end_of(id), ends_[around_[id]]);
    }
}

/// Brings edges of neighbouring vertices together, so that what connect() looks up lies in the cache: a random graph of 10^6
/// nodes is built in half the time.
void GraphAssembly::partition() {
    if (sorted_ || graph_.nodes_.size() <= fits_in_cache) {
        return;
    }
    unsigned shift = 0;
    while ((graph_.nodes_.size() - 1) >> shift >= std::size_t{1} << partition_bits) {
        ++shift;
    }
    std::array<std::size_t, (std::size_t{1} << partition_bits) + 1> begins{};
    for (const auto& edge : edges_) {
        ++begins[(edge.first >> shift) + 1];
    }
    for (std::size_t i = 1; i < begins.size(); ++i) {
        begins[i] += begins[i - 1];
    }
    Edges together(edges_.size());
    for (const auto& edge : edges_) {
        together[begins[edge.first >> shift]++] = edge;
    }
    edges_ = std::move(together);
}

void GraphAssembly::connect() {
    const std::size_t vertices = graph_.nodes_.size() + graph_.ends_.size();
    std::vector<std::uint64_t>& offsets = graph_.offsets_;
    offsets.assign(vertices + 1, 0);
    for_each_edge([&](std::uint32_t from, std::uint32_t to) {
        ++offsets[from + 1];
        sorted_ = sorted_ && from < to; // ends have the highest numbers
    });
    for (std::size_t i = 1; i <= vertices; ++i) {
        offsets[i] += offsets[i - 1];
    }
    graph_.targets_.resize(offsets[vertices]);
    if (!sorted_) {
        waiting_.assign(vertices, 0);
    }
    // Fills each row from its begin; what is then one row late is put right by moving all by one.
    for_each_edge([&](std::uint32_t from, std::uint32_t to) {
        graph_.targets_[offsets[from]++] = to;
        if (!sorted_) {
            ++waiting_[to];
        }
    });
    for (std::size_t i = vertices; i > 0; --i) {
        offsets[i] = offsets[i - 1];
    }
    offsets[0] = 0;
    Edges().swap(edges_);
    around_ = {};
    ends_ = {};
}

Status GraphAssembly::sort() {
    if (sorted_) {
        return {};
    }
    const auto& offsets = graph_.offsets_;
    const auto& targets = graph_.targets_;
    const std::size_t vertices = graph_.rows();
    std::vector<std::uint32_t>& order = graph_.order_;
    order.reserve(vertices);
    for (std::uint32_t v = 0; v < vertices; ++v) {
        if (waiting_[v] == 0) {
            order.push_back(v);
        }
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
        if (at + 2 * ahead < order.size()) {
            __builtin_prefetch(&offsets[order[at + 2 * ahead]]);
            __builtin_prefetch(targets.data() + offsets[order[at + ahead]]);
        }
        for (std::uint64_t e = offsets[order[at]]; e < offsets[order[at] + 1]; ++e) {
            if (--waiting_[targets[e]] == 0) {
                order.push_back(targets[e]);
            }
        }
    }
    if (order.size() == vertices) {
        relabel();
        return {};
    }
    order.clear(); // the error speaks of vertices
    return cycle_error(execgraph::find_cycle(offsets, targets),
                       "the dependencies form a cycle: ", "; remove one of them");
}

/// Rows in topological order are read one after another by the passes: only their results are then looked up at random.
void GraphAssembly::relabel() {
    const std::vector<std::uint32_t>& order = graph_.order_;
    std::vector<std::uint32_t>& row_of = waiting_; // all 0 by now
    for (std::uint32_t row = 0; row < order.size(); ++row) {
        row_of[order[row]] = row;
    }
    std::vector<std::uint64_t> offsets(order.size() + 1, 0);
    std::vector<std::uint32_t> targets;
    targets.reserve(graph_.targets_.size());
    for (std::size_t row = 0; row < order.size(); ++row) {
        if (row + 2 * ahead < order.size()) {
            __builtin_prefetch(&graph_.offsets_[order[row + 2 * ahead]]);
            __builtin_prefetch(graph_.targets_.data() + graph_.offsets_[order[row + ahead]]);
        }
        for (std::uint64_t e = graph_.offsets_[order[row]]; e < graph_.offsets_[order[row] + 1]; ++e) {
            targets.push_back(row_of[graph_.targets_[e]]);
        }
        offsets[row + 1] = targets.size();
    }
    graph_.offsets_ = std::move(offsets);
    graph_.targets_ = std::move(targets);
    waiting_ = {};
}

Status GraphAssembly::weigh() {
    const std::size_t rows = graph_.rows();
    graph_.weights_.resize(rows);
    std::int64_t all = 0; // no path is longer
    for (std::uint32_t row = 0; row < rows; ++row) {
        const std::uint32_t vertex = graph_.order_.empty() ? row : graph_.order_[row];
        const bool leaf = vertex < graph_.nodes_.size() && !graph_.nodes_[vertex].container;
        graph_.weights_[row] = leaf ? graph_.nodes_[vertex].duration_ns : -1;
        if (leaf && __builtin_add_overflow(all, graph_.weights_[row], &all)) {
            return Error{ErrorCode::invalid_argument,
                         "its nodes last for more than 292 years together; give durations in nanoseconds"};
        }
    }
    return {};
}

Error GraphAssembly::cycle_error(const std::vector<std::uint32_t>& cycle, const char* what, const char* advice) const {
    std::string text = what;
    const auto named = [this](std::uint32_t vertex) {
        const NodeId id = graph_.node_of(vertex);
        return graph_.name_of(id) + " (node " + std::to_string(id) + ")";
    };
    for (std::size_t i = 0; i < std::min(cycle.size(), most_named); ++i) {
        text += named(cycle[i]) + " -> ";
    }
    if (cycle.size() > most_named) {
        text += "… " + std::to_string(cycle.size() - most_named) + " more -> ";
    }
    text += named(cycle.front());
    return {ErrorCode::invalid_argument, text + advice};
}

} // namespace plumb

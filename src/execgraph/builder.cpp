// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "execgraph/assembly.hpp"

namespace plumb {
namespace {

constexpr std::size_t first_slots = 64;

std::size_t slot_of(const std::vector<std::uint32_t>& slots, const std::vector<std::string>& names,
                    std::string_view text) {
    const std::size_t mask = slots.size() - 1;
    std::size_t at = std::hash<std::string_view>{}(text)&mask;
    while (slots[at] != 0 && names[slots[at] - 1] != text) {
        at = (at + 1) & mask;
    }
    return at;
}

} // namespace

std::uint32_t ExecGraphBuilder::name(std::string_view text) {
    if (2 * (names_.size() + 1) > name_slots_.size()) {
        std::vector<std::uint32_t> wider(name_slots_.empty() ? first_slots : 2 * name_slots_.size(), 0);
        for (std::uint32_t i = 0; i < names_.size(); ++i) {
            wider[slot_of(wider, names_, names_[i])] = i + 1;
        }
        name_slots_ = std::move(wider);
    }
    const std::size_t slot = slot_of(name_slots_, names_, text);
    if (name_slots_[slot] == 0) {
        names_.emplace_back(text);
        name_slots_[slot] = static_cast<std::uint32_t>(names_.size());
    }
    return name_slots_[slot] - 1;
}

NodeId ExecGraphBuilder::add(const GraphNode& node) {
    if (nodes_.size() >= no_node) {
        overflow_ = true;
        return no_node;
    }
    nodes_.push_back(node);
    nodes_.back().container = false;
    if (!node.timed) {
        nodes_.back().duration_ns = 0;
    }
    return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId ExecGraphBuilder::add_kernel(GraphNode node, const LaunchShape& shape) {
    node.kind = NodeKind::kernel;
    node.shape = static_cast<std::uint32_t>(launches_.size());
    launches_.push_back(shape);
    return add(node);
}

NodeId ExecGraphBuilder::add_transfer(GraphNode node, const TransferShape& shape) {
    node.kind = NodeKind::transfer;
    node.shape = static_cast<std::uint32_t>(transfers_.size());
    transfers_.push_back(shape);
    return add(node);
}

NodeId ExecGraphBuilder::add_task(GraphNode node, const TaskShape& shape) {
    node.kind = NodeKind::task;
    node.shape = static_cast<std::uint32_t>(tasks_.size());
    tasks_.push_back(shape);
    return add(node);
}

void ExecGraphBuilder::contain(NodeId outer, NodeId inner) { contained_.emplace_back(outer, inner); }

void ExecGraphBuilder::depend(NodeId earlier, NodeId later) { edges_.emplace_back(earlier, later); }

void ExecGraphBuilder::reserve(std::size_t nodes, std::size_t edges) {
    nodes_.reserve(nodes);
    edges_.reserve(edges);
}

Result<ExecGraph> ExecGraphBuilder::build() {
    ExecGraphBuilder taken = std::move(*this);
    *this = {};
    if (taken.overflow_) {
        return Error{ErrorCode::unsupported, "a graph holds at most 4294967294 nodes; build it in parts"};
    }
    for (const auto& [outer, inner] : taken.contained_) {
        if (inner >= taken.nodes_.size()) {
            return Error{ErrorCode::invalid_argument, "node " + std::to_string(inner) +
                                                          ", which was never added, lies inside node " +
                                                          std::to_string(outer) + "; add that one too"};
        }
        taken.nodes_[inner].parent = outer;
    }
    ExecGraph graph;
    GraphAssembly assembly(graph, taken.edges_);
    assembly.take(taken.nodes_, taken.names_);
    assembly.take(taken.launches_, taken.transfers_, taken.tasks_);
    const Status status = assembly.run();
    if (!status.ok()) {
        return status.error();
    }
    return graph;
}

} // namespace plumb

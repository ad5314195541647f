// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plumb/execgraph.hpp"

namespace plumb {

const LaunchShape* ExecGraph::launch_of(NodeId id) const {
    const GraphNode& node = nodes_[id];
    return node.kind == NodeKind::kernel && node.shape < launches_.size() ? &launches_[node.shape] : nullptr;
}

const TransferShape* ExecGraph::transfer_of(NodeId id) const {
    const GraphNode& node = nodes_[id];
    return node.kind == NodeKind::transfer && node.shape < transfers_.size() ? &transfers_[node.shape] : nullptr;
}

const TaskShape* ExecGraph::task_of(NodeId id) const {
    const GraphNode& node = nodes_[id];
    return node.kind == NodeKind::task && node.shape < tasks_.size() ? &tasks_[node.shape] : nullptr;
}

std::vector<NodeId> ExecGraph::slowest_kernels(std::size_t most) const {
    std::vector<NodeId> kernels;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        if (nodes_[id].kind == NodeKind::kernel && nodes_[id].timed) {
            kernels.push_back(id);
        }
    }
    const auto slower = [this](NodeId a, NodeId b) {
        return nodes_[a].duration_ns != nodes_[b].duration_ns ? nodes_[a].duration_ns > nodes_[b].duration_ns : a < b;
    };
    if (most < kernels.size()) {
        std::nth_element(kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(most), kernels.end(), slower);
        kernels.resize(most);
    }
    std::sort(kernels.begin(), kernels.end(), slower);
    return kernels;
}

} // namespace plumb

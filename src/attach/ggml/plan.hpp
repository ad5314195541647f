// SPDX-License-Identifier: Apache-2.0
// What is known of a graph before it runs: of each node that computes something its brick, layer and work.
// Made and read by the thread that computes the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attach/ggml/api.hpp"
#include "ggml/node_work.hpp"
#include "plumb/bricks.hpp"

namespace plumb::attach::ggml {

using plumb::ggml::NodeWork;

struct PlannedNode {
    const Tensor* tensor;
    Name brick;
    std::int32_t layer; // -1: none
    bool computes;      // false: it only names a part of another tensor
    NodeWork work;
    // What the three above were made from: as long as it is the same, so are they.
    const char* operation;
    const Tensor* operands[GgmlApi::sources];
    std::int64_t elements;
};

/// Nodes that a device computes with one kernel or a few: one brick.
struct NodeGroup {
    Name brick;
    std::int32_t layer;
    NodeWork work;
};

class NodePlan {
  public:
    using Intern = std::function<Name(std::string_view)>;

    /// Makes the plan anew, unless the graph is the one that it was made for.
    void prepare(const GgmlApi& api, Graph* graph, const Intern& intern);

    [[nodiscard]] const std::vector<PlannedNode>& nodes() const { return nodes_; }
    /// Nodes that compute something.
    [[nodiscard]] std::size_t computing() const { return computing_; }
    /// Rows that the graph takes from the table of embeddings; 0: none, it is not of text.
    [[nodiscard]] std::uint64_t tokens() const { return tokens_; }

    // A device's backend visits nodes that compute something, in passes: it looks at all of them, or computes them and passes over those that it computed
    // together with one before. It may have put them into another order.
    /// The place of a node; past the end: it is not of this graph.
    [[nodiscard]] std::size_t find(const Tensor* tensor) const;
    /// False: it was visited in this pass already.
    bool visit(std::size_t at);
    /// What was passed over belongs to the node before it that was visited. A pass over nothing tells nothing.
    void end_pass();
    /// The node and those that were computed with it the last time. The heaviest of them gives its name.
    [[nodiscard]] NodeGroup group_at(std::size_t first) const;

  private:
    [[nodiscard]] bool fits(const GgmlApi& api, Graph* graph, std::size_t count) const;

    std::vector<PlannedNode> nodes_;
    std::unordered_map<const Tensor*, std::uint32_t> places_;
    std::vector<std::uint32_t> group_ends_; // of groups that begin with each node; 0: not known
    std::vector<bool> visited_;             // in this pass
    std::size_t computing_ = 0;
    std::uint64_t tokens_ = 0;
};

} // namespace plumb::attach::ggml

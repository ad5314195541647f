// SPDX-License-Identifier: Apache-2.0
// What is known of a graph before it runs: of each node that computes something its brick, layer and work.
// Made and read by the thread that computes the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
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

  private:
    [[nodiscard]] bool fits(const GgmlApi& api, Graph* graph, std::size_t count) const;

    std::vector<PlannedNode> nodes_;
    std::size_t computing_ = 0;
    std::uint64_t tokens_ = 0;
};

} // namespace plumb::attach::ggml

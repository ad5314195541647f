// SPDX-License-Identifier: Apache-2.0
// What is known of a graph before it runs: of each node that computes something its brick, layer and work.
// Made and read by the thread that computes the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "attach/ggml/api.hpp"
#include "plumb/bricks.hpp"

namespace plumb::attach::ggml {

/// Bytes and flops of one node: a part that is always so, and a part for each position of the kv cache.
struct NodeWork {
    double bytes = 0, flops = 0, bytes_per_kv = 0, flops_per_kv = 0;
};

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

/// The work of one node. `operation` as ggml_op_desc gives it.
NodeWork work_of(const GgmlApi& api, const Tensor* node, std::string_view operation);

} // namespace plumb::attach::ggml

// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/plan.hpp"

#include <algorithm>

#include "ggml/node_names.hpp"

namespace plumb::attach::ggml {
namespace {

plumb::ggml::TensorSizes sizes_of(const GgmlApi& api, const Tensor* tensor) {
    if (tensor == nullptr) {
        return {};
    }
    return {api.get_name(tensor), static_cast<double>(api.nbytes(tensor)), static_cast<double>(api.nelements(tensor)),
            static_cast<double>(api.nrows(tensor))};
}

} // namespace

bool NodePlan::fits(const GgmlApi& api, Graph* graph, std::size_t count) const {
    if (count != nodes_.size()) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const PlannedNode& node = nodes_[i];
        if (api.graph_node(graph, static_cast<int>(i)) != node.tensor || api.op_desc(node.tensor) != node.operation ||
            api.nelements(node.tensor) != node.elements) {
            return false;
        }
        for (std::size_t k = 0; k < GgmlApi::sources; ++k) {
            if (api.source(node.tensor, k) != node.operands[k]) {
                return false;
            }
        }
    }
    return true;
}

void NodePlan::prepare(const GgmlApi& api, Graph* graph, const Intern& intern) {
    const auto count = static_cast<std::size_t>(std::max(api.graph_n_nodes(graph), 0));
    if (fits(api, graph, count)) {
        return;
    }
    nodes_.clear();
    computing_ = 0;
    tokens_ = 0;
    std::int32_t layer = -1;
    for (std::size_t i = 0; i < count; ++i) {
        const Tensor* tensor = api.graph_node(graph, static_cast<int>(i));
        PlannedNode node{tensor, {}, -1, false, {}, api.op_desc(tensor), {}, api.nelements(tensor)};
        plumb::ggml::NodeFacts facts{node.operation, sizes_of(api, tensor), {}};
        for (std::size_t k = 0; k < GgmlApi::sources; ++k) {
            node.operands[k] = api.source(tensor, k);
            facts.sources[k] = sizes_of(api, node.operands[k]);
        }
        const plumb::ggml::NodeWords words{facts.self.name, facts.operation, weight_of(facts)};
        node.layer = layer = layer_of(words, layer);
        node.computes = !plumb::ggml::computes_nothing(words.operation) && node.elements > 0;
        if (node.computes) {
            const std::optional<Brick> brick = brick_of(words);
            node.brick = brick ? Name(*brick) : intern(plumb::ggml::other_name(words.operation));
            node.work = work_of(facts);
            ++computing_;
            if (brick == Brick::embedding && words.operation == "GET_ROWS") {
                tokens_ = static_cast<std::uint64_t>(std::max<std::int64_t>(api.nrows(tensor), 0));
            }
        }
        // A norm's own weight comes with the product behind it: q_norm and attn_norm differ by that alone.
        if (!nodes_.empty() && nodes_.back().tensor == node.operands[0] && words.operation == "MUL") {
            PlannedNode& before = nodes_.back();
            if (before.brick == Name(Brick::rms_norm) && !words.weight.empty()) {
                before.brick = node.brick;
            } else if (before.brick == Name(Brick::layer_norm)) {
                node.brick = before.brick;
            }
        }
        nodes_.push_back(node);
    }
}

} // namespace plumb::attach::ggml

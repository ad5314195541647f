// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/plan.hpp"

#include <algorithm>

#include "attach/ggml/node_names.hpp"

namespace plumb::attach::ggml {
namespace {

double bytes_of(const GgmlApi& api, const Tensor* tensor) {
    return tensor != nullptr ? static_cast<double>(api.nbytes(tensor)) : 0;
}
double elements_of(const GgmlApi& api, const Tensor* tensor) {
    return tensor != nullptr ? static_cast<double>(api.nelements(tensor)) : 0;
}
double row_length(const GgmlApi& api, const Tensor* tensor) {
    return tensor != nullptr && api.nrows(tensor) > 0
               ? elements_of(api, tensor) / static_cast<double>(api.nrows(tensor))
               : 0;
}

/// The first operand that is a weight or bias of the model, by its name.
std::string_view weight_of(const GgmlApi& api, const Tensor* node) {
    for (std::size_t i = 0; i < GgmlApi::sources; ++i) {
        const Tensor* operand = api.source(node, i);
        const std::string_view name = operand != nullptr ? api.get_name(operand) : "";
        if (name.ends_with(".weight") || name.ends_with(".bias")) {
            return name;
        }
    }
    return {};
}

NodeWork plain_work(const GgmlApi& api, const Tensor* node) {
    NodeWork work;
    work.bytes = bytes_of(api, node);
    work.flops = elements_of(api, node);
    for (std::size_t i = 0; i < GgmlApi::sources; ++i) {
        work.bytes += bytes_of(api, api.source(node, i));
    }
    return work;
}

/// Only the experts that were chosen are read.
NodeWork work_of_experts(const GgmlApi& api, const Tensor* node) {
    const Tensor* weights = api.source(node, 0);
    const Tensor* chosen = api.source(node, 2);
    NodeWork work = plain_work(api, node);
    const double length = row_length(api, weights);
    work.flops = 2 * length * elements_of(api, node);
    const double rows = row_length(api, node); // of one expert
    if (chosen != nullptr && weights != nullptr && rows > 0) {
        const double experts = static_cast<double>(api.nrows(weights)) / rows;
        const double read = std::min(experts, elements_of(api, chosen));
        work.bytes -= bytes_of(api, weights) * (1 - read / experts);
    }
    return work;
}

/// The views of the cache are longer than what is in it, so their size counts by position.
NodeWork work_of_flash_attention(const GgmlApi& api, const Tensor* node) {
    const Tensor* queries = api.source(node, 0);
    const Tensor* mask = api.source(node, 3);
    if (mask == nullptr) {
        NodeWork work = plain_work(api, node);
        work.flops = 0;
        return work;
    }
    NodeWork work;
    const double positions = row_length(api, mask);
    work.bytes = bytes_of(api, queries) + bytes_of(api, node);
    work.bytes_per_kv =
        (bytes_of(api, api.source(node, 1)) + bytes_of(api, api.source(node, 2)) + bytes_of(api, mask)) / positions;
    work.flops_per_kv = 4 * elements_of(api, queries);
    return work;
}

/// Scores (kq), their softmax, and the weighted sum (kqv): in each one dimension is the length of the cache's view.
NodeWork work_of_attention(const GgmlApi& api, const Tensor* node, std::string_view name, std::string_view operation) {
    const Tensor* first = api.source(node, 0);
    const Tensor* second = api.source(node, 1);
    NodeWork work;
    const bool scores = operation == "MUL_MAT" && !name.starts_with("kqv");
    const double positions = operation == "MUL_MAT" && !scores ? row_length(api, first) : row_length(api, node);
    if (operation == "MUL_MAT" && !scores) {
        work.bytes = bytes_of(api, node);
        work.bytes_per_kv = (bytes_of(api, first) + bytes_of(api, second)) / positions;
        work.flops_per_kv = 2 * elements_of(api, node);
    } else {
        work.bytes = scores ? bytes_of(api, second) : 0;
        work.bytes_per_kv = (bytes_of(api, first) + bytes_of(api, node)) / positions;
        work.flops_per_kv = scores ? 2 * elements_of(api, second) : elements_of(api, node) / positions;
    }
    return work;
}

bool is_attention_over_cache(std::string_view name, std::string_view operation) {
    return (operation == "MUL_MAT" && (name.starts_with("kq-") || name.starts_with("kqv-"))) ||
           (operation == "SOFT_MAX" && name.starts_with("kq"));
}

} // namespace

NodeWork work_of(const GgmlApi& api, const Tensor* node, std::string_view operation) {
    const std::string_view name = api.get_name(node);
    if (operation == "FLASH_ATTN_EXT") {
        return work_of_flash_attention(api, node);
    }
    if (is_attention_over_cache(name, operation)) {
        return work_of_attention(api, node, name, operation);
    }
    if (operation == "MUL_MAT_ID") {
        return work_of_experts(api, node);
    }
    NodeWork work = plain_work(api, node);
    if (operation == "MUL_MAT") {
        work.flops = 2 * row_length(api, api.source(node, 0)) * elements_of(api, node);
    } else if (operation == "GET_ROWS") { // of the table only the rows that were asked for
        work.bytes = 2 * bytes_of(api, node) + bytes_of(api, api.source(node, 1));
        work.flops = 0;
    } else if (operation == "SET_ROWS" || operation == "CPY") { // what is written is as much as what is read, at most
        work.bytes = 2 * bytes_of(api, api.source(node, 0));
        work.flops = 0;
    }
    return work;
}

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
        for (std::size_t k = 0; k < GgmlApi::sources; ++k) {
            node.operands[k] = api.source(tensor, k);
        }
        const NodeWords words{api.get_name(tensor), node.operation, weight_of(api, tensor)};
        const std::optional<std::int32_t> of_weight = layer_in(words.weight);
        const std::optional<std::int32_t> stated = of_weight ? of_weight : layer_in(words.name);
        layer = stated ? *stated : after_layers(words.name) ? -1 : layer;
        node.layer = layer;
        node.computes = !computes_nothing(words.operation) && node.elements > 0;
        if (node.computes) {
            const std::optional<Brick> brick = brick_of(words);
            node.brick = brick ? Name(*brick) : intern(other_name(words.operation));
            node.work = work_of(api, tensor, words.operation);
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

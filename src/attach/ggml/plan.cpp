// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/plan.hpp"

#include <algorithm>
#include <utility>

#include "ggml/node_names.hpp"

namespace plumb::attach::ggml {
namespace {

/// What the elements take: of a view ggml_nbytes() is the span, with what lies between. A view has the bytes per element of what it shows.
double bytes_of(const GgmlApi& api, const Tensor* tensor) {
    const Tensor* whole = tensor;
    while (api.source(whole, 0) != nullptr && plumb::ggml::computes_nothing(api.op_desc(whole))) {
        whole = api.source(whole, 0);
    }
    const auto bytes = static_cast<double>(api.nbytes(whole));
    return whole == tensor || bytes == 0
               ? bytes
               : bytes / static_cast<double>(api.nelements(whole)) * static_cast<double>(api.nelements(tensor));
}

plumb::ggml::TensorSizes sizes_of(const GgmlApi& api, const Tensor* tensor) {
    if (tensor == nullptr) {
        return {};
    }
    return {api.get_name(tensor), bytes_of(api, tensor), static_cast<double>(api.nelements(tensor)),
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
    const std::vector<PlannedNode> former = std::exchange(nodes_, {});
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
    places_.clear();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        places_.emplace(nodes_[i].tensor, static_cast<std::uint32_t>(i));
    }
    visited_.assign(nodes_.size(), false);
    // The same operations in the same order are computed in the same groups, whatever they are computed on.
    if (!std::equal(nodes_.begin(), nodes_.end(), former.begin(), former.end(),
                    [](const PlannedNode& a, const PlannedNode& b) { return a.operation == b.operation; })) {
        group_ends_.assign(nodes_.size(), 0);
    }
}

std::size_t NodePlan::find(const Tensor* tensor) const {
    const auto found = places_.find(tensor);
    return found != places_.end() ? found->second : nodes_.size();
}

bool NodePlan::visit(std::size_t at) {
    const bool is_first = !visited_[at];
    visited_[at] = true;
    return is_first;
}

void NodePlan::end_pass() {
    const std::size_t count = nodes_.size();
    std::size_t first = 0;
    std::size_t end = count;
    for (; first < count && !visited_[first]; ++first) {
    }
    for (; end > first && !visited_[end - 1]; --end) {
    }
    const auto passed_over = [this](std::size_t at) {
        return !visited_[at] && nodes_[at].computes;
    };
    bool any = false;
    for (std::size_t at = first; at < end; ++at) {
        any = any || passed_over(at);
    }
    for (std::size_t at = first; any && at < end; ++at) {
        std::size_t behind = at + 1;
        for (; behind < end && !visited_[behind]; ++behind) {
        }
        group_ends_[at] = visited_[at] ? static_cast<std::uint32_t>(behind) : 0;
    }
    visited_.assign(count, false);
}

NodeGroup NodePlan::group_at(std::size_t first) const {
    const PlannedNode* heaviest = &nodes_[first];
    NodeWork work = heaviest->work;
    bool gate = heaviest->brick == Name(Brick::gate_projection);
    bool up = heaviest->brick == Name(Brick::up_projection);
    for (std::size_t i = first + 1; i < group_ends_[first]; ++i) {
        const PlannedNode& node = nodes_[i];
        if (!node.computes) {
            continue;
        }
        work += node.work;
        gate = gate || node.brick == Name(Brick::gate_projection);
        up = up || node.brick == Name(Brick::up_projection);
        if (!heaviest->computes || node.work.bytes > heaviest->work.bytes) {
            heaviest = &node;
        }
    }
    return {gate && up ? Name(Brick::gate_up_projection) : heaviest->brick, heaviest->layer, work};
}

} // namespace plumb::attach::ggml

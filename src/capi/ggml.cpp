// SPDX-License-Identifier: Apache-2.0
// What plumb/ggml.h asks about each node.
#include "capi/handles.hpp"
#include "ggml/node_names.hpp"
#include "ggml/node_work.hpp"

using namespace plumb::capi;
using plumb::Brick;
using plumb::Name;

namespace {

plumb::ggml::TensorSizes sizes_of(const plumb_ggml_tensor& tensor) {
    if (tensor.name == nullptr) {
        return {};
    }
    return {tensor.name, static_cast<double>(tensor.bytes), static_cast<double>(tensor.elements),
            static_cast<double>(tensor.rows)};
}

} // namespace

plumb_code plumb_ggml_describe(plumb_profiler* profiler, plumb_ggml_node* node) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits(node, "plumb_ggml_node")) {
        return plumb_invalid_argument;
    }
    if (node->operation == nullptr || node->tensor.name == nullptr) {
        return missing("the operation or the name of a plumb_ggml_node");
    }
    return guarded([&]() -> plumb_code {
        plumb::ggml::NodeFacts facts{node->operation, sizes_of(node->tensor), {}};
        for (std::size_t i = 0; i < facts.sources.size(); ++i) {
            facts.sources[i] = sizes_of(node->sources[i]);
        }
        const plumb::ggml::NodeWords words{facts.self.name, facts.operation, weight_of(facts)};
        node->layer_plus_one =
            static_cast<std::uint32_t>(layer_of(words, static_cast<std::int32_t>(node->layer_plus_one) - 1) + 1);
        node->timed = 0;
        if (plumb::ggml::computes_nothing(words.operation) || facts.self.elements <= 0) {
            return plumb_ok;
        }
        std::optional<Brick> brick = brick_of(words);
        plumb::ggml::NodeWork work = work_of(facts);
        const auto kv_length = static_cast<double>(node->kv_length);
        if (work.positions != 0) {
            work = kv_length != 0 ? work.at(kv_length, kv_length) : plumb::ggml::NodeWork{};
        }
        if (node->waiting != 0) { // a norm: both are what the product with its weight is
            if (Name(node->brick) == Name(Brick::layer_norm)) {
                brick = Brick::layer_norm;
            }
            work += {node->work.bytes, node->work.flops, node->work.bytes_per_kv, 0};
        }
        const Name name = brick ? Name(*brick) : profiler->profiler.intern(plumb::ggml::other_name(words.operation));
        node->brick = name.id;
        node->work = {sizeof node->work, 0, work.bytes, work.flops, 0, work.bytes_per_kv};
        node->waiting = is_norm_with_weight(words) ? 1 : 0;
        node->timed = node->waiting == 0 ? 1 : 0;
        return plumb_ok;
    });
}

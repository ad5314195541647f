// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/node_label.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "import/rules/module_rules.hpp"

namespace plumb::attach::onnxruntime {
namespace {

using imported::Certainty;
using imported::KernelLabel;
using imported::LabelEvidence;

/// weak: only where the module that the node is in may have such a brick.
struct Operator {
    std::string_view name, brick;
    Certainty certainty;
};
constexpr Operator operators[] = {
    {"Attention", "attention", Certainty::strong},
    {"GroupQueryAttention", "attention", Certainty::strong},
    {"MultiHeadAttention", "attention", Certainty::strong},
    {"PagedAttention", "attention", Certainty::strong},
    {"SparseAttention", "attention", Certainty::strong},
    {"DecoderMaskedMultiHeadAttention", "attention", Certainty::strong},
    {"MatMul", "attention", Certainty::weak},
    {"FusedMatMul", "attention", Certainty::weak},
    {"Softmax", "attention", Certainty::weak},
    {"Concat", "kv_append", Certainty::weak},
    {"RotaryEmbedding", "rope_embedding", Certainty::strong},
    {"RMSNormalization", "rms_norm", Certainty::strong},
    {"SimplifiedLayerNormalization", "rms_norm", Certainty::strong},
    {"SkipSimplifiedLayerNormalization", "rms_norm", Certainty::strong},
    {"LayerNormalization", "layer_norm", Certainty::strong},
    {"SkipLayerNormalization", "layer_norm", Certainty::strong},
    {"EmbedLayerNormalization", "embedding", Certainty::strong},
    {"Gather", "embedding", Certainty::weak},
    {"Gelu", "activation", Certainty::strong},
    {"FastGelu", "activation", Certainty::strong},
    {"BiasGelu", "activation", Certainty::strong},
    {"QuickGelu", "activation", Certainty::strong},
    {"Sigmoid", "activation", Certainty::weak},
    {"Tanh", "activation", Certainty::weak},
    {"Relu", "activation", Certainty::weak},
    {"Mul", "activation", Certainty::weak},
    {"MoE", "moe_experts", Certainty::strong},
    {"QMoE", "moe_experts", Certainty::strong},
};

/// Operators that read each operand once, whole, and write each output once.
constexpr std::string_view whole_readers[] = {
    "MatMul",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Sigmoid",
    "Tanh",
    "Relu",
    "Gelu",
    "FastGelu",
    "BiasGelu",
    "QuickGelu",
    "Softmax",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "LayerNormalization",
    "SkipLayerNormalization",
    "Concat",
    "Transpose",
    "Cast",
};

bool reads_all(std::string_view operation) {
    return std::find(std::begin(whole_readers), std::end(whole_readers), operation) != std::end(whole_readers);
}

/// "/model/layers.3/self_attn": its words.
std::vector<std::string_view> words_of(std::string_view path) {
    std::vector<std::string_view> words;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find_first_of("/."), path.size());
        if (end != 0) {
            words.push_back(path.substr(0, end));
        }
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return words;
}

double elements(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), 1.0,
                           [](double product, std::int64_t size) { return product * static_cast<double>(size); });
}

} // namespace

NodeLabel label_of(std::string_view node, std::string_view operation) {
    const std::size_t slash = node.rfind('/');
    const std::vector<std::string_view> path = words_of(node.substr(0, slash == node.npos ? 0 : slash));
    NodeLabel made;
    const auto layer = imported::layer_of_modules(path);
    if (layer && layer->number < std::numeric_limits<std::uint16_t>::max()) {
        made.layer = static_cast<std::int32_t>(layer->number);
    }
    KernelLabel label;
    for (const Operator& known : operators) {
        if (known.name == operation) {
            label = {known.brick, {}, known.certainty, imported::anchor_of(known.brick), LabelEvidence::name};
        }
    }
    const bool beside_modules = layer && path.size() >= 2 && path.back() == std::to_string(layer->number);
    if (beside_modules && operation == "Add") { // of the layer itself
        label = {"residual_add", {}, Certainty::strong, imported::Anchor::none, LabelEvidence::name};
    } else if (const imported::ModuleRule* rule = imported::module_rule(path); rule != nullptr) {
        imported::apply(*rule, LabelEvidence::name, label);
    }
    made.brick = label.certainty == Certainty::strong ? std::string(label.brick) : "onnx_" + std::string(operation);
    return made;
}

Work work_of(const ProfiledNode& node) {
    Work work = make_work();
    const bool told = node.activation_bytes >= 0 && node.parameter_bytes >= 0 && node.output_bytes >= 0;
    const double bytes = node.activation_bytes + node.parameter_bytes + node.output_bytes;
    if (node.operation == "MatMul" || node.operation == "MatMulNBits") {
        const std::vector<std::int64_t> left = shape_at(node.inputs, 0);
        const std::vector<std::int64_t> product = shape_at(node.outputs, 0);
        if (left.empty() || product.empty()) {
            return work;
        }
        const auto inner = static_cast<double>(left.back());
        work.flops = 2 * inner * elements(product);
        // Of a weight that was packed beforehand nothing is told. The processor packs matrices alone.
        const bool packed = shape_count(node.inputs) == 1;
        const auto size = static_cast<double>(element_bytes(node.inputs, 0));
        if (node.operation == "MatMul" && told && (!packed || size > 0)) {
            work.bytes = bytes + (packed ? inner * static_cast<double>(product.back()) * size : 0);
        }
    } else if (told && reads_all(node.operation)) {
        work.bytes = bytes;
    }
    return work;
}

} // namespace plumb::attach::onnxruntime

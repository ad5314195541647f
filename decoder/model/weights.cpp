// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/weights.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder {
namespace {

using gguf::TensorInfo;
using gguf::TensorType;

std::optional<Type> type_of(const TensorInfo& tensor) {
    for (const Type type : all_types) {
        if (layout_of(type).file_id == tensor.type) {
            return type;
        }
    }
    return std::nullopt;
}

constexpr const char* matrix_types = "F32, F16, BF16, Q8_0, Q6_K, Q4_K and Q4_0";

/// Looks tensors up, checks them, counts them; remembers the first error.
class TensorFinder {
  public:
    explicit TensorFinder(const gguf::File& file) : file_(file) {}

    Weight matrix(const std::string& name, std::size_t cols, std::size_t rows) {
        const TensorInfo* tensor = require(name, {cols, rows});
        if (!tensor) {
            return {};
        }
        const std::optional<Type> type = type_of(*tensor);
        if (!type) {
            wrong_type(*tensor, matrix_types);
        }
        bytes_ += tensor->data.size();
        return {tensor->data.data(), type.value_or(Type::f32), rows, cols};
    }

    /// One matrix for each expert, of which a step reads `used`.
    Stack stack(const std::string& name, std::size_t cols, std::size_t rows, const Experts& experts) {
        const TensorInfo* tensor = require(name + ".weight", {cols, rows, experts.count});
        if (!tensor) {
            return {};
        }
        const std::optional<Type> type = type_of(*tensor);
        if (!type) {
            wrong_type(*tensor, matrix_types);
        }
        bytes_ += tensor->data.size() / experts.count * experts.used;
        return {{tensor->data.data(), type.value_or(Type::f32), rows, cols}, experts.count};
    }

    Linear linear(const std::string& name, std::size_t cols, std::size_t rows) {
        Linear out;
        out.weight = matrix(name + ".weight", cols, rows);
        if (file_.contents().tensor(name + ".bias")) {
            out.bias = vector(name + ".bias", rows);
        }
        return out;
    }

    const float* vector(const std::string& name, std::size_t size) {
        const TensorInfo* tensor = require(name, {size, 1});
        if (!tensor) {
            return nullptr;
        }
        if (!tensor->is(TensorType::f32)) {
            wrong_type(*tensor, "F32 for norms and biases");
        }
        bytes_ += tensor->data.size();
        return reinterpret_cast<const float*>(tensor->data.data());
    }

    [[nodiscard]] bool has(const std::string& name) const { return file_.contents().tensor(name) != nullptr; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// A tensor of the file that nothing asked for: leaving it out would give wrong answers.
    [[nodiscard]] const TensorInfo* unused() const {
        for (const TensorInfo& tensor : file_.contents().tensors) {
            if (used_.count(&tensor) == 0) {
                return &tensor;
            }
        }
        return nullptr;
    }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

    void fail(ErrorCode code, const std::string& what) {
        if (!error_) {
            error_ = Error{code, file_.path() + ": " + what};
        }
    }

  private:
    struct Size {
        std::size_t cols;
        std::size_t rows;
        std::size_t experts = 1;
    };

    static std::string text_of(std::uint64_t cols, std::uint64_t rows, std::uint64_t experts) {
        return std::to_string(cols) + " × " + std::to_string(rows) +
               (experts == 1 ? "" : " × " + std::to_string(experts));
    }

    const TensorInfo* require(const std::string& name, Size size) {
        const TensorInfo* tensor = file_.contents().tensor(name);
        if (!tensor) {
            fail(ErrorCode::corrupt, "the tensor '" + name + "' is missing; convert the model again");
            return nullptr;
        }
        used_.insert(tensor);
        if (tensor->size[0] != size.cols || tensor->size[1] != size.rows || tensor->size[2] != size.experts ||
            tensor->size[3] != 1) {
            fail(ErrorCode::corrupt, "tensor '" + name + "' is " +
                                         text_of(tensor->size[0], tensor->size[1], tensor->size[2]) +
                                         (tensor->size[3] == 1 ? "" : " × " + std::to_string(tensor->size[3])) +
                                         ", and its metadata asks for " + text_of(size.cols, size.rows, size.experts) +
                                         "; convert the model again");
            return nullptr;
        }
        return tensor;
    }

    void wrong_type(const TensorInfo& tensor, const std::string& possible) {
        fail(ErrorCode::unsupported, "tensor '" + gguf::printable(tensor.name) + "' has the type " +
                                         gguf::type_name(tensor.type) + ", and this decoder reads " + possible +
                                         "; convert the model to one of these");
    }

    const gguf::File& file_;
    std::size_t bytes_ = 0;
    std::unordered_set<const TensorInfo*> used_;
    std::optional<Error> error_;
};

LayerWeights read_layer(TensorFinder& find, const ModelConfig& config, std::size_t index) {
    const std::string prefix = "blk." + std::to_string(index) + ".";
    LayerWeights layer;
    layer.attention_norm = find.vector(prefix + "attn_norm.weight", config.hidden);
    layer.query = find.linear(prefix + "attn_q", config.hidden, config.query_size());
    layer.key = find.linear(prefix + "attn_k", config.hidden, config.kv_size());
    layer.value = find.linear(prefix + "attn_v", config.hidden, config.kv_size());
    layer.output = find.linear(prefix + "attn_output", config.query_size(), config.hidden);
    if (config.qk_norm) {
        layer.query_norm = find.vector(prefix + "attn_q_norm.weight", config.head_size);
        layer.key_norm = find.vector(prefix + "attn_k_norm.weight", config.head_size);
    }
    layer.feed_forward_norm = find.vector(prefix + "ffn_norm.weight", config.hidden);
    if (config.experts.count != 0) {
        const Experts& experts = config.experts;
        layer.router = find.linear(prefix + "ffn_gate_inp", config.hidden, experts.count);
        layer.expert_gate = find.stack(prefix + "ffn_gate_exps", config.hidden, experts.feed_forward, experts);
        layer.expert_up = find.stack(prefix + "ffn_up_exps", config.hidden, experts.feed_forward, experts);
        layer.expert_down = find.stack(prefix + "ffn_down_exps", experts.feed_forward, config.hidden, experts);
        return layer;
    }
    layer.gate = find.linear(prefix + "ffn_gate", config.hidden, config.feed_forward);
    layer.up = find.linear(prefix + "ffn_up", config.hidden, config.feed_forward);
    layer.down = find.linear(prefix + "ffn_down", config.feed_forward, config.hidden);
    return layer;
}

/// The type that holds the most bytes of the layers.
Type usual_type(Weights& weights) {
    std::array<std::size_t, all_types.size()> bytes{};
    const auto count = [&](const Weight& weight, std::size_t times) {
        bytes[static_cast<std::size_t>(weight.type)] += weight.bytes() * times;
    };
    for (LayerWeights& layer : weights.layers) {
        layer.each_linear([&](const Linear& linear) { count(linear.weight, 1); });
        for (const Stack* stack : layer.stacks()) {
            count(stack->one, stack->count);
        }
    }
    return static_cast<Type>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

} // namespace

Result<Weights> read_weights(const gguf::File& file, const ModelConfig& config) {
    TensorFinder find(file);
    Weights out;
    const TensorInfo* embedding = file.contents().tensor("token_embd.weight");
    const std::uint64_t vocabulary = embedding ? embedding->size[1] : 1;
    if (vocabulary > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        find.fail(ErrorCode::corrupt, "has more tokens than 31 bits can count; convert the model again");
    }
    out.embedding = find.matrix("token_embd.weight", config.hidden, static_cast<std::size_t>(vocabulary));
    const std::size_t embedding_bytes = find.bytes();
    for (std::size_t i = 0; i < config.layers && !find.error(); ++i) {
        out.layers.push_back(read_layer(find, config, i));
    }
    out.output_norm = find.vector("output_norm.weight", config.hidden);
    out.tied = !find.has("output.weight");
    if (out.tied) {
        out.head.weight = out.embedding;
    } else {
        out.head = find.linear("output", config.hidden, static_cast<std::size_t>(vocabulary));
    }
    const std::size_t read_bytes = find.bytes() - (out.tied ? 0 : embedding_bytes);
    if (find.has("rope_freqs.weight")) {
        out.rope_factors = find.vector("rope_freqs.weight", config.rope_size / 2);
    }
    if (find.error()) {
        return *find.error();
    }

    if (const TensorInfo* unknown = find.unused()) {
        find.fail(ErrorCode::unsupported, "tensor '" + gguf::printable(unknown->name) + "' is no part of a " +
                                              config.architecture + " model; use a model without such additions");
    }
    if (find.error()) {
        return *find.error();
    }
    out.type = usual_type(out);
    out.bytes = read_bytes;
    return out;
}

} // namespace plumb::decoder

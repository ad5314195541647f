// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/maker.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "decoder/gguf/types.hpp"
#include "decoder/gguf/writer.hpp"
#include "decoder/sampling/random.hpp"
#include "decoder/tokenizer/vocabulary.hpp"

namespace plumb::decoder {
namespace {

/// Uniform values around `centre`, at most `spread` away.
struct Distribution {
    float centre = 0;
    float spread = 0;
};

struct Planned {
    std::string name;
    std::array<std::uint64_t, 2> size{};
    std::size_t dimensions = 2;
    Type type = Type::f32;
    Distribution values;
};

/// Variance 1 / fan_in keeps the activations of every layer near 1. sqrt and division are exact by IEEE 754.
Distribution for_inputs(std::uint64_t inputs) { return {0, std::sqrt(3.0F / static_cast<float>(inputs))}; }

class Plan {
  public:
    Plan(const Shape& shape, Type type) : type_(type) {
        const std::uint64_t hidden = shape.hidden;
        const std::uint64_t query = std::uint64_t{shape.heads} * shape.head_size;
        const std::uint64_t kv = std::uint64_t{shape.kv_heads} * shape.head_size;
        matrix("token_embd", hidden, shape.vocabulary);
        for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
            const std::string prefix = "blk." + std::to_string(layer) + ".";
            vector(prefix + "attn_norm.weight", hidden, {1.0F, 0.1F});
            linear(prefix + "attn_q", hidden, query, shape.biases);
            linear(prefix + "attn_k", hidden, kv, shape.biases);
            linear(prefix + "attn_v", hidden, kv, shape.biases);
            linear(prefix + "attn_output", query, hidden, false);
            vector(prefix + "ffn_norm.weight", hidden, {1.0F, 0.1F});
            linear(prefix + "ffn_gate", hidden, shape.feed_forward, false);
            linear(prefix + "ffn_up", hidden, shape.feed_forward, false);
            linear(prefix + "ffn_down", shape.feed_forward, hidden, false);
        }
        vector("output_norm.weight", hidden, {1.0F, 0.1F});
        if (!shape.tied)
            matrix("output", hidden, shape.vocabulary);
    }

    [[nodiscard]] const std::vector<Planned>& tensors() const noexcept { return tensors_; }

  private:
    void matrix(const std::string& name, std::uint64_t cols, std::uint64_t rows) {
        tensors_.push_back({name + ".weight", {cols, rows}, 2, type_, for_inputs(cols)});
    }
    void vector(const std::string& name, std::uint64_t size, Distribution values) {
        tensors_.push_back({name, {size, 1}, 1, Type::f32, values});
    }
    void linear(const std::string& name, std::uint64_t cols, std::uint64_t rows, bool bias) {
        matrix(name, cols, rows);
        if (bias)
            vector(name + ".bias", rows, {0, 0.2F});
    }

    Type type_;
    std::vector<Planned> tensors_;
};

/// 16 random bits as a value: one addition and one product of floats, rounded the same everywhere.
float value_of(std::uint64_t bits, Distribution values) {
    const int centred = 2 * static_cast<int>(bits & 0xffffU) - 65535;
    const float offset = static_cast<float>(centred) * (values.spread / 65535.0F);
    return values.centre == 0 ? offset : values.centre + offset;
}

std::uint16_t bf16_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// A token for each byte, one that ends a text, and numbers for the rest: random weights have no words.
void describe_tokenizer(gguf::Writer& writer, std::uint32_t vocabulary) {
    constexpr std::uint32_t bytes = 256;
    if (vocabulary <= bytes) {
        writer.add("tokenizer.ggml.model", "none");
        return;
    }
    const auto& alphabet = byte_alphabet();
    std::vector<std::string> tokens(alphabet.begin(), alphabet.end());
    std::vector<std::int32_t> types(vocabulary, static_cast<std::int32_t>(TokenType::normal));
    tokens.emplace_back("<|endoftext|>");
    types[bytes] = static_cast<std::int32_t>(TokenType::control);
    for (std::uint32_t id = bytes + 1; id < vocabulary; ++id)
        tokens.push_back(alphabet[' '] + std::to_string(id));
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", "gpt-2");
    writer.add("tokenizer.ggml.tokens", tokens);
    writer.add("tokenizer.ggml.token_type", types);
    writer.add("tokenizer.ggml.merges", std::vector<std::string>());
    writer.add("tokenizer.ggml.eos_token_id", bytes);
}

void describe(gguf::Writer& writer, const Shape& shape, Type type, std::uint64_t seed) {
    const std::string arch(shape.architecture);
    writer.add("general.architecture", shape.architecture);
    writer.add("general.name", shape.name);
    writer.add("general.description", "random weights, seed " + std::to_string(seed) + ": for timing, not for text");
    writer.add("general.file_type", std::uint32_t{type == Type::bf16 ? 32U : 0U});
    writer.add("general.alignment", static_cast<std::uint32_t>(gguf::Writer::alignment));
    writer.add(arch + ".block_count", shape.layers);
    writer.add(arch + ".context_length", shape.context);
    writer.add(arch + ".embedding_length", shape.hidden);
    writer.add(arch + ".feed_forward_length", shape.feed_forward);
    writer.add(arch + ".attention.head_count", shape.heads);
    writer.add(arch + ".attention.head_count_kv", shape.kv_heads);
    writer.add(arch + ".attention.key_length", shape.head_size);
    writer.add(arch + ".attention.value_length", shape.head_size);
    writer.add(arch + ".attention.layer_norm_rms_epsilon", shape.epsilon);
    writer.add(arch + ".rope.dimension_count", shape.head_size);
    writer.add(arch + ".rope.freq_base", shape.rope_base);
    writer.add(arch + ".vocab_size", shape.vocabulary);
    describe_tokenizer(writer, shape.vocabulary);
}

/// Writes the values of one tensor in pieces; `after` is told the bytes of each.
template <class Store, class After>
Status write_values(gguf::Writer& writer, const Planned& tensor, std::uint64_t key, After after) {
    constexpr std::uint64_t piece = std::uint64_t{1} << 16;
    const std::uint64_t elements = tensor.size[0] * tensor.size[1];
    std::vector<Store> values(piece);
    for (std::uint64_t begin = 0; begin < elements; begin += piece) {
        const std::uint64_t count = std::min(piece, elements - begin);
        for (std::uint64_t i = 0; i < count; i += 4) {
            const std::uint64_t bits = random_bits(key, (begin + i) / 4);
            for (std::uint64_t k = 0; k < 4 && i + k < count; ++k) {
                const float value = value_of(bits >> (16 * k), tensor.values);
                if constexpr (sizeof(Store) == 2)
                    values[i + k] = bf16_of(value);
                else
                    values[i + k] = value;
            }
        }
        const auto data = std::as_bytes(std::span(values).first(count));
        if (Status status = writer.write(data); !status)
            return status;
        if (Status status = after(data.size()); !status)
            return status;
    }
    return {};
}

} // namespace

Status make_model(const Shape& shape, const std::string& path, const MakeOptions& options) {
    gguf::Writer writer(path);
    describe(writer, shape, options.type, options.seed);
    const Plan plan(shape, options.type);
    for (const Planned& tensor : plan.tensors()) {
        const auto type = tensor.type == Type::bf16 ? gguf::TensorType::bf16 : gguf::TensorType::f32;
        writer.add_tensor(tensor.name, std::span(tensor.size).first(tensor.dimensions),
                          static_cast<std::uint32_t>(type));
    }
    if (Status status = writer.begin(options.replace); !status)
        return status;
    std::uint64_t done = 0;
    const auto after = [&](std::uint64_t bytes) -> Status {
        done += bytes;
        if (options.progress)
            options.progress(done, writer.file_bytes());
        if (options.stop && options.stop->load(std::memory_order_relaxed))
            return Error{ErrorCode::failed, path + ": was interrupted and is not kept; start again"};
        return {};
    };
    for (const Planned& tensor : plan.tensors()) {
        const std::uint64_t key = stream_key(options.seed, tensor.name);
        Status status = tensor.type == Type::bf16 ? write_values<std::uint16_t>(writer, tensor, key, after)
                                                  : write_values<float>(writer, tensor, key, after);
        if (!status)
            return status;
    }
    if (Status status = writer.finish(); !status)
        return status;
    if (options.progress)
        options.progress(writer.file_bytes(), writer.file_bytes());
    return {};
}

} // namespace plumb::decoder

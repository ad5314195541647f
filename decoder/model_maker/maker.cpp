// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/maker.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "decoder/gguf/writer.hpp"
#include "decoder/model_maker/quantise.hpp"
#include "decoder/sampling/random.hpp"
#include "decoder/tokenizer/vocabulary.hpp"

namespace plumb::decoder {
namespace {

/// Uniform values around `centre`, at most `spread` away.
struct UniformRange {
    float centre = 0;
    float spread = 0;
};

struct Planned {
    std::string name;
    std::array<std::uint64_t, 3> size{};
    std::size_t dimensions = 2;
    Type type = Type::f32;
    UniformRange values;
};

/// Variance 1 / fan_in keeps the activations of every layer near 1. sqrt and division are exact by IEEE 754.
UniformRange for_inputs(std::uint64_t inputs) { return {0, std::sqrt(3.0F / static_cast<float>(inputs))}; }

class Plan {
  public:
    Plan(const Shape& shape, Type type, Type second) : type_(type), second_(second) {
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
            if (shape.extras.qk_norm) {
                vector(prefix + "attn_q_norm.weight", shape.head_size, {1.0F, 0.1F});
                vector(prefix + "attn_k_norm.weight", shape.head_size, {1.0F, 0.1F});
            }
            vector(prefix + "ffn_norm.weight", hidden, {1.0F, 0.1F});
            if (shape.extras.experts != 0) {
                experts(prefix, shape);
                continue;
            }
            linear(prefix + "ffn_gate", hidden, shape.feed_forward, false);
            linear(prefix + "ffn_up", hidden, shape.feed_forward, false);
            linear(prefix + "ffn_down", shape.feed_forward, hidden, false);
        }
        vector("output_norm.weight", hidden, {1.0F, 0.1F});
        if (shape.extras.rope_factors) {
            vector("rope_freqs.weight", shape.head_size / 2, {4.5F, 3.5F});
        }
        if (!shape.tied) {
            matrix("output", hidden, shape.vocabulary);
        }
    }

    [[nodiscard]] const std::vector<Planned>& tensors() const noexcept { return tensors_; }

  private:
    [[nodiscard]] Type type_of(std::string_view name) const {
        for (const std::string_view end : {"attn_v", "ffn_down", "ffn_down_exps", "output"}) {
            if (name == end || name.ends_with("." + std::string(end))) {
                return second_;
            }
        }
        return type_;
    }
    void matrix(const std::string& name, std::uint64_t cols, std::uint64_t rows) {
        tensors_.push_back({name + ".weight", {cols, rows, 1}, 2, type_of(name), for_inputs(cols)});
    }
    void stack(const std::string& name, std::uint64_t cols, std::uint64_t rows, std::uint64_t count) {
        tensors_.push_back({name + ".weight", {cols, rows, count}, 3, type_of(name), for_inputs(cols)});
    }
    void experts(const std::string& prefix, const Shape& shape) {
        const std::uint64_t count = shape.extras.experts;
        const std::uint64_t width =
            shape.extras.expert_feed_forward != 0 ? shape.extras.expert_feed_forward : shape.feed_forward;
        tensors_.push_back(
            {prefix + "ffn_gate_inp.weight", {shape.hidden, count, 1}, 2, Type::f32, for_inputs(shape.hidden)});
        stack(prefix + "ffn_gate_exps", shape.hidden, width, count);
        stack(prefix + "ffn_up_exps", shape.hidden, width, count);
        stack(prefix + "ffn_down_exps", width, shape.hidden, count);
    }
    void vector(const std::string& name, std::uint64_t size, UniformRange values) {
        tensors_.push_back({name, {size, 1, 1}, 1, Type::f32, values});
    }
    void linear(const std::string& name, std::uint64_t cols, std::uint64_t rows, bool bias) {
        matrix(name, cols, rows);
        if (bias) {
            vector(name + ".bias", rows, {0, 0.2F});
        }
    }

    Type type_;
    Type second_;
    std::vector<Planned> tensors_;
};

/// 16 random bits as a value: one addition and one product of floats, rounded the same everywhere.
float value_of(std::uint64_t bits, UniformRange values) {
    const int centred = 2 * static_cast<int>(bits & 0xffffU) - 65535;
    const float offset = static_cast<float>(centred) * (values.spread / 65535.0F);
    return values.centre == 0 ? offset : values.centre + offset;
}

/// general.file_type of a file whose matrices are all of the type.
std::uint32_t file_type_of(Type type) {
    switch (type) {
    case Type::f32:
        return 0;
    case Type::f16:
        return 1;
    case Type::q4_0:
        return 2;
    case Type::q8_0:
        return 7;
    case Type::q4_k:
        return 14;
    case Type::q6_k:
        return 18;
    case Type::bf16:
        return 32;
    }
    return 0;
}

void describe_extras(gguf::GgufWriter& writer, const Shape& shape) {
    const std::string arch(shape.architecture);
    const ShapeExtras& extras = shape.extras;
    if (extras.window != 0) {
        writer.add(arch + ".attention.sliding_window", extras.window);
    }
    if (!extras.rope_scaling.empty()) {
        writer.add(arch + ".rope.scaling.type", extras.rope_scaling);
        writer.add(arch + ".rope.scaling.factor", 4.0F);
        writer.add(arch + ".rope.scaling.original_context_length", shape.context / 4);
    }
    if (extras.experts != 0) {
        writer.add(arch + ".expert_count", extras.experts);
        writer.add(arch + ".expert_used_count", extras.experts_used);
    }
    if (extras.expert_feed_forward != 0) {
        writer.add(arch + ".expert_feed_forward_length", extras.expert_feed_forward);
    }
}

/// A token for each byte, one that ends a text, and numbers for the rest: random weights have no words.
void describe_tokenizer(gguf::GgufWriter& writer, std::uint32_t vocabulary) {
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
    for (std::uint32_t id = bytes + 1; id < vocabulary; ++id) {
        tokens.push_back(alphabet[' '] + std::to_string(id));
    }
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", "gpt-2");
    writer.add("tokenizer.ggml.tokens", tokens);
    writer.add("tokenizer.ggml.token_type", types);
    writer.add("tokenizer.ggml.merges", std::vector<std::string>());
    writer.add("tokenizer.ggml.eos_token_id", bytes);
}

void describe(gguf::GgufWriter& writer, const Shape& shape, const MakeOptions& options, const Plan& plan) {
    const std::string arch(shape.architecture);
    writer.add("general.architecture", shape.architecture);
    writer.add("general.name", shape.name);
    writer.add("general.description",
               "random weights, seed " + std::to_string(options.seed) + ": for timing, not for text");
    writer.add("general.file_type", file_type_of(options.type));
    writer.add("general.alignment", static_cast<std::uint32_t>(gguf::GgufWriter::alignment));
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
    describe_extras(writer, shape);
    describe_tokenizer(writer, shape.vocabulary);
    for (const Planned& tensor : plan.tensors()) {
        writer.add_tensor(tensor.name, std::span(tensor.size).first(tensor.dimensions), layout_of(tensor.type).file_id);
    }
}

/// put(bytes) with the values of one tensor, piece after piece.
template <class Put>
Status write_values(const Planned& tensor, std::uint64_t key, Put put) {
    constexpr std::uint64_t piece = std::uint64_t{1} << 16; // whole blocks of every type
    const std::uint64_t elements = tensor.size[0] * tensor.size[1] * tensor.size[2];
    std::vector<float> values(piece);
    std::vector<std::byte> stored(row_bytes(tensor.type, piece));
    for (std::uint64_t begin = 0; begin < elements; begin += piece) {
        const std::uint64_t count = std::min(piece, elements - begin);
        for (std::uint64_t i = 0; i < count; i += 4) {
            const std::uint64_t bits = random_bits(key, (begin + i) / 4);
            for (std::uint64_t k = 0; k < 4 && i + k < count; ++k) {
                values[i + k] = value_of(bits >> (16 * k), tensor.values);
            }
        }
        quantise(tensor.type, values.data(), count, stored.data());
        if (Status status = put(std::span<const std::byte>(stored).first(row_bytes(tensor.type, count))); !status) {
            return status;
        }
    }
    return {};
}

/// Errors: invalid_argument.
Status check_blocks(const Plan& plan) {
    for (const Planned& tensor : plan.tensors()) {
        const TypeLayout layout = layout_of(tensor.type);
        if (tensor.size[0] % layout.block != 0) {
            return Error{ErrorCode::invalid_argument,
                         "rows of " + std::to_string(tensor.size[0]) + " values do not fill the blocks of " +
                             std::to_string(layout.block) + " that " + std::string(layout.word) +
                             " has; use another --shape or --type"};
        }
    }
    return {};
}

} // namespace

Status make_model(const Shape& shape, const std::string& path, const MakeOptions& options) {
    const Plan plan(shape, options.type, options.second.value_or(options.type));
    if (Status status = check_blocks(plan); !status) {
        return status;
    }
    gguf::GgufWriter writer(path);
    describe(writer, shape, options, plan);
    if (Status status = writer.begin(options.replace); !status) {
        return status;
    }
    std::uint64_t done = 0;
    const auto put = [&](std::span<const std::byte> data) -> Status {
        if (Status status = writer.write(data); !status) {
            return status;
        }
        done += data.size();
        if (options.progress) {
            options.progress(done, writer.file_bytes());
        }
        if (options.stop && options.stop->load(std::memory_order_relaxed)) {
            return Error{ErrorCode::failed, path + ": was interrupted and is not kept; start again"};
        }
        return {};
    };
    for (const Planned& tensor : plan.tensors()) {
        if (Status status = write_values(tensor, stream_key(options.seed, tensor.name), put); !status) {
            return status;
        }
    }
    if (Status status = writer.finish(); !status) {
        return status;
    }
    if (options.progress) {
        options.progress(writer.file_bytes(), writer.file_bytes());
    }
    return {};
}

Result<UnwrittenModel> lay_out_model(const Shape& shape, const MakeOptions& options) {
    const Plan plan(shape, options.type, options.second.value_or(options.type));
    if (Status status = check_blocks(plan); !status) {
        return status.error();
    }
    gguf::GgufWriter writer("");
    describe(writer, shape, options, plan);
    const std::string header = writer.header();
    Result<gguf::FileMap> map = gguf::FileMap::make(writer.file_bytes(), [&](std::byte* memory) {
        std::memcpy(memory, header.data(), header.size());
        for (std::size_t i = 0; i < plan.tensors().size(); ++i) {
            const Planned& tensor = plan.tensors()[i];
            std::byte* to = memory + writer.offset_of(i);
            const auto put = [&](std::span<const std::byte> data) -> Status {
                std::memcpy(to, data.data(), data.size());
                to += data.size();
                return {};
            };
            if (tensor.dimensions == 1) {
                static_cast<void>(write_values(tensor, stream_key(options.seed, tensor.name), put));
            }
        }
    });
    if (!map) {
        return map.error();
    }
    Result<gguf::File> file = gguf::File::from(std::move(*map), "--random-weights " + std::string(shape.name));
    if (!file) {
        return file.error();
    }
    UnwrittenModel out{std::move(*file), {}};
    for (const Planned& tensor : plan.tensors()) {
        if (tensor.dimensions != 1) {
            out.matrices[out.file.contents().tensor(tensor.name)->data.data()] = {stream_key(options.seed, tensor.name),
                                                                                  tensor.values.spread};
        }
    }
    return out;
}

} // namespace plumb::decoder

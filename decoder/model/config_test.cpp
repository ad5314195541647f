// SPDX-License-Identifier: Apache-2.0
// What the decoder refuses, and that each refusal is one sentence that names the culprit.
#include "decoder/model/config.hpp"

#include <array>
#include <functional>

#include "decoder/gguf/writer.hpp"
#include "decoder/test_support.hpp"

namespace plumb::decoder {
namespace {

struct Sketch {
    std::string architecture = "llama";
    std::uint32_t heads = 4;
    std::uint32_t kv_heads = 2;
    std::uint32_t rope_size = 4;
    std::uint32_t matrix_type = 0;
    std::uint32_t norm_type = 0;
    std::uint64_t up_rows = 24;
    bool with_down = true;
    bool with_extra = false;
    std::function<void(gguf::GgufWriter&)> more = [](gguf::GgufWriter&) {
    };
};

/// One layer of 16 values; the data is zeros.
std::string write(const TestFolder& folder, const Sketch& sketch) {
    const std::string path = folder.file("sketch.gguf");
    gguf::GgufWriter writer(path);
    const std::string arch = sketch.architecture;
    writer.add("general.architecture", arch);
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, std::uint32_t>>{{".block_count", 1U},
                                                                      {".context_length", 64U},
                                                                      {".embedding_length", 16U},
                                                                      {".feed_forward_length", 24U},
                                                                      {".attention.head_count", sketch.heads},
                                                                      {".attention.head_count_kv", sketch.kv_heads},
                                                                      {".rope.dimension_count", sketch.rope_size}}) {
        writer.add(arch + key, value);
    }
    writer.add(arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
    sketch.more(writer);
    std::uint64_t bytes = 0;
    const auto tensor = [&](const char* name, std::uint64_t cols, std::uint64_t rows, std::uint32_t type) {
        const std::array<std::uint64_t, 2> size{cols, rows};
        writer.add_tensor(name, std::span(size).first(rows == 0 ? 1 : 2), type);
        const gguf::TypeTraits traits = *gguf::type_traits(type);
        bytes += cols * std::max<std::uint64_t>(rows, 1) / traits.block * traits.bytes;
    };
    tensor("token_embd.weight", 16, 10, 0);
    tensor("output_norm.weight", 16, 0, 0);
    tensor("blk.0.attn_norm.weight", 16, 0, sketch.norm_type);
    tensor("blk.0.attn_q.weight", 16, 16, sketch.matrix_type);
    tensor("blk.0.attn_k.weight", 16, 8, 0);
    tensor("blk.0.attn_v.weight", 16, 8, 0);
    tensor("blk.0.attn_output.weight", 16, 16, 0);
    tensor("blk.0.ffn_norm.weight", 16, 0, 0);
    tensor("blk.0.ffn_gate.weight", 16, 24, 0);
    tensor("blk.0.ffn_up.weight", 16, sketch.up_rows, 0);
    if (sketch.with_down) {
        tensor("blk.0.ffn_down.weight", 24, 16, 0);
    }
    if (sketch.with_extra) {
        tensor("blk.0.attn_q_norm.weight", 16, 0, 0);
    }
    EXPECT_TRUE(writer.begin(true).ok());
    EXPECT_TRUE(writer.write(std::vector<std::byte>(bytes)).ok());
    EXPECT_TRUE(writer.finish().ok());
    return path;
}

/// The error behind the path of the file.
std::string refusal(const Sketch& sketch) {
    const TestFolder folder;
    const std::string path = write(folder, sketch);
    Options options;
    options.threads = 1;
    options.context = 16;
    const Result<Decoder> decoder = Decoder::load(path, options);
    if (decoder.ok()) {
        return "";
    }
    EXPECT_TRUE(decoder.error().message.starts_with(path + ": ")) << decoder.error().message;
    return decoder.error().message.substr(path.size() + 2);
}

TEST(ModelConfig, a_plain_sketch_loads) { EXPECT_EQ(refusal({}), ""); }

TEST(ModelConfig, an_unknown_architecture_is_named) {
    Sketch sketch;
    sketch.architecture = "gemma3";
    EXPECT_EQ(
        refusal(sketch),
        "has the architecture 'gemma3', and only llama, qwen2, qwen3, qwen3moe and gemma are decoded; use a model "
        "of these");
}

TEST(ModelConfig, an_unsupported_tensor_type_is_named_with_its_tensor) {
    Sketch sketch;
    sketch.matrix_type = 24;
    EXPECT_EQ(
        refusal(sketch),
        "tensor 'blk.0.attn_q.weight' has the type I8, and this decoder reads F32, F16, BF16, Q8_0, Q6_K, Q4_K and "
        "Q4_0; convert the model to one of these");
    sketch.matrix_type = 0;
    sketch.norm_type = 30;
    EXPECT_EQ(refusal(sketch),
              "tensor 'blk.0.attn_norm.weight' has the type BF16, and this decoder reads F32 for norms and biases; "
              "convert the model to one of these");
}

TEST(ModelConfig, every_type_of_a_file_is_decoded_or_named) {
    for (std::uint32_t type = 0; type < 64; ++type) {
        const auto traits = gguf::type_traits(type);
        if (!traits || 16 % traits->block != 0) {
            continue; // rows of 16 do not fill its blocks
        }
        Sketch sketch;
        sketch.matrix_type = type;
        const bool decoded = type == 0 || type == 1 || type == 30;
        const std::string said = refusal(sketch);
        EXPECT_EQ(said.empty(), decoded) << traits->name;
        EXPECT_TRUE(decoded || said.find(traits->name) != std::string::npos) << said;
    }
}

TEST(ModelConfig, layers_of_two_types_are_decoded) {
    Sketch sketch;
    sketch.matrix_type = 30;
    EXPECT_EQ(refusal(sketch), "");
}

TEST(ModelConfig, a_wrong_shape_a_missing_and_a_superfluous_tensor_are_named) {
    Sketch shape;
    shape.up_rows = 25;
    EXPECT_EQ(refusal(shape),
              "tensor 'blk.0.ffn_up.weight' is 16 × 25, and its metadata asks for 16 × 24; convert the model again");
    Sketch missing;
    missing.with_down = false;
    EXPECT_EQ(refusal(missing), "the tensor 'blk.0.ffn_down.weight' is missing; convert the model again");
    Sketch extra;
    extra.with_extra = true;
    EXPECT_EQ(refusal(extra),
              "tensor 'blk.0.attn_q_norm.weight' is no part of a llama model; use a model without such additions");
}

TEST(ModelConfig, heads_that_do_not_divide_and_impossible_rotations_are_refused) {
    Sketch heads;
    heads.kv_heads = 3;
    EXPECT_EQ(refusal(heads), "has 4 heads for 3 key heads, which does not divide; convert the model again");
    Sketch zero;
    zero.heads = 0;
    EXPECT_EQ(refusal(zero),
              "metadata 'llama.attention.head_count' is not a whole number from 1 to 4096; convert the model again");
    Sketch rope;
    rope.rope_size = 6;
    EXPECT_EQ(refusal(rope), "turns 6 of 4 values of a head, which cannot be; convert the model again");
}

Sketch with(std::function<void(gguf::GgufWriter&)> more, const std::string& architecture = "llama") {
    Sketch sketch;
    sketch.architecture = architecture;
    sketch.more = std::move(more);
    return sketch;
}

TEST(ModelConfig, experts_that_are_none_too_many_or_of_a_dense_family_are_refused) {
    const auto count = [](const char* key, std::uint32_t number) {
        return [=](gguf::GgufWriter& writer) {
            writer.add(key, number);
        };
    };
    EXPECT_EQ(
        refusal(with(count("llama.expert_count", 8))),
        "metadata 'llama.expert_used_count' is missing, and must be a whole number from 1 to 8; convert the model "
        "again");
    EXPECT_EQ(refusal(with(count("llama.expert_count", 4097))),
              "metadata 'llama.expert_count' is not a whole number up to 4096; convert the model again");
    EXPECT_EQ(refusal(with(count("qwen2.expert_count", 8), "qwen2")),
              "is a mixture of experts of the architecture 'qwen2', and only those of llama and qwen3moe are decoded; "
              "use one");
    EXPECT_EQ(
        refusal(with([](gguf::GgufWriter&) {}, "qwen3moe")),
        "metadata 'qwen3moe.expert_count' is missing, and must be a whole number from 1 to 4096; convert the model "
        "again");
    EXPECT_EQ(refusal(with([](gguf::GgufWriter& writer) {
                  writer.add("llama.expert_count", std::uint32_t{4});
                  writer.add("llama.expert_used_count", std::uint32_t{5});
              })),
              "metadata 'llama.expert_used_count' is not a whole number from 1 to 4; convert the model again");
    EXPECT_EQ(refusal(with([](gguf::GgufWriter& writer) {
                  writer.add("llama.expert_count", std::uint32_t{4});
                  writer.add("llama.expert_used_count", std::uint32_t{2});
                  writer.add("llama.expert_gating_func", std::uint32_t{2});
              })),
              "chooses its experts otherwise than by a softmax; use a mixtral or qwen3moe model");
    EXPECT_EQ(refusal(with([](gguf::GgufWriter& writer) {
                  writer.add("llama.expert_count", std::uint32_t{4});
                  writer.add("llama.expert_used_count", std::uint32_t{2});
              })),
              "the tensor 'blk.0.ffn_gate_inp.weight' is missing; convert the model again");
}

TEST(ModelConfig, what_would_change_the_result_and_is_not_done_is_refused_by_name) {
    EXPECT_EQ(refusal(with([](gguf::GgufWriter& writer) { writer.add("llama.rope.scaling.type", "longrope"); })),
              "uses rope scaling 'longrope', and only 'linear' and 'yarn' are decoded; use a model of these");
    EXPECT_EQ(refusal(with([](gguf::GgufWriter& writer) { writer.add("llama.final_logit_softcapping", 30.0F); })),
              "asks for 'final_logit_softcapping', which is not decoded here; use a model without it");
}

TEST(ModelConfig, an_older_key_of_linear_scaling_is_read) {
    const TestFolder folder;
    const auto file = gguf::File::open(
        write(folder, with([](gguf::GgufWriter& writer) { writer.add("llama.rope.scale_linear", 8.0F); })));
    ASSERT_TRUE(file.ok());
    const Result<ModelConfig> config = read_config(*file);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->rope_scaling.kind, RopeScaling::Kind::linear);
    EXPECT_EQ(config->rope_scaling.factor, 8);
}

} // namespace
} // namespace plumb::decoder

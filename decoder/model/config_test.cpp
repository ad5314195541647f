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
    std::function<void(gguf::Writer&)> more = [](gguf::Writer&) {
    };
};

/// One layer of 16 values; the data is zeros.
std::string write(const TemporaryFolder& folder, const Sketch& sketch) {
    const std::string path = folder.file("sketch.gguf");
    gguf::Writer writer(path);
    const std::string arch = sketch.architecture;
    writer.add("general.architecture", arch);
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, std::uint32_t>>{{".block_count", 1U},
                                                                      {".context_length", 64U},
                                                                      {".embedding_length", 16U},
                                                                      {".feed_forward_length", 24U},
                                                                      {".attention.head_count", sketch.heads},
                                                                      {".attention.head_count_kv", sketch.kv_heads},
                                                                      {".rope.dimension_count", sketch.rope_size}})
        writer.add(arch + key, value);
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
    if (sketch.with_down)
        tensor("blk.0.ffn_down.weight", 24, 16, 0);
    if (sketch.with_extra)
        tensor("blk.0.attn_q_norm.weight", 16, 0, 0);
    EXPECT_TRUE(writer.begin(true).ok());
    EXPECT_TRUE(writer.write(std::vector<std::byte>(bytes)).ok());
    EXPECT_TRUE(writer.finish().ok());
    return path;
}

/// The error behind the path of the file.
std::string refusal(const Sketch& sketch) {
    const TemporaryFolder folder;
    const std::string path = write(folder, sketch);
    Options options;
    options.threads = 1;
    options.context = 16;
    const Result<Decoder> decoder = Decoder::load(path, options);
    if (decoder.ok())
        return "";
    EXPECT_TRUE(decoder.error().message.starts_with(path + ": ")) << decoder.error().message;
    return decoder.error().message.substr(path.size() + 2);
}

TEST(ModelConfig, a_plain_sketch_loads) { EXPECT_EQ(refusal({}), ""); }

TEST(ModelConfig, an_unknown_architecture_is_named) {
    Sketch sketch;
    sketch.architecture = "gemma3";
    EXPECT_EQ(refusal(sketch),
              "has the architecture 'gemma3', and only llama and qwen2 are decoded; use a model of these");
}

TEST(ModelConfig, an_unsupported_tensor_type_is_named_with_its_tensor) {
    Sketch sketch;
    sketch.matrix_type = 1;
    EXPECT_EQ(refusal(sketch),
              "tensor 'blk.0.attn_q.weight' has the type F16, and this decoder computes with F32 and BF16 "
              "only; convert the model to BF16");
    sketch.matrix_type = 0;
    sketch.norm_type = 30;
    EXPECT_EQ(refusal(sketch),
              "tensor 'blk.0.attn_norm.weight' has the type BF16, and this decoder computes with F32 for "
              "norms and biases only; convert the model to BF16");
}

TEST(ModelConfig, layers_of_two_types_are_refused) {
    Sketch sketch;
    sketch.matrix_type = 30;
    EXPECT_EQ(refusal(sketch), "mixes F32 and BF16 in its layers; convert the model to one of them");
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
    EXPECT_EQ(
        refusal(extra),
        "tensor 'blk.0.attn_q_norm.weight' is no part of a dense llama model; use a model without such additions");
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

TEST(ModelConfig, experts_and_unknown_rope_scaling_are_refused) {
    Sketch experts;
    experts.more = [](gguf::Writer& writer) {
        writer.add("llama.expert_count", std::uint32_t{8});
    };
    EXPECT_EQ(refusal(experts),
              "is a mixture of experts, and only dense models are decoded; use a dense llama or qwen2 model");
    Sketch scaling;
    scaling.more = [](gguf::Writer& writer) {
        writer.add("llama.rope.scaling.type", "yarn");
    };
    EXPECT_EQ(refusal(scaling), "uses rope scaling 'yarn', and only 'linear' is decoded; use a model without it");
}

} // namespace
} // namespace plumb::decoder

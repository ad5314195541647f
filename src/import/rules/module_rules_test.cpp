// SPDX-License-Identifier: Apache-2.0
#include "import/rules/module_rules.hpp"

#include <gtest/gtest.h>

namespace plumb::imported {
namespace {

using Path = std::vector<std::string_view>;

KernelLabel applied(const Path& path, KernelLabel label) {
    const ModuleRule* rule = module_rule(path);
    EXPECT_NE(rule, nullptr);
    if (rule != nullptr) {
        apply(*rule, LabelEvidence::stack, label);
    }
    return label;
}

TEST(ModuleRules, SayTheBrickOfAKernelWithoutAName) {
    const KernelLabel label = applied({"Qwen3DecoderLayer_3", "Qwen3Attention_3", "RMSNorm_7"}, {});
    EXPECT_EQ(label.brick, "qk_norm");
    EXPECT_EQ(label.certainty, Certainty::strong);
    EXPECT_EQ(label.evidence, LabelEvidence::stack);
    EXPECT_EQ(applied({"Qwen3DecoderLayer_3", "RMSNorm_8"}, {}).brick, "rms_norm");
    EXPECT_EQ(applied({"model", "layers", "0", "self_attn", "o_proj"}, {}).brick, "output_projection");
}

TEST(ModuleRules, LeaveAHelperThatItsNameTells) {
    const Path path = {"QKVParallelLinear_0"};
    EXPECT_EQ(applied(path, {"quantise", {}, Certainty::strong, Anchor::none, LabelEvidence::name}).brick, "quantise");
    EXPECT_EQ(applied(path, {"quantise", {}, Certainty::strong, Anchor::none, LabelEvidence::name}).evidence,
              LabelEvidence::name);
    EXPECT_EQ(applied(path, {"copy", {}, Certainty::weak, Anchor::none, LabelEvidence::name}).brick, "qkv_projection");
    EXPECT_EQ(applied(path, {"activation", {}, Certainty::strong, Anchor::mlp, LabelEvidence::name}).brick,
              "qkv_projection");
}

TEST(ModuleRules, DecideNothingWhereAModuleHoldsSeveralBricks) {
    const Path path = {"Qwen2DecoderLayer_0", "Qwen2Attention_0", "Linear_3"};
    const KernelLabel by_place{"output_projection", {}, Certainty::strong, Anchor::none, LabelEvidence::place};
    EXPECT_EQ(applied(path, by_place).evidence, LabelEvidence::stack);
    const KernelLabel gemm{"other_gemm", {}, Certainty::weak, Anchor::gemm, LabelEvidence::name};
    EXPECT_EQ(applied(path, gemm).brick, "other_gemm");
    EXPECT_EQ(module_rule(Path{"Dropout_0"}), nullptr);
    EXPECT_EQ(module_rule(Path{}), nullptr);
}

TEST(ModuleRules, NumberLayers) {
    const auto layer = layer_of_modules(Path{"Qwen3Model_0", "Qwen3DecoderLayer_17", "Qwen2MLP_17"});
    ASSERT_TRUE(layer);
    EXPECT_EQ(layer->number, 17U);
    EXPECT_EQ(layer->kind, "Qwen3DecoderLayer");
    EXPECT_EQ(layer_of_modules(Path{"TransformerBlock_2", "MLPBlock_9"})->number, 2U);
    EXPECT_EQ(layer_of_modules(Path{"model", "layers", "5", "mlp"})->number, 5U);
    EXPECT_FALSE(layer_of_modules(Path{"Qwen3Model_0", "LogitsProcessor_0"}));
    EXPECT_FALSE(layer_of_modules(Path{"model", "layers"}));
    EXPECT_FALSE(layer_of_modules(Path{"DecoderLayer_99999999999"}));
}

TEST(ModuleRules, AreAllReadable) {
    for (const Path& path : {Path{"VocabParallelEmbedding_0"}, Path{"LogitsProcessor_0"}, Path{"Sampler_0"},
                             Path{"TransformerBlock_0", "MLPBlock_0", "FusedMoE_0"}, Path{"SiLU_0"},
                             Path{"RotaryEmbedding_0"}, Path{"RadixAttention_0"}, Path{"Qwen2MLP_0"}}) {
        const ModuleRule* rule = module_rule(path);
        ASSERT_NE(rule, nullptr) << path.back();
        EXPECT_FALSE(rule->bricks.empty()) << path.back();
        EXPECT_TRUE(rule->holds("copy_d2d")) << path.back();
    }
}

} // namespace
} // namespace plumb::imported

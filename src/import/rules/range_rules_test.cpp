// SPDX-License-Identifier: Apache-2.0
#include "import/rules/range_rules.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace plumb::imported {
namespace {

RangeRules built_in_range_rules() {
    Result<RangeRules> rules = RangeRules::load({}, "");
    EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : rules.error().message);
    return std::move(*rules);
}

RangeLabel label_of(std::string_view text, std::string_view domain = "") {
    static RangeRules rules = built_in_range_rules();
    std::string place;
    return rules.label(domain, std::string(rules.key(text, place)));
}

std::string error_of(const std::string& text) {
    const Result<RangeRules> rules = RangeRules::compile({{"my.rules", text}});
    return rules ? "" : rules.error().message;
}

TEST(RangeRules, a_module_of_vllm_has_its_brick_its_layer_and_its_flops) {
    const RangeLabel qkv = label_of(
        "{'Module': 'top.model.layers.3.self_attn.qkv_proj', 'TrainableParams': {'weight': [1152, 896], 'bias': "
        "[1152]}, 'Inputs': [[7, 896]], 'StaticParams': {'in_features': 896}}");
    EXPECT_EQ(qkv.kind, RangeKind::brick);
    EXPECT_EQ(qkv.name, "qkv_projection");
    EXPECT_EQ(qkv.layer, 3U);
    EXPECT_EQ(qkv.flops, 2.0 * 7 * 896 * 1152);
    EXPECT_TRUE(qkv.by_rule);
    const RangeLabel norm = label_of(
        "{'Module': 'top.model.layers.11.input_layernorm', 'TrainableParams': {'weight': [896]}, 'Inputs': [[7, 896]]}");
    EXPECT_EQ(norm.name, "rms_norm");
    EXPECT_EQ(norm.layer, 11U);
    EXPECT_TRUE(std::isnan(norm.flops)) << "of what is no product nothing is known";
    EXPECT_EQ(
        label_of("{'Module': 'top.model.embed_tokens', 'TrainableParams': {'weight': [151936, 896]}, 'Inputs': [[7]]}")
            .name,
        "embedding");
}

TEST(RangeRules, a_module_that_holds_others_is_called_as_it_is) {
    EXPECT_EQ(label_of("{'Module': 'top.model.layers.3.self_attn', 'Inputs': [[7, 896]]}").name, "self_attn");
    const RangeLabel layer = label_of("{'Module': 'top.model.layers.3', 'Inputs': [[7, 896]]}");
    EXPECT_EQ(layer.kind, RangeKind::layer);
    EXPECT_EQ(layer.layer, 3U);
    const RangeLabel model = label_of("{'Module': 'top', 'Inputs': [[7]], 'input_ids': [[7]]}");
    EXPECT_EQ(model.kind, RangeKind::step);
    EXPECT_EQ(model.phase, Phase::none) << "the shapes do not tell prefill from decode";
}

TEST(RangeRules, what_a_module_gave_is_no_second_call_of_it) {
    EXPECT_EQ(
        label_of("{'Module': 'top.model.layers.3.self_attn.qkv_proj', 'TrainableParams': {'weight': [1152, 896]}, "
                 "'Outputs': [[7, 1152]]}")
            .kind,
        RangeKind::hidden);
}

TEST(RangeRules, experts_and_their_router_are_told_from_the_mlp) {
    EXPECT_EQ(label_of("{'Module': 'model.model.layers.4.mlp.experts', 'Inputs': [[7, 896]]}").name, "moe_experts");
    const RangeLabel router =
        label_of("{'Module': 'model.model.layers.4.mlp.gate', 'TrainableParams': {'weight': [64, 896]}}");
    EXPECT_EQ(router.name, "moe_router");
    EXPECT_EQ(router.layer, 4U);
}

TEST(RangeRules, an_iteration_of_vllm_is_a_step_of_its_phase) {
    const RangeLabel decode = label_of("execute_context_0(0)_generation_17(17)");
    EXPECT_EQ(decode.kind, RangeKind::step);
    EXPECT_EQ(decode.phase, Phase::decode);
    EXPECT_EQ(decode.step.decode_tokens, 17U);
    EXPECT_EQ(decode.step.prefill_tokens, 0U);
    EXPECT_EQ(decode.step.sequences, 17U);
    const RangeLabel mixed = label_of("execute_context_2(512)_generation_17(17)");
    EXPECT_EQ(mixed.phase, Phase::mixed);
    EXPECT_EQ(mixed.step.prefill_tokens, 512U);
    EXPECT_EQ(mixed.step.sequences, 19U);
    EXPECT_EQ(label_of("execute_context_1(7)_generation_0(0)").phase, Phase::prefill);
    EXPECT_EQ(label_of("execute_new_1_cached_3").phase, Phase::none);
    EXPECT_EQ(label_of("gpu_model_runner: sample").name, "sampling");
    EXPECT_EQ(label_of("gpu_model_runner: forward").name, "gpu_model_runner: forward");
}

TEST(RangeRules, an_iteration_with_all_its_tokens_in_front_is_the_same_step) {
    const RangeLabel mixed = label_of("execute_529_context_2(512)_generation_17(17)");
    EXPECT_EQ(mixed.kind, RangeKind::step);
    EXPECT_EQ(mixed.phase, Phase::mixed);
    EXPECT_EQ(mixed.step.prefill_tokens, 512U);
    const RangeLabel drafted = label_of("execute_context_0(0)_generation_8(24)");
    EXPECT_EQ(drafted.step.decode_tokens, 24U);
    EXPECT_EQ(drafted.step.sequences, 8U);
}

TEST(RangeRules, an_iteration_of_tensorrt_llm_is_one_name_whatever_its_number) {
    const RangeLabel label =
        label_of("[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs", "TensorRT-LLM");
    EXPECT_EQ(label.kind, RangeKind::step);
    EXPECT_EQ(label.phase, Phase::decode);
    EXPECT_EQ(label.step.sequences, 32U);
    EXPECT_EQ(label.step.decode_tokens, 0U) << "a request may have several tokens: not known";
    EXPECT_EQ(label_of("[Executor] _forward_step: 3 ctx reqs, 0 gen reqs").phase, Phase::prefill);
    RangeRules rules = built_in_range_rules();
    std::string place;
    std::string other;
    EXPECT_EQ(rules.key("[Executor] _forward_step 7: 0 ctx reqs, 32 gen reqs", place),
              rules.key("[Executor] _forward_step 80123: 0 ctx reqs, 32 gen reqs", other));
}

TEST(RangeRules, what_xla_runs_is_called_after_its_operation) {
    const RangeLabel thunk =
        label_of("Thunk:#name=jit(decode)/layers_7/attention/dot_general,hlo_op=custom-call.49#", "TSL");
    EXPECT_EQ(thunk.name, "custom-call");
    EXPECT_EQ(thunk.layer, 7U);
    EXPECT_EQ(label_of("Thunk:#hlo_op=loop_fusion.3#", "TSL").name, "loop_fusion");
    EXPECT_EQ(label_of("XlaModule:#hlo_module=jit_decode_step,program_id=7#", "TSL").phase, Phase::decode);
    EXPECT_EQ(label_of("XlaModule:#prefix=jit(f),hlo_module=jit_f,program_id=7#", "TSL").name, "jit_f");
    EXPECT_EQ(label_of("XlaCompileBackend:#module=jit_f#", "TSL").name, "XlaCompileBackend");
    EXPECT_EQ(label_of("XlaCompileBackend:#module=jit_f#").name, "XlaCompileBackend:#module=jit_f#")
        << "of another domain";
}

TEST(RangeRules, collectives_of_nccl_are_bricks) {
    EXPECT_EQ(label_of("ncclAllReduce", "NCCL").name, "all_reduce");
    EXPECT_EQ(label_of("ncclAllReduce").name, "ncclAllReduce") << "of another domain";
}

TEST(RangeRules, megatron_names_the_part_behind_the_function) {
    EXPECT_EQ(label_of("megatron.core.transformer.attention.forward.qkv").name, "qkv_projection");
    EXPECT_EQ(label_of("megatron.core.transformer.attention.forward.core_attention").name, "attention");
    EXPECT_EQ(label_of("megatron.core.transformer.mlp.forward.linear_fc2").name, "down_projection");
    EXPECT_EQ(label_of("megatron.core.transformer.mlp.forward.linear_fc1").name, "linear_fc1")
        << "with a gate or without";
    EXPECT_EQ(label_of("megatron.core.transformer.transformer_layer._forward_mlp.mlp_bda").name, "residual_add");
}

TEST(RangeRules, an_operation_of_pytorch_has_one_name_and_the_flops_of_its_shapes) {
    const RangeLabel mm =
        label_of("aten::mm, seq = 12, op_id = 4711, sizes = [[7, 896], [896, 1152]], input_op_ids = [(1,0)]");
    EXPECT_EQ(mm.name, "aten::mm");
    EXPECT_EQ(mm.flops, 2.0 * 7 * 896 * 1152);
    const RangeLabel addmm = label_of("aten::addmm, op_id = 5, sizes = [[1152], [7, 896], [896, 1152], [], []]");
    EXPECT_EQ(addmm.name, "aten::addmm");
    EXPECT_EQ(addmm.flops, 2.0 * 7 * 896 * 1152);
    EXPECT_EQ(label_of("aten::bmm, seq = 1, sizes = [[14, 1, 64], [14, 64, 30]]").flops, 2.0 * 14 * 64 * 30);
    EXPECT_EQ(label_of("aten::silu_, seq = 99").name, "aten::silu_");
    EXPECT_EQ(label_of("aten::add").name, "aten::add");
}

TEST(RangeRules, anybodys_own_steps_and_layers_are_known) {
    EXPECT_EQ(label_of("decode step 3").phase, Phase::decode);
    EXPECT_EQ(label_of("prefill").phase, Phase::prefill);
    EXPECT_EQ(label_of("layer_12").layer, 12U);
    EXPECT_EQ(label_of("layer_12").kind, RangeKind::layer);
    EXPECT_EQ(label_of("layer_99999999999999999999").kind, RangeKind::brick) << "no number that a layer can have";
    EXPECT_EQ(label_of("layer_65535").kind, RangeKind::brick);
    EXPECT_EQ(label_of("model.layers.5.mlp.down_proj").name, "down_projection");
    EXPECT_EQ(label_of("decoder").kind, RangeKind::brick);
}

TEST(RangeRules, a_range_that_no_rule_knows_is_a_brick_of_its_own_name) {
    const RangeLabel own = label_of("my kernel\n\xff");
    EXPECT_FALSE(own.by_rule);
    EXPECT_EQ(own.kind, RangeKind::brick);
    EXPECT_EQ(own.name, "my kernel \xEF\xBF\xBD") << "valid text of one line";
    EXPECT_EQ(label_of("ncclGroupEnd", "NCCL").name, "NCCL:ncclGroupEnd");
    EXPECT_LE(label_of(std::string(4096, 'x')).name.size(), 128U);
}

TEST(RangeRules, a_users_rule_stands_in_front_and_says_what_the_payload_is) {
    Result<RangeRules> rules =
        RangeRules::compile({{"my.rules", "kv_append mine bytes ^store\nlayer * layer ^L$\nattention - - ^a"},
                             {"other.rules", "moe_router * - ^store"}});
    ASSERT_TRUE(rules.ok()) << rules.error().message;
    EXPECT_EQ(rules->label("mine", "store k").name, "kv_append");
    EXPECT_EQ(rules->label("mine", "store k").payload, RangePayload::bytes);
    EXPECT_EQ(rules->label("yours", "store k").name, "moe_router");
    EXPECT_EQ(rules->label("", "L").payload, RangePayload::layer);
    EXPECT_EQ(rules->label("", "attend").name, "attention");
    EXPECT_FALSE(rules->label("mine", "attend").by_rule) << "- is the default domain alone";
}

TEST(RangeRules, a_line_that_is_no_rule_is_refused_with_file_and_line) {
    EXPECT_EQ(
        error_of("\nAttention * - x"),
        "my.rules:2: \"Attention\" stands where a brick, =, module, step, step:prefill, step:decode, layer or hide is expected");
    EXPECT_EQ(
        error_of("step:encode * - x"),
        "my.rules:1: \"step:encode\" stands where a brick, =, module, step, step:prefill, step:decode, layer or hide is expected");
    EXPECT_EQ(
        error_of("attention * weight x"),
        "my.rules:1: \"weight\" stands where -, bytes, flops, elements, layer, prefill, decode, sequences or kv_length is expected");
    EXPECT_EQ(error_of("attention * -  "), "my.rules:1: the regex is missing");
    EXPECT_EQ(error_of("attention * - ("), "my.rules:1: the regex is wrong at its byte 1: missing closing parenthesis");
    EXPECT_EQ(error_of("attention * - (?<head>x)"),
              "my.rules:1: the group \"head\" means nothing: docs/reference/nvtx.md lists those that do");
    EXPECT_EQ(error_of("module * - x"), "my.rules:1: a rule for modules needs the group (?<module>…)");
    EXPECT_EQ(error_of("layer * - x"),
              "my.rules:1: a rule for layers needs the group (?<layer>…), or layer as its payload");
    EXPECT_EQ(error_of("count seq"), "my.rules:1: a word in quotes must follow: count \", seq = \"");
}

TEST(RangeRules, a_hostile_name_is_given_up_and_counted) {
    Result<RangeRules> rules = RangeRules::compile({{"my.rules", "attention * - (a+)+$"}});
    ASSERT_TRUE(rules.ok());
    EXPECT_FALSE(rules->label("", std::string(4000, 'a') + 'b').by_rule);
    EXPECT_EQ(rules->given_up(), 1U);
}

TEST(RangeRules, what_counts_up_and_what_is_cut_may_stand_in_any_order) {
    Result<RangeRules> rules = RangeRules::compile({{"my.rules", "count \" n=\"\ncut \" end\"\ncount \" m=\""}});
    ASSERT_TRUE(rules.ok());
    std::string place;
    EXPECT_EQ(rules->key("x n=12 m=7y end n=1", place), "x n= m=y");
    EXPECT_EQ(rules->key("x m=7 n=12", place), "x m= n=");
    EXPECT_EQ(rules->key("plain", place), "plain");
    EXPECT_EQ(rules->key("", place), "");
}

} // namespace
} // namespace plumb::imported

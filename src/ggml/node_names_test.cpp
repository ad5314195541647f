// SPDX-License-Identifier: Apache-2.0
#include "ggml/node_names.hpp"

#include <gtest/gtest.h>

namespace plumb::ggml {
namespace {

TEST(NodeNames, the_weight_names_the_brick_before_the_operation_does) {
    EXPECT_EQ(brick_of({"Qcur-3", "MUL_MAT", "blk.3.attn_q.weight"}), Brick::qkv_projection);
    EXPECT_EQ(brick_of({"Qcur-3", "ADD", "blk.3.attn_q.bias"}), Brick::qkv_projection);
    EXPECT_EQ(brick_of({"wqkv-3", "MUL_MAT", "blk.3.attn_qkv.weight"}), Brick::qkv_projection);
    EXPECT_EQ(brick_of({"node_30", "MUL_MAT", "blk.3.attn_output.weight"}), Brick::output_projection);
    EXPECT_EQ(brick_of({"ffn_gate-3", "MUL_MAT", "blk.3.ffn_gate.weight"}), Brick::gate_projection);
    EXPECT_EQ(brick_of({"ffn_up-3", "MUL_MAT", "blk.3.ffn_up.weight"}), Brick::up_projection);
    EXPECT_EQ(brick_of({"ffn_out-3", "MUL_MAT", "blk.3.ffn_down.weight"}), Brick::down_projection);
    EXPECT_EQ(brick_of({"result_output", "MUL_MAT", "output.weight"}), Brick::lm_head);
}

TEST(NodeNames, a_shared_table_is_the_embedding_where_rows_are_taken_and_the_head_where_it_multiplies) {
    EXPECT_EQ(brick_of({"embd", "GET_ROWS", "token_embd.weight"}), Brick::embedding);
    EXPECT_EQ(brick_of({"result_output", "MUL_MAT", "token_embd.weight"}), Brick::lm_head);
    EXPECT_EQ(brick_of({"inp_per_layer", "GET_ROWS", "per_layer_token_embd.weight"}), std::nullopt);
}

TEST(NodeNames, norms_differ_by_their_weight) {
    EXPECT_EQ(brick_of({"attn_norm-0", "MUL", "blk.0.attn_norm.weight"}), Brick::rms_norm);
    EXPECT_EQ(brick_of({"Qcur_normed-0", "MUL", "blk.0.attn_q_norm.weight"}), Brick::qk_norm);
    EXPECT_EQ(brick_of({"attn_norm-0", "ADD", "blk.0.attn_norm.bias"}), Brick::layer_norm);
    EXPECT_EQ(brick_of({"norm-0", "RMS_NORM", ""}), Brick::rms_norm);
}

TEST(NodeNames, experts_have_bricks_of_their_own) {
    EXPECT_EQ(brick_of({"ffn_moe_logits-1", "MUL_MAT", "blk.1.ffn_gate_inp.weight"}), Brick::moe_router);
    EXPECT_EQ(brick_of({"ffn_moe_probs-1", "SOFT_MAX", ""}), Brick::moe_router);
    EXPECT_EQ(brick_of({"ffn_moe_up-1", "MUL_MAT_ID", "blk.1.ffn_up_exps.weight"}), Brick::moe_experts);
    EXPECT_EQ(brick_of({"ffn_moe_weighted-1", "MUL", ""}), Brick::moe_combine);
}

TEST(NodeNames, attention_has_no_weight) {
    EXPECT_EQ(brick_of({"node_25", "FLASH_ATTN_EXT", ""}), Brick::attention);
    EXPECT_EQ(brick_of({"kq-2", "MUL_MAT", ""}), Brick::attention);
    EXPECT_EQ(brick_of({"kq_soft_max-2", "SOFT_MAX", ""}), Brick::attention);
    EXPECT_EQ(brick_of({"kqv_out-2", "CONT", ""}), Brick::attention);
    EXPECT_EQ(brick_of({"cache_k_l2 (view)", "SET_ROWS", ""}), Brick::kv_append);
    EXPECT_EQ(brick_of({"k_cache_view-2 (copy of Kcur-2)", "CPY", ""}), Brick::kv_append);
}

TEST(NodeNames, what_no_rule_knows_keeps_the_name_of_its_operation) {
    EXPECT_EQ(brick_of({"node_7", "MUL_MAT", ""}), std::nullopt) << "an adapter's product is no attention";
    EXPECT_EQ(brick_of({"node_7", "ADD", ""}), std::nullopt);
    EXPECT_EQ(other_name("GET_ROWS"), "ggml_get_rows");
}

TEST(NodeNames, a_layer_is_what_the_name_states) {
    EXPECT_EQ(layer_in("attn_norm-11"), 11);
    EXPECT_EQ(layer_in("cache_k_l23 (view)"), 23);
    EXPECT_EQ(layer_in("blk.7.attn_q.weight"), 7);
    EXPECT_EQ(layer_in("node_31"), std::nullopt);
    EXPECT_EQ(layer_in("result_output"), std::nullopt);
    EXPECT_EQ(layer_in("Kcur-3 (view)"), std::nullopt);
    EXPECT_EQ(layer_of({"result_norm", "MUL", "output_norm.weight"}, 2), -1);
    EXPECT_EQ(layer_of({"norm-3", "RMS_NORM", ""}, 2), 3);
    EXPECT_EQ(layer_of({"node_31", "MUL_MAT", ""}, 2), 2);
}

} // namespace
} // namespace plumb::ggml

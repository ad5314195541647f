// SPDX-License-Identifier: Apache-2.0
#include "ggml/node_work.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace plumb::ggml {
namespace {

const TensorSizes input{"x", 256, 64, 1};
const TensorSizes weight{"blk.0.ffn_up.weight", 8192, 2048, 32}; // 64 in, 32 out

TEST(NodeWork, a_product_reads_its_weight_and_counts_two_flops_for_each_of_it) {
    const NodeFacts node{"MUL_MAT", {"ffn_up-0", 128, 32, 1}, {weight, input}};
    EXPECT_EQ(work_of(node).bytes, 8192 + 256 + 128);
    EXPECT_EQ(work_of(node).flops, 2 * 2048);
    EXPECT_EQ(weight_of(node), "blk.0.ffn_up.weight");
}

TEST(NodeWork, of_a_table_only_the_rows_that_are_read_count) {
    const NodeFacts node{
        "GET_ROWS", {"embd", 256, 64, 1}, {{{"token_embd.weight", 1e6, 5e5, 1e4}, {"inp_tokens", 4, 1, 1}}}};
    EXPECT_EQ(work_of(node).bytes, 100 + 4 + 256) << "a row of the table is smaller than what is made of it";
    EXPECT_EQ(work_of(node).flops, 0);
}

TEST(NodeWork, what_is_appended_to_the_cache_is_read_and_written_in_types_of_its_own) {
    const TensorSizes fresh{"Kcur-0", 512, 128, 2};
    const NodeFacts rows{"SET_ROWS",
                         {"cache_k_l0 (view)", 65536, 32768, 512},
                         {{fresh, {"inp_rows", 16, 2, 1}, {"cache_k_l0", 65536, 32768, 512}}}};
    EXPECT_EQ(work_of(rows).bytes, 512 + 16 + 256);
    const NodeFacts copy{
        "CPY", {"cache_k_l0 (view) (copy)", 9999, 128, 2}, {{fresh, {"cache_k_l0 (view)", 256, 128, 2}}}};
    EXPECT_EQ(work_of(copy).bytes, 512 + 256);
    EXPECT_EQ(work_of(copy).flops, 0);
}

TEST(NodeWork, of_experts_only_those_that_were_chosen_count) {
    const TensorSizes experts{"blk.0.ffn_up_exps.weight", 32768, 8192, 128}; // 4 of 64 in, 32 out
    const NodeFacts node{"MUL_MAT_ID", {"ffn_moe_up-0", 256, 64, 2}, {{experts, input, {"topk", 8, 2, 1}}}};
    EXPECT_EQ(work_of(node).bytes, 256 + 256 + 8 + 32768 / 2);
    EXPECT_EQ(work_of(node).flops, 2 * 64 * 64);
}

TEST(NodeWork, attention_counts_by_position_of_the_cache) {
    const TensorSizes cache{"cache_k_l0 (view)", 16384, 8192, 256};
    const NodeFacts node{"FLASH_ATTN_EXT", {"__fattn__-0", 256, 64, 1}, {{input, cache, cache, {"mask", 512, 256, 1}}}};
    EXPECT_EQ(work_of(node).bytes, 512);
    EXPECT_EQ(work_of(node).bytes_per_kv, (2 * 16384 + 512) / 256.0);
    EXPECT_EQ(work_of(node).flops_per_kv, 4 * 64);
}

TEST(NodeWork, attention_reads_no_more_positions_than_it_sees) {
    NodeWork work{100, 0, 10, 20, 256};
    EXPECT_EQ(work.at(32, 32).bytes_per_kv, 10) << "the step's own length gives it";
    EXPECT_EQ(work.at(32, 32).bytes, 100);
    EXPECT_EQ(work.at(32, 32).flops, 20 * 32);
    EXPECT_EQ(work.at(16, 32).bytes, 100 + 10 * 16) << "an earlier part of a prompt";
    EXPECT_EQ(work.at(16, 32).bytes_per_kv, 0);
    EXPECT_EQ(work.at(1000, 1000).bytes, 100 + 10 * 256) << "a window";
    EXPECT_EQ(work.at(1000, 1000).flops, 20 * 256);
    work += {1, 2, 0, 0};
    EXPECT_EQ(work.positions, 256);
}

TEST(NodeWork, attention_without_a_mask_has_no_flops_that_are_known) {
    const TensorSizes keys{"Kcur-0 (permuted)", 4096, 2048, 64};
    const NodeFacts node{"FLASH_ATTN_EXT", {"__fattn__-0", 256, 64, 1}, {{input, keys, keys, {}}}};
    EXPECT_EQ(work_of(node).bytes, 2 * 256 + 2 * 4096);
    EXPECT_TRUE(std::isnan(work_of(node).flops));
}

} // namespace
} // namespace plumb::ggml

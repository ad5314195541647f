// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/routing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A routing with memory for `rows` tokens.
struct Table {
    Table(std::size_t experts, std::size_t used, std::size_t tokens)
        : rows(tokens), chosen(tokens * used), slot(tokens * used), offsets(experts + 1), weight(tokens * used) {
        routing.experts = experts;
        routing.used = used;
        routing.chosen = chosen.data();
        routing.weight = weight.data();
        routing.slot = slot.data();
        routing.offsets = offsets.data();
    }
    void run(std::vector<float> logits) {
        route({logits.data(), Type::f32, rows, routing.experts}, routing);
        order_by_expert(routing, rows);
    }

    std::size_t rows;
    std::vector<std::int32_t> chosen, slot, offsets;
    std::vector<float> weight;
    Routing routing;
};

TEST(Routing, the_largest_logits_are_chosen_the_best_first_and_weighed_by_their_softmax) {
    Table table(5, 3, 2);
    table.run({1, 4, 2, 5, 3, /**/ 0, 0, -1, 0, -2});
    EXPECT_EQ(table.chosen, (std::vector<std::int32_t>{3, 1, 4, 0, 1, 3})) << "of equals the first";
    const float sum = 1 + std::exp(-1.0F) + std::exp(-2.0F);
    EXPECT_FLOAT_EQ(table.weight[0], 1 / sum);
    EXPECT_FLOAT_EQ(table.weight[2], std::exp(-2.0F) / sum);
    EXPECT_FLOAT_EQ(table.weight[4], 1.0F / 3);
}

TEST(Routing, weights_that_are_not_normalised_are_shares_of_all_experts) {
    Table table(3, 1, 1);
    table.routing.normalise = false;
    table.routing.scale = 2;
    table.run({0, 0, 0});
    EXPECT_FLOAT_EQ(table.weight[0], 2.0F / 3);
}

TEST(Routing, each_choice_has_a_slot_among_those_of_its_expert_in_the_order_of_the_tokens) {
    constexpr std::size_t experts = 7, used = 3, rows = 50;
    Table table(experts, used, rows);
    std::vector<float> logits(experts * rows);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        logits[i] = static_cast<float>(random_bits(1, i) % 1000);
    }
    table.run(logits);
    EXPECT_EQ(table.offsets.front(), 0);
    EXPECT_EQ(table.offsets.back(), static_cast<std::int32_t>(rows * used));
    EXPECT_EQ(std::set<std::int32_t>(table.slot.begin(), table.slot.end()).size(), rows * used);
    std::vector<std::int32_t> last(experts, -1);
    for (std::size_t i = 0; i < rows * used; ++i) {
        const auto e = static_cast<std::size_t>(table.chosen[i]);
        EXPECT_GE(table.slot[i], table.offsets[e]);
        EXPECT_LT(table.slot[i], table.offsets[e + 1]);
        EXPECT_GT(table.slot[i], last[e]);
        last[e] = table.slot[i];
    }
}

TEST(Routing, rows_without_a_number_choose_different_experts_all_the_same) {
    Table table(4, 2, 3);
    table.run({nan, nan, nan, nan, /**/ nan, 1, nan, nan, /**/ INFINITY, -INFINITY, INFINITY, nan});
    EXPECT_EQ(table.chosen, (std::vector<std::int32_t>{0, 1, 1, 0, 0, 2}));
}

TEST(Routing, every_expert_may_be_used) {
    Table table(3, 3, 1);
    table.run({1, 2, 3});
    EXPECT_EQ(table.chosen, (std::vector<std::int32_t>{2, 1, 0}));
    EXPECT_EQ(table.offsets, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

} // namespace
} // namespace plumb::decoder::cpu

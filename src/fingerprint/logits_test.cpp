// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/logits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace plumb::fingerprint {
namespace {

TEST(Logits, only_the_last_row_counts) {
    const float values[] = {9, 0, 0, 1, 4, 2.5F};
    const LargestLogit found = largest_logit(tensor(values, DType::f32, {2, 3}));
    EXPECT_EQ(found.index, 1u);
    EXPECT_EQ(found.margin, 1.5);
}

TEST(Logits, of_equals_the_first_wins_with_no_margin) {
    const float values[] = {1, 7, 7};
    const LargestLogit found = largest_logit(tensor(values, DType::f32, {3}));
    EXPECT_EQ(found.index, 1u);
    EXPECT_EQ(found.margin, 0);
}

TEST(Logits, what_is_not_finite_is_passed_over) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float values[] = {nan, -3, std::numeric_limits<float>::infinity(), -5};
    const LargestLogit found = largest_logit(tensor(values, DType::f32, {4}));
    EXPECT_EQ(found.index, 1u);
    EXPECT_EQ(found.margin, 2);
    const float none[] = {nan, nan};
    EXPECT_EQ(largest_logit(tensor(none, DType::f32, {2})).index, no_index);
    EXPECT_TRUE(std::isnan(largest_logit(tensor(none, DType::f32, {2})).margin));
}

TEST(Logits, one_value_has_no_second) {
    const float value = 3;
    EXPECT_EQ(largest_logit(tensor(&value, DType::f32, {1})).index, 0u);
    EXPECT_TRUE(std::isnan(largest_logit(tensor(&value, DType::f32, {1})).margin));
}

TEST(Logits, halves_of_both_kinds_are_read) {
    const std::uint16_t halves[] = {0x3c00, 0xc000, 0x4200, 0x0001}; // 1, -2, 3, 2^-24
    EXPECT_EQ(largest_logit(tensor(halves, DType::f16, {4})).index, 2u);
    EXPECT_EQ(largest_logit(tensor(halves, DType::f16, {4})).margin, 2);
    const std::uint16_t brains[] = {0x3f80, 0x4040, 0xc000}; // 1, 3, -2
    EXPECT_EQ(largest_logit(tensor(brains, DType::bf16, {3})).margin, 2);
}

TEST(Logits, of_long_rows_are_what_a_sort_says) {
    std::mt19937 random(11);
    std::uniform_int_distribution<int> value(-500, 500); // with ties
    for (int round = 0; round < 2000; ++round) {
        const std::size_t count = 1 + random() % 700;
        std::vector<float> row(count);
        for (float& v : row) {
            v = 0.25F * static_cast<float>(value(random));
        }
        for (std::size_t i = random() % 4; i-- > 0;) {
            row[random() % count] = i % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
        }
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < count; ++i) {
            if (std::isfinite(row[i])) {
                order.push_back(i);
            }
        }
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
        const LargestLogit found = largest_logit(tensor(row.data(), DType::f32, {count}));
        ASSERT_EQ(found.index, order.empty() ? no_index : order[0]);
        if (order.size() > 1) {
            ASSERT_EQ(found.margin, static_cast<double>(row[order[0]]) - static_cast<double>(row[order[1]]));
        } else {
            ASSERT_TRUE(std::isnan(found.margin));
        }
    }
}

} // namespace
} // namespace plumb::fingerprint

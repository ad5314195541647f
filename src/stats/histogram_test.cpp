// SPDX-License-Identifier: Apache-2.0
#include "stats/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace plumb::stats {
namespace {

TEST(Histogram, values_below_128_are_exact) {
    for (std::uint64_t value = 0; value < 128; ++value) {
        Histogram histogram;
        histogram.add(value);
        EXPECT_EQ(histogram.value_at_rank(1), static_cast<double>(value));
    }
}

TEST(Histogram, every_value_is_read_back_within_one_percent) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
        const std::uint64_t value = random() >> (random() % 64);
        Histogram histogram;
        histogram.add(value);
        const auto exact = static_cast<double>(value);
        ASSERT_LE(std::fabs(histogram.value_at_rank(1) - exact), 0.01 * exact) << value;
    }
}

TEST(Histogram, the_largest_value_has_a_bucket) {
    Histogram histogram;
    histogram.add(std::numeric_limits<std::uint64_t>::max());
    EXPECT_NEAR(histogram.value_at_rank(1) / 18446744073709551615.0, 1.0, 0.01);
}

TEST(Histogram, ranks_of_a_million_values_are_within_one_percent_of_the_sorted_values) {
    std::mt19937_64 random(2);
    std::lognormal_distribution<double> durations(10, 2);
    std::vector<std::uint64_t> values;
    Histogram histogram;
    for (int i = 0; i < 1000000; ++i) {
        values.push_back(static_cast<std::uint64_t>(durations(random)));
        histogram.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const std::size_t rank : {1u, 500000u, 900000u, 990000u, 999000u, 1000000u}) {
        const auto exact = static_cast<double>(values[rank - 1]);
        EXPECT_NEAR(histogram.value_at_rank(rank), exact, 0.01 * exact) << rank;
    }
}

TEST(Histogram, merging_in_any_order_gives_the_same_ranks) {
    std::mt19937_64 random(3);
    Histogram all;
    std::vector<Histogram> parts(5);
    for (int i = 0; i < 50000; ++i) {
        const std::uint64_t value = random() >> (random() % 50);
        all.add(value);
        parts[random() % 5].add(value);
    }
    Histogram forward;
    Histogram backward;
    for (std::size_t i = 0; i < 5; ++i) {
        forward.merge(parts[i]);
        backward.merge(parts[4 - i]);
    }
    EXPECT_EQ(forward.count(), 50000u);
    for (std::uint64_t rank = 1; rank <= 50000; rank += 97) {
        ASSERT_EQ(forward.value_at_rank(rank), all.value_at_rank(rank));
        ASSERT_EQ(backward.value_at_rank(rank), all.value_at_rank(rank));
    }
}

TEST(Histogram, beyond_the_budget_values_are_counted_as_unplaced) {
    BlockBudget budget{2};
    Histogram histogram(&budget);
    histogram.add(1);
    histogram.add(1000);
    histogram.add(1000000);
    EXPECT_EQ(histogram.count(), 2u);
    EXPECT_EQ(histogram.unplaced(), 1u);
    Histogram merged;
    merged.merge(histogram);
    EXPECT_EQ(merged.unplaced(), 1u);
}

} // namespace
} // namespace plumb::stats

// SPDX-License-Identifier: Apache-2.0
#include "stats/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace plumb::stats {
namespace {

TEST(Moments, agree_with_two_pass_arithmetic_in_long_double) {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> values;
    Moments moments;
    // A large offset and a small spread: where single-pass formulas in floating point lose everything.
    for (int i = 0; i < 100000; ++i) {
        values.push_back((std::uint64_t{1} << 50) + random() % 1000);
        moments.add(values.back());
    }
    long double sum = 0;
    for (const std::uint64_t value : values) {
        sum += static_cast<long double>(value);
    }
    const long double mean = sum / 100000;
    long double squares = 0;
    for (const std::uint64_t value : values) {
        squares += (static_cast<long double>(value) - mean) * (static_cast<long double>(value) - mean);
    }
    const auto expected = static_cast<double>(squares / 99999);
    EXPECT_NEAR(moments.variance(), expected, 1e-6 * expected);
    EXPECT_NEAR(moments.mean() / static_cast<double>(mean), 1, 1e-15);
}

TEST(Moments, merging_in_any_order_gives_the_same_bits) {
    std::mt19937_64 random(2);
    std::vector<Moments> parts(7);
    Moments all;
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t value = random() >> 20;
        all.add(value);
        parts[random() % 7].add(value);
    }
    Moments forward;
    Moments backward;
    for (std::size_t i = 0; i < 7; ++i) {
        forward.merge(parts[i]);
        backward.merge(parts[6 - i]);
    }
    for (const Moments& merged : {forward, backward}) {
        EXPECT_EQ(merged.variance(), all.variance());
        EXPECT_EQ(merged.total(), all.total());
        EXPECT_EQ(merged.min(), all.min());
        EXPECT_EQ(merged.max(), all.max());
    }
}

TEST(Moments, one_value_has_no_variance) {
    Moments moments;
    moments.add(42);
    EXPECT_EQ(moments.variance(), 0);
    EXPECT_EQ(moments.min(), 42u);
    EXPECT_EQ(moments.max(), 42u);
}

TEST(Distribution, T6_percentiles_are_there_where_enough_samples_carry_them) {
    DurationStatistics statistics;
    for (std::uint64_t i = 1; i <= 1000; ++i) {
        statistics.add(i * 1000);
    }
    const Distribution distribution = statistics.finish();
    EXPECT_NEAR(distribution.p50_ns.value.value(), 500e3, 5e3);
    EXPECT_NEAR(distribution.p90_ns.value.value(), 900e3, 9e3);
    EXPECT_NEAR(distribution.p99_ns.value.value(), 990e3, 9.9e3);
    EXPECT_FALSE(distribution.p999_ns.value.has_value());
}

TEST(Distribution, F1_a_percentile_of_too_few_samples_is_absent_with_its_reason_never_0) {
    DurationStatistics statistics;
    const auto needs = [&](Figure Distribution::*which, std::uint64_t n) {
        while (statistics.moments().count() < n - 1) {
            statistics.add(1000);
        }
        const Figure before = statistics.finish().*which;
        EXPECT_FALSE(before.value.has_value()) << n;
        EXPECT_NE(before.reason.find("too few samples (n = " + std::to_string(n - 1)), std::string::npos)
            << before.reason;
        EXPECT_NE(before.reason.find("needs " + std::to_string(n) + ")"), std::string::npos) << before.reason;
        statistics.add(1000);
        EXPECT_TRUE((statistics.finish().*which).value.has_value()) << n;
    };
    needs(&Distribution::p50_ns, 20);
    needs(&Distribution::p90_ns, 100);
    needs(&Distribution::p99_ns, 1000);
    needs(&Distribution::p999_ns, 10000);
}

TEST(Distribution, a_percentile_lies_between_minimum_and_maximum) {
    DurationStatistics statistics;
    for (int i = 0; i < 100; ++i) {
        statistics.add(1000003);
    }
    EXPECT_EQ(statistics.finish().p50_ns.value, 1000003);
}

TEST(Distribution, percentiles_are_absent_when_the_memory_limit_was_met) {
    BlockBudget budget{0};
    DurationStatistics statistics(&budget);
    for (int i = 0; i < 100; ++i) {
        statistics.add(1000);
    }
    const Distribution distribution = statistics.finish();
    EXPECT_FALSE(distribution.p50_ns.value.has_value());
    EXPECT_EQ(distribution.total_ns, 100000);
}

} // namespace
} // namespace plumb::stats

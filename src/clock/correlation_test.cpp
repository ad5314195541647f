// SPDX-License-Identifier: Apache-2.0
#include "clock/correlation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace plumb::clock {
namespace {

/// A device at 25 MHz (40 ns a tick) that has been up for a day longer than the host, 24 ppm slow.
constexpr double true_slope = 40.0 * (1.0 + 24e-6);
constexpr std::uint64_t first_tick = 2'160'000'000'000;
constexpr std::int64_t first_ns = 5'000'000'000;

std::int64_t true_host(std::uint64_t tick) {
    return first_ns + std::llround(true_slope * static_cast<double>(tick - first_tick));
}

std::vector<CorrelationPair> pairs_with_noise(int count, std::int64_t noise) {
    std::mt19937_64 random(7);
    std::uniform_int_distribution<std::int64_t> jitter(-noise, noise);
    std::vector<CorrelationPair> pairs;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t tick = first_tick + static_cast<std::uint64_t>(i) * 2'500'000;
        pairs.push_back({{tick}, {true_host(tick) + jitter(random)}, {noise}});
    }
    return pairs;
}

TEST(Correlation, M4_ticks_become_nanoseconds_by_the_slope_of_pairs_and_never_without_two_of_them) {
    const std::vector<CorrelationPair> pairs = pairs_with_noise(2, 0);
    EXPECT_EQ(Correlation::fit({}).error().code, ErrorCode::unavailable);
    const auto one = Correlation::fit(std::span(pairs).first(1));
    ASSERT_FALSE(one.ok()) << "one pair has no slope, and 1:1 is a guess";
    EXPECT_EQ(one.error().code, ErrorCode::unavailable);

    const auto fit = Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_NEAR(fit->ns_per_tick(), true_slope, 1e-6) << "the ratio of absolute stamps would be 0.0023";
    const auto duration = fit->duration({first_tick + 1'000}, {first_tick + 26'000});
    ASSERT_TRUE(duration.ok());
    EXPECT_EQ(duration->value, 1'000'024);
}

TEST(Correlation, M4_a_negative_duration_is_an_error_and_not_zero) {
    const auto fit = Correlation::fit(pairs_with_noise(2, 0));
    ASSERT_TRUE(fit.ok());
    const auto duration = fit->duration({first_tick + 10}, {first_tick + 9});
    ASSERT_FALSE(duration.ok());
    EXPECT_EQ(duration.error().code, ErrorCode::corrupt);
}

TEST(Correlation, the_true_time_lies_within_the_published_bound_inside_and_outside_the_pairs) {
    const auto fit = Correlation::fit(pairs_with_noise(50, 400));
    ASSERT_TRUE(fit.ok());
    EXPECT_TRUE(fit->consistent());
    EXPECT_LE(fit->residual_ns(), 800.0);
    EXPECT_GT(fit->residual_ns(), 0.0);
    for (std::uint64_t tick = first_tick; tick < first_tick + 500'000'000; tick += 10'000'001) {
        const double error = std::abs(static_cast<double>(fit->to_host({tick}).value - true_host(tick)));
        EXPECT_LE(error, fit->bound_ns({tick})) << tick - first_tick;
    }
    EXPECT_GT(fit->bound_ns({first_tick + 500'000'000}), fit->bound_ns({first_tick + 1'000}));
}

TEST(Correlation, a_pair_from_an_interrupted_read_hardly_moves_the_line) {
    std::vector<CorrelationPair> pairs = pairs_with_noise(20, 100);
    pairs[10].host.value += 90'000;
    pairs[10].uncertainty.value = 100'000;
    const auto fit = Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok());
    const std::uint64_t tick = pairs[10].device.value;
    EXPECT_NEAR(static_cast<double>(fit->to_host({tick}).value), static_cast<double>(true_host(tick)), 150.0);
}

TEST(Correlation, commands_that_were_seen_to_begin_and_end_tighten_the_bound) {
    std::vector<CorrelationPair> pairs = pairs_with_noise(8, 0);
    for (CorrelationPair& pair : pairs) {
        pair.host.value += 1'500; // one way of the round trip is longer: every pair is off by the same amount
        pair.uncertainty.value = 3'000;
    }
    const auto loose = Correlation::fit(pairs);
    ASSERT_TRUE(loose.ok());
    EXPECT_GE(loose->bound_ns({first_tick + 5'000'000}), 3'000.0);
    for (const std::uint64_t begin : {first_tick + 100'000, first_tick + 17'000'000}) {
        const std::uint64_t end = begin + 50;
        pairs.push_back(
            pair_from_command({begin}, {end}, {true_host(begin) - 300}, {true_host(end) + 500}, loose->ns_per_tick()));
    }
    EXPECT_EQ(pairs.back().uncertainty.value, 400);
    const auto tight = Correlation::fit(pairs);
    ASSERT_TRUE(tight.ok());
    EXPECT_TRUE(tight->consistent());
    for (const std::uint64_t tick : {first_tick, first_tick + 5'000'000, first_tick + 17'500'000}) {
        EXPECT_LE(tight->bound_ns({tick}), 900.0);
        EXPECT_LE(std::abs(static_cast<double>(tight->to_host({tick}).value - true_host(tick))),
                  tight->bound_ns({tick}));
    }
}

TEST(Correlation, pairs_that_contradict_each_other_are_reported_and_widen_the_bound) {
    std::vector<CorrelationPair> pairs = pairs_with_noise(8, 100);
    for (int i = 0; i < 3; ++i) {
        pairs[static_cast<std::size_t>(i)].host.value += i == 1 ? 0 : 50'000;
    }
    const auto fit = Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok());
    EXPECT_FALSE(fit->consistent());
    EXPECT_GT(fit->residual_ns(), 10'000.0);
}

TEST(Correlation, a_clock_that_stands_still_or_runs_back_is_refused) {
    const std::vector<CorrelationPair> still = {{{5}, {0}, {1}}, {{5}, {1'000}, {1}}};
    EXPECT_EQ(Correlation::fit(still).error().code, ErrorCode::corrupt);
    const std::vector<CorrelationPair> back = {{{1'000}, {0}, {1}}, {{5}, {1'000}, {1}}};
    EXPECT_EQ(Correlation::fit(back).error().code, ErrorCode::corrupt);
}

TEST(Correlation, a_counter_that_wraps_between_the_pairs_is_followed) {
    const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
    const std::vector<CorrelationPair> pairs = {{{top - 999}, {0}, {0}}, {{1'000}, {4'000}, {0}}};
    const auto fit = Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_DOUBLE_EQ(fit->ns_per_tick(), 2.0);
    EXPECT_EQ(fit->to_host({0}).value, 2'000);
}

} // namespace
} // namespace plumb::clock

// SPDX-License-Identifier: Apache-2.0
#include "resolve/tick_conversion.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace plumb::resolve {
namespace {

using recording::ClockPair;

TEST(TickConversion, M4_two_clock_pairs_give_the_slope_whatever_their_absolute_values) {
    // The ratio of the absolute readings is about 3.3; the slope is 0.4.
    const std::vector<ClockPair> pairs = {{0, 3'000'000'000'000, 10'000'000'000'000, 0, 30},
                                          {0, 3'000'002'500'000, 10'000'001'000'000, 0, 30}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_DOUBLE_EQ(line->ns_per_tick(), 0.4);
    EXPECT_EQ(line->to_ns(3'000'000'000'000), 10'000'000'000'000);
    EXPECT_EQ(line->to_ns(3'000'001'000'000), 10'000'000'400'000);
    EXPECT_EQ(line->to_ns(2'999'999'000'000), 9'999'999'600'000);
    EXPECT_EQ(line->residual_ns(), 0);
    EXPECT_EQ(line->pairs(), 2u);
}

TEST(TickConversion, M4_a_clock_without_two_usable_pairs_is_an_error_and_never_one_to_one) {
    const auto least = std::numeric_limits<std::int64_t>::min();
    const auto most = std::numeric_limits<std::int64_t>::max();
    const std::vector<std::vector<ClockPair>> hopeless = {
        {},
        {{0, 100, 100, 0, 0}},
        {{0, 100, 100, 0, 0}, {7, 200, 200, 0, 0}},                 // the second belongs to another clock
        {{0, 100, 100, 0, 0}, {0, 100, 200, 0, 0}},                 // no time passed
        {{0, 100, 200, 0, 0}, {0, 200, 100, 0, 0}},                 // runs backwards
        {{0, 100, 100, 0, 0}, {0, 200, 100, 0, 0}},                 // stands still
        {{0, 0, least, 0, 0}, {0, ~std::uint64_t{0}, most, 0, 0}},  // beyond 64 bits
        {{0, 0, 0, 0, 0}, {0, 1, 4'000'000'000'000'000'000, 0, 0}}, // a tick of a century
    };
    for (const auto& pairs : hopeless) {
        const auto line = fit_ticks(pairs, 0);
        ASSERT_FALSE(line.ok());
        EXPECT_NE(line.error().message.find("Clock 0"), std::string::npos);
    }
}

TEST(TickConversion, M4_every_nanosecond_counts_on_a_clock_that_has_run_for_longer_than_doubles_hold) {
    const std::int64_t since_1970 = 1'764'513'600'000'000'001; // a double holds every 256th
    const auto origin = static_cast<std::uint64_t>(since_1970);
    const std::vector<ClockPair> pairs = {{0, origin, since_1970, 0, 0}, {0, origin + 1'090, since_1970 + 1'090, 0, 0}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_DOUBLE_EQ(line->ns_per_tick(), 1);
    EXPECT_EQ(line->to_ns(origin + 1'000), since_1970 + 1'000);
    EXPECT_LT(line->residual_ns(), 1e-6);
}

TEST(TickConversion, the_residual_is_the_largest_distance_of_a_pair_from_the_line) {
    std::vector<ClockPair> pairs;
    for (std::uint64_t i = 0; i <= 100; ++i) {
        pairs.push_back({0, i * 1'000'000, static_cast<std::int64_t>(i) * 500'000 + (i % 2 == 0 ? 40 : -40), 0, 10});
    }
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_NEAR(line->ns_per_tick(), 0.5, 1e-7);
    EXPECT_NEAR(line->residual_ns(), 40, 3);
}

TEST(TickConversion, a_pair_read_across_an_interrupt_does_not_bend_the_line) {
    std::vector<ClockPair> pairs;
    for (std::uint64_t i = 0; i <= 10; ++i) {
        pairs.push_back({0, i * 1'000'000, static_cast<std::int64_t>(i) * 500'000, 0, 30});
    }
    pairs[5].monotonic_ns += 100'000;
    pairs[5].uncertainty_ticks = 300'000;
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_LT(line->residual_ns(), 1);
    EXPECT_EQ(line->pairs(), 10u);
}

TEST(TickConversion, M4_a_wide_pair_is_believed_where_the_narrow_ones_are_one_and_the_same) {
    const std::vector<ClockPair> pairs = {
        {0, 1000, 1000, 0, 10}, {0, 1000, 1000, 0, 10}, {0, 1'001'000, 1'001'000, 0, 9000}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok()) << line.error().message;
    EXPECT_DOUBLE_EQ(line->ns_per_tick(), 1);
    EXPECT_EQ(line->to_ns(501'000), 501'000);
}

TEST(TickConversion, is_exact_over_hours_and_keeps_order) {
    std::mt19937_64 random(1);
    const std::uint64_t origin = 123'456'789'012'345;
    const std::vector<ClockPair> pairs = {{0, origin, 55, 0, 0}, {0, origin + 2'100'000'000, 55 + 1'000'000'000, 0, 0}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t ticks = random() % (3600ull * 2'100'000'000);
        const long double exact = static_cast<long double>(ticks) / 2.1L + 55;
        ASSERT_NEAR(static_cast<double>(static_cast<long double>(line->to_ns(origin + ticks)) - exact), 0, 1);
        ASSERT_LE(line->to_ns(origin + ticks), line->to_ns(origin + ticks + 1));
    }
}

TEST(TickConversion, intervals_that_share_a_tick_share_a_nanosecond) {
    const std::vector<ClockPair> pairs = {{0, 1000, 0, 0, 0}, {0, 2'700'001'000, 1'000'000'000, 0, 0}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    std::int64_t sum = 0;
    for (std::uint64_t tick = 1000; tick < 100'000; tick += 7) {
        sum += line->to_ns(tick + 7) - line->to_ns(tick);
    }
    EXPECT_EQ(sum, line->to_ns(1000 + 7 * ((100'000 - 1000 + 6) / 7)) - line->to_ns(1000));
}

TEST(TickConversion, M4_a_negative_duration_lies_outside_the_window) {
    const std::vector<ClockPair> pairs = {{0, 1'000'000, 0, 0, 0}, {0, 3'000'000, 1'000'000, 0, 0}};
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_TRUE(line->contains(2'000'000, 0));
    EXPECT_TRUE(line->contains(2'000'000, 1'000'000));
    EXPECT_FALSE(line->contains(2'000'000, static_cast<std::uint64_t>(-1)));
    EXPECT_FALSE(line->contains(2'000'000, static_cast<std::uint64_t>(-2'000'000)));
    EXPECT_FALSE(line->contains(std::uint64_t{1} << 62));
    EXPECT_FALSE(line->contains(~std::uint64_t{0}));
}

TEST(TickConversion, M4_a_clock_that_jumped_has_a_line_on_each_side_and_no_time_between) {
    // 2 ticks a nanosecond, five pairs a second apart; then the counter alone goes on for an hour, and five more.
    constexpr std::uint64_t second = 2'000'000'000, hour = 3600 * second;
    std::vector<ClockPair> pairs;
    for (std::uint64_t i = 0; i < 10; ++i) {
        pairs.push_back({0, i * second + (i < 5 ? 0 : hour), static_cast<std::int64_t>(i) * 1'000'000'000, 0, 30});
    }
    const auto line = fit_ticks(pairs, 0);
    ASSERT_TRUE(line.ok());
    EXPECT_FALSE(line->jumped().empty());
    EXPECT_EQ(line->pairs(), 10u);
    EXPECT_LT(line->residual_ns(), 1);
    EXPECT_EQ(line->to_ns(3 * second), 3'000'000'000);
    EXPECT_EQ(line->to_ns(hour + 8 * second), 8'000'000'000);
    EXPECT_TRUE(line->contains(3 * second, second));
    EXPECT_TRUE(line->contains(hour + 5 * second, second));
    EXPECT_TRUE(line->contains(hour + 60 * second));
    EXPECT_FALSE(line->contains(4 * second + 1));
    EXPECT_FALSE(line->contains(hour + 5 * second - 1));
    EXPECT_FALSE(line->contains(4 * second - 1, second));
    EXPECT_FALSE(line->contains(4 * second - 1, hour + 2 * second)); // from one side to the other
}

} // namespace
} // namespace plumb::resolve

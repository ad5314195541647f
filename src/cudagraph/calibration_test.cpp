// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cudagraph/sampling_rate.hpp"

namespace plumb::cudagraph {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

TEST(Calibration, readings_keep_the_last_ones_only) {
    Readings readings(4);
    EXPECT_TRUE(std::isnan(readings.median()));
    for (const double value : {1e9, 1e9, 10.0, 20.0, 30.0, 40.0}) {
        readings.add(value);
    }
    EXPECT_EQ(readings.count(), 4u);
    EXPECT_EQ(readings.median(), 25.0);
}

TEST(Calibration, an_outlier_does_not_move_the_cost_of_a_stamp) {
    Readings pairs;
    for (int i = 0; i < 20; ++i) {
        pairs.add(800);
    }
    pairs.add(90'000);
    EXPECT_NEAR(cost_of_a_stamp(pairs, unknown, 32), 800, 1);
}

TEST(Calibration, a_coarse_tick_is_evened_out_by_many_readings_and_by_the_finer_calibration) {
    Readings pairs(96);
    for (int i = 0; i < 96; ++i) {
        pairs.add(i % 32 < 25 ? 1'024 : 0); // 800 ns on a clock of 1,024
    }
    EXPECT_NEAR(cost_of_a_stamp(pairs, unknown, 1'024), 800, 10);
    EXPECT_EQ(cost_of_a_stamp(pairs, 790, 1'024), 790);
}

TEST(Calibration, what_stamps_cost_in_the_replays_themselves_goes_before_a_calibration_that_disagrees) {
    Readings pairs;
    for (int i = 0; i < 20; ++i) {
        pairs.add(2'000 + i % 3);
    }
    EXPECT_NEAR(cost_of_a_stamp(pairs, 800, 32), 2'001, 1);
}

TEST(Calibration, closure_is_of_what_lies_between_the_first_node_and_the_last) {
    ClosureBook book(2);
    Closure closure;
    for (int i = 0; i < 3; ++i) {
        book.add_part(0, 1'100);
        book.add_plain(7'000, true); // by outer events, that saw 5'000 of launch
        book.add_part(1, 1'100);
        EXPECT_FALSE(book.closure(100, closure));
    }
    for (int i = 0; i < 3; ++i) {
        book.add_around(5'000, true);
    }
    ASSERT_TRUE(book.closure(100, closure));
    EXPECT_DOUBLE_EQ(closure.raw, 0.1);
    EXPECT_DOUBLE_EQ(closure.calibrated, 0.0);
}

TEST(SamplingRate, stamps_take_at_most_a_percent_of_all_steps) {
    SamplingRate rate(0);
    EXPECT_EQ(rate.every(), 64u);
    rate.learn(340, unknown, 3e6); // nothing known: nothing changes
    EXPECT_EQ(rate.every(), 64u);
    rate.learn(340, 2'000, 3e6); // 680 us in 3 ms: 22.7 steps of 1 %
    EXPECT_EQ(rate.every(), 32u);
    rate.learn(10, 1, 3e6);
    EXPECT_EQ(rate.every(), SamplingRate::most_often);
    rate.learn(1'000'000, 1e9, 1);
    EXPECT_EQ(rate.every(), SamplingRate::rarest);
}

TEST(SamplingRate, a_fixed_rate_bounds_the_stamps_instead) {
    SamplingRate rate(16);
    rate.learn(340, 2'000, 3e6);
    EXPECT_EQ(rate.every(), 16u);
    EXPECT_EQ(SamplingRate::most_stamps(16, 2'000, 3e6), 240u);
    EXPECT_GT(SamplingRate::most_stamps(0, 2'000, 3e6), 1'000'000u);
    EXPECT_GT(SamplingRate::most_stamps(16, unknown, 3e6), 1'000'000u);
}

} // namespace
} // namespace plumb::cudagraph

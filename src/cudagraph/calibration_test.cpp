// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
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

constexpr Readings::Estimate not_known = {unknown, 0};

Readings readings_of(std::initializer_list<double> values) {
    Readings readings;
    for (const double value : values) {
        readings.add(value);
    }
    return readings;
}

TEST(Calibration, the_cost_of_a_site_is_not_known_where_its_readings_lie_too_far_apart) {
    const Readings close = readings_of({1'700, 1'732, 1'668, 1'700, 1'700, 1'732, 1'700, 1'668});
    EXPECT_NEAR(cost_of_a_site(close, 1'700, 32, not_known).ns, 1'700, 10);
    EXPECT_LT(cost_of_a_site(close, 1'700, 32, {1'700, 30}).error, 100);
    EXPECT_NEAR(cost_of_a_site(close, 1'700, 32, not_known).error, 850, 5) << "no replay has confirmed it";
    const Readings apart = readings_of({1'700, 9'000, 1'700, 30'000, 4'000, 1'700, 12'000, 20'000});
    const SiteCost cost = cost_of_a_site(apart, 1'700, 32, not_known);
    EXPECT_TRUE(std::isnan(cost.ns));
    EXPECT_GT(cost.error, 9'000) << "samples hold all of it";
}

TEST(Calibration, replays_go_before_pairs_where_they_differ_by_more_than_three_standard_errors) {
    const Readings pairs = readings_of({800, 800, 800, 800, 800, 800, 800, 800});
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {1'400, 50}).ns, 1'400);
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {1'400, 50}).error, 150);
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {1'400, 50}).pair, 800);
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {900, 40}).ns, 800) << "that may be chance";
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {1'400, 100}).ns, 800) << "less sure than a fifth of it";
    EXPECT_EQ(cost_of_a_site(pairs, 800, 32, {1'400, 100}).error, 400);
}

TEST(SiteBook, compares_instrumented_replays_and_frames_with_their_plain_neighbours) {
    SiteBook book;
    book.begin_turn(0, 10);
    std::uint64_t number = 1;
    const auto replay = [&](double drift, const auto& add) { // plain ones of 5'000, 700 of them around the inside
        book.add_plain(number++, 5'000 + drift, true);
        add(number++, drift);
        book.add_plain(number++, 5'000 + drift, true);
    };
    EXPECT_FALSE(book.wants_frame());
    for (int i = 0; i < 8; ++i) {
        replay(100 * i, [&](std::uint64_t at, double drift) { book.add_stamped(at, 4'300 + 11 * 80 + drift, true); });
    }
    EXPECT_TRUE(book.wants_frame());
    EXPECT_TRUE(std::isnan(book.site().mean));
    for (int i = 0; i < 3; ++i) {
        replay(300 * i, [&](std::uint64_t at, double drift) { book.add_framed(at, 4'300 + 80 + drift, true); });
    }
    EXPECT_FALSE(book.wants_frame());
    EXPECT_NEAR(book.site().mean, 80, 1e-9);
    book.add_plain(number, 5'000, true);
    EXPECT_FALSE(book.stands_out(number + 1, 4'300 + 11 * 80, true, 10));
    EXPECT_TRUE(book.stands_out(number + 1, 4'300 + 11 * 80 + 5'000, true, 10));
}

TEST(TimerTick, is_what_readings_are_multiples_of) {
    TimerTick tick;
    EXPECT_TRUE(std::isnan(tick.ns()));
    for (const std::uint64_t reading : {1'000'000U, 1'000'032U, 1'000'128U, 1'000'224U}) {
        tick.add(reading);
    }
    EXPECT_EQ(tick.ns(), 32);
    EXPECT_EQ(tick.differences(), 3u);
}

TEST(TimerTick, of_a_clock_that_stands_between_two_stamps_is_their_shortest_step) {
    TimerTick tick;
    for (const std::uint64_t reading : {1'000'000U, 1'000'997U, 1'062'002U, 1'062'002U}) { // roughly 1'000, as some are
        tick.add(reading);
    }
    EXPECT_EQ(tick.ns(), 1);
    tick.add_step(1'000'000, 1'000'997);
    EXPECT_EQ(tick.ns(), 1);
    tick.add_step(1'062'002, 1'062'002);
    EXPECT_EQ(tick.ns(), 997);
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

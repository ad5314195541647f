// SPDX-License-Identifier: Apache-2.0
#include "ranks/clock_band.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plumb::ranks {
namespace {

TEST(ClockBand, without_bounds_on_both_sides_nothing_is_known) {
    EXPECT_EQ(ClockBand::of({}, {}).state(), ClockBand::State::open);
    EXPECT_EQ(ClockBand::of({{0, 5}}, {}).state(), ClockBand::State::open);
    EXPECT_EQ(ClockBand::of({}, {{0, 5}}).state(), ClockBand::State::open);
}

TEST(ClockBand, two_bounds_at_one_moment_are_the_band_there) {
    const ClockBand band = ClockBand::of({{1000, 70}}, {{1000, 50}});
    ASSERT_TRUE(band.found());
    EXPECT_DOUBLE_EQ(band.at(1000).least, 50);
    EXPECT_DOUBLE_EQ(band.at(1000).most, 70);
    // A second later the drift, of which nothing is known, has widened it.
    EXPECT_NEAR(band.at(1000 + 1'000'000'000).width(), 20 + 2 * most_drift * 1e9, 1);
}

TEST(ClockBand, bounds_that_no_line_fits_contradict_by_what_they_miss_each_other) {
    const ClockBand band = ClockBand::of({{0, 10}, {1000, 10}}, {{0, 30}, {1000, 30}});
    EXPECT_EQ(band.state(), ClockBand::State::empty);
    EXPECT_NEAR(band.contradiction(), 20, 2 * most_drift * 1000);
    // A drift of 0.002 would fit; no clock has it.
    EXPECT_EQ(ClockBand::of({{0, 1}, {1'000'000, 2001}}, {{0, -1}, {1'000'000, 1999}}).state(),
              ClockBand::State::empty);
}

TEST(ClockBand, it_is_the_whole_polygon_and_nothing_else) {
    // Against a search over a fine grid of drifts: for each, the offsets that all bounds allow.
    std::mt19937_64 random(7);
    const auto up_to = [&random](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (int trial = 0; trial < 40; ++trial) {
        const double drift = (static_cast<double>(up_to(2001)) - 1000) * 0.8e-6;
        const std::int64_t offset = up_to(2'000'000) - 1'000'000;
        std::vector<Bound> upper, lower;
        const auto line = [&](std::int64_t at) {
            return offset + static_cast<std::int64_t>(std::llround(drift * static_cast<double>(at)));
        };
        for (int i = 0; i < 30; ++i) {
            const std::int64_t a = up_to(100'000'000);
            const std::int64_t b = up_to(100'000'000);
            upper.push_back({a, line(a) + 1 + up_to(50'000)});
            lower.push_back({b, line(b) - 1 - up_to(50'000)});
        }
        const ClockBand band = ClockBand::of(upper, lower);
        ASSERT_TRUE(band.found());
        for (const std::int64_t moment :
             {std::int64_t{-50'000'000}, std::int64_t{0}, std::int64_t{40'000'000}, std::int64_t{150'000'000}}) {
            double least = 1e18, most = -1e18;
            constexpr int steps = 4000;
            for (int i = 0; i <= steps; ++i) {
                const double slope = -most_drift + 2 * most_drift * i / steps;
                double high = 1e18, low = -1e18; // of the correction at time 0
                for (const Bound& bound : upper) {
                    high = std::min(high, static_cast<double>(bound.limit) - slope * static_cast<double>(bound.at));
                }
                for (const Bound& bound : lower) {
                    low = std::max(low, static_cast<double>(bound.limit) - slope * static_cast<double>(bound.at));
                }
                if (low <= high) {
                    least = std::min(least, low + slope * static_cast<double>(moment));
                    most = std::max(most, high + slope * static_cast<double>(moment));
                }
            }
            const double grid = 2 * most_drift / steps * 250e6; // what a step of the grid changes at most
            EXPECT_NEAR(band.at(moment).least, least, grid) << trial;
            EXPECT_NEAR(band.at(moment).most, most, grid) << trial;
            EXPECT_LE(band.at(moment).least, static_cast<double>(line(moment)) + 1);
            EXPECT_GE(band.at(moment).most, static_cast<double>(line(moment)) - 1);
        }
    }
}

TEST(ClockBand, clocks_that_began_years_apart_lose_no_microsecond) {
    const std::int64_t year = std::int64_t{365} * 24 * 3600 * 1'000'000'000;
    const ClockBand band = ClockBand::of({{year, -year + 100}}, {{year, -year - 100}});
    ASSERT_TRUE(band.found());
    EXPECT_NEAR(band.at(year).width(), 200, 20);
}

} // namespace
} // namespace plumb::ranks

// SPDX-License-Identifier: Apache-2.0
#include "recording/clock_stretches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace plumb::recording {
namespace {

constexpr double second = 1e9;

/// Pairs of a counter at 3 ticks a nanosecond, read in brackets of 90 ticks, and of what a test does to both clocks.
class PairedClocks {
  public:
    void go(double ns, double rate = 1) { // of the system's clock against the counter's
        ticks_ += 3 * ns;
        ns_ += rate * ns;
    }
    void counter_goes(double ns) { ticks_ += 3 * ns; }
    void pair(std::uint64_t bracket = 90) {
        pairs_.push_back({0, static_cast<std::uint64_t>(ticks_), static_cast<std::int64_t>(ns_), 0, bracket});
    }
    void seconds(int count, double rate = 1) {
        for (int i = 0; i < count; ++i) {
            go(second, rate);
            pair();
        }
    }
    [[nodiscard]] ClockStretches stretches() const { return stretches_of(pairs_, 0); }

  private:
    double ticks_ = 1e13;
    double ns_ = 5e12;
    std::vector<ClockPair> pairs_;
};

TEST(ClockStretches, M4_a_jump_parts_the_pairs_before_it_from_those_behind) {
    for (const double jump : {0.02 * second, 0.3 * second, 2 * second, 3600 * second}) {
        PairedClocks clocks;
        clocks.pair();
        clocks.seconds(2);
        clocks.counter_goes(jump);
        clocks.seconds(3);
        const ClockStretches found = clocks.stretches();
        ASSERT_EQ(found.all.size(), 2u) << jump;
        EXPECT_EQ(found.all[0].pairs.size(), 3u);
        EXPECT_EQ(found.all[1].pairs.size(), 3u);
        EXPECT_FALSE(found.all[0].unsure_at_begin);
        EXPECT_EQ(found.all[0].unsure_at_end, 0u);
        EXPECT_EQ(found.all[1].unsure_at_begin, 0u);
        EXPECT_FALSE(found.all[1].unsure_at_end);
        EXPECT_NE(found.jumped.find("between 2.0 and 3.0 s"), std::string::npos) << found.jumped;
        EXPECT_NE(found.jumped.find("suspended"), std::string::npos) << found.jumped;
    }
}

TEST(ClockStretches, M4_ticks_that_a_counter_may_have_given_twice_are_unsure) {
    PairedClocks clocks;
    clocks.pair();
    clocks.seconds(3);
    clocks.counter_goes(-0.25 * second);
    clocks.seconds(3);
    const ClockStretches found = clocks.stretches();
    ASSERT_EQ(found.all.size(), 2u);
    EXPECT_NEAR(static_cast<double>(found.all[0].unsure_at_end.value_or(0)), 0.75 * second, 1e3);
    EXPECT_EQ(found.all[0].unsure_at_end, found.all[1].unsure_at_begin);
}

TEST(ClockStretches, M4_a_counter_that_was_set_back_or_has_no_usual_rate_is_of_no_use) {
    PairedClocks back;
    back.pair();
    back.seconds(3);
    back.counter_goes(-1800 * second);
    back.seconds(3);
    EXPECT_TRUE(back.stretches().all.empty());
    EXPECT_NE(back.stretches().jumped.find("set back"), std::string::npos);

    PairedClocks few; // either of its two seconds may be the wrong one
    few.pair();
    few.seconds(1);
    few.counter_goes(0.3 * second);
    few.go(0.4 * second);
    few.pair();
    EXPECT_TRUE(few.stretches().all.empty());
    EXPECT_FALSE(few.stretches().jumped.empty());
}

TEST(ClockStretches, corrections_of_the_time_temperature_and_interrupted_readings_are_no_jumps) {
    std::mt19937_64 random(7);
    PairedClocks clocks;
    clocks.pair();
    for (int i = 0; i < 3000; ++i) {
        const double slewed = i < 1000 ? 500e-6 : i < 2000 ? -500e-6 : 0;
        const double warm = 20e-6 * std::sin(i / 200.0);
        clocks.go(random() % 5 == 0 ? 1e5 : second, 1 + slewed + warm); // some are read for a flush
        if (random() % 50 == 0) {
            const double interrupted = 3e6; // the counter is read again after it
            clocks.go(interrupted / 2);
            clocks.pair(static_cast<std::uint64_t>(3 * interrupted));
            clocks.go(interrupted / 2);
        } else {
            clocks.pair(90 + random() % 60);
        }
    }
    const ClockStretches found = clocks.stretches();
    EXPECT_EQ(found.all.size(), 1u);
    EXPECT_EQ(found.jumped, "");
}

} // namespace
} // namespace plumb::recording

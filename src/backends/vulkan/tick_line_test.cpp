// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/tick_line.hpp"

#include <gtest/gtest.h>

namespace plumb::backends::vulkan {
namespace {

/// A device whose tick is stated as 40 ns and is 24 ppm longer, with 36 valid bits: it wraps every 45.8 minutes.
constexpr double stated_ns = 40.0;
constexpr double true_ns = stated_ns * (1 + 24e-6);
constexpr std::uint64_t mask = (std::uint64_t{1} << 36) - 1;

std::uint64_t clock_at(double ns) { return 60'000'000'000 + static_cast<std::uint64_t>(ns / true_ns); }
DeviceClockPair pair_at(TickLine& line, std::int64_t ns) {
    return {line.unwrap(clock_at(static_cast<double>(ns)) & mask, ns), ns, ns, 2};
}

TEST(TickLine, a_clock_that_wraps_gives_ticks_that_never_do) {
    TickLine line(36, stated_ns);
    line.add(pair_at(line, 0));
    std::uint64_t last = 0;
    const std::int64_t minute = 60'000'000'000;
    for (std::int64_t at = 1; at < 300; ++at) { // five hours, six wraps
        const DeviceClockPair pair = pair_at(line, at * minute);
        EXPECT_GT(pair.ticks, last);
        EXPECT_NEAR(static_cast<double>(pair.ticks - last) * true_ns,
                    at == 1 ? static_cast<double>(pair.ticks) * true_ns : 60e9, 100.0);
        last = pair.ticks;
        line.add(pair);
    }
}

TEST(TickLine, a_gap_of_many_wraps_is_bridged_by_the_hosts_clock) {
    TickLine line(36, stated_ns);
    line.add(pair_at(line, 0));
    const std::int64_t day = 86'400'000'000'000;
    const DeviceClockPair before = pair_at(line, 1'000'000'000);
    line.add(before);
    const DeviceClockPair after = pair_at(line, day); // 31 wraps later
    EXPECT_NEAR(static_cast<double>(after.ticks - before.ticks) * true_ns, static_cast<double>(day) - 1e9, 100.0);
}

TEST(TickLine, a_stamp_from_before_the_last_pair_and_one_from_just_after_it_have_their_places) {
    TickLine line(32, 1.0); // wraps every 4.3 s
    const std::int64_t now = 10'000'000'000;
    line.add({line.unwrap(static_cast<std::uint64_t>(now), now), now, now, 1});
    const std::uint64_t here = line.unwrap(static_cast<std::uint64_t>(now), now);
    EXPECT_EQ(here - line.unwrap(static_cast<std::uint64_t>(now - 3'000'000'000), now), 3'000'000'000u);
    EXPECT_EQ(line.unwrap(static_cast<std::uint64_t>(now + 500'000'000), now) - here, 500'000'000u);
}

TEST(TickLine, M4_durations_use_the_slope_of_pairs_and_not_the_stated_period) {
    TickLine line(36, stated_ns);
    line.add(pair_at(line, 0));
    line.add(pair_at(line, 1'000'000'000));
    const auto second = line.duration(static_cast<std::uint64_t>(1e9 / true_ns));
    ASSERT_TRUE(second.ok());
    EXPECT_NEAR(second->nanoseconds, 1e9, 200.0) << "the stated period is 24 us off";
    EXPECT_LT(second->uncertainty, 1'000.0);
}

TEST(TickLine, M4_before_the_second_pair_there_is_no_duration) {
    TickLine line(64, 1.0);
    EXPECT_EQ(line.duration(100).error().code, ErrorCode::unavailable);
    line.add({1'000, 1'000, 1'000, 1});
    EXPECT_EQ(line.duration(100).error().code, ErrorCode::unavailable);
}

TEST(TickLine, M4_a_negative_difference_stays_negative_at_every_width) {
    for (const unsigned bits : {32u, 36u, 40u, 64u}) {
        TickLine line(bits, 1.0);
        EXPECT_EQ(line.difference(5, 3), -2);
        EXPECT_EQ(line.difference(line.mask() - 1, 3), 5) << "over the wrap";
    }
}

} // namespace
} // namespace plumb::backends::vulkan

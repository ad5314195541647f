// SPDX-License-Identifier: Apache-2.0
// Contradictions that show between two clocks, and such that show only over several.
#include "ranks/consistency.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace plumb::ranks {
namespace {

using Domains = std::vector<std::uint32_t>;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t period = 100 * us;
constexpr int times = 200;

/// Clocks that all show true time, and meet the first one in messages that take `wide`.
class Meetings {
  public:
    explicit Meetings(std::uint32_t clocks, std::int64_t wide = 80 * us) : clocks_(clocks) {
        for (std::uint32_t r = 1; r < clocks; ++r) {
            message(0, r, wide);
            message(r, 0, wide);
        }
    }
    /// `times` messages; each ends so much after it began, on clocks that are ahead by what `ahead` says.
    void message(std::uint32_t from, std::uint32_t to, std::int64_t takes, std::int64_t ahead = 0) {
        for (int k = 0; k < times; ++k) {
            joints.seen.push_back({from, k * period, std::numeric_limits<std::int64_t>::max(), true, false});
            joints.seen.push_back(
                {to, std::numeric_limits<std::int64_t>::min(), k * period + takes + ahead, false, true});
            joints.close();
        }
    }
    void both_ways(std::uint32_t a, std::uint32_t b, std::int64_t takes, std::int64_t b_ahead = 0) {
        message(a, b, takes, b_ahead);
        message(b, a, takes, -b_ahead);
    }
    [[nodiscard]] ConsistentClocks solve() const { return find_consistent(joints, clocks_); }

    SeenJoints joints;

  private:
    std::uint32_t clocks_;
};

TEST(Consistency, of_clocks_that_fit_is_proven) {
    Meetings meetings(5);
    meetings.both_ways(1, 2, 3 * us);
    meetings.both_ways(2, 3, 3 * us);
    const ConsistentClocks found = meetings.solve();
    EXPECT_TRUE(found.contradictions.empty());
    EXPECT_TRUE(found.proven);
    for (const ClockBand& band : found.bands) {
        EXPECT_TRUE(band.found());
    }
}

TEST(Consistency, three_clocks_contradict_where_any_two_of_them_fit) {
    // 1 <= 2 - 1 us, 2 <= 3 - 1 us, 3 <= 1 - 1 us: any two of these can be, all three cannot. The first clock's bounds are 80 us wide.
    for (const std::uint32_t left_out : {1U, 2U, 3U}) {
        Meetings two(5);
        for (std::uint32_t r = 1; r < 4; ++r) {
            if (r != left_out) {
                two.message(r, r % 3 + 1, -1 * us);
            }
        }
        EXPECT_TRUE(two.solve().contradictions.empty());
        EXPECT_TRUE(two.solve().proven);
    }
    Meetings three(5);
    for (std::uint32_t r = 1; r < 4; ++r) {
        three.message(r, r % 3 + 1, -1 * us);
    }
    const ConsistentClocks found = three.solve();
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_EQ(found.contradictions[0].domains, (Domains{1, 2, 3})) << "none of them can be singled out";
    EXPECT_EQ(found.contradictions[0].cause, Contradiction::Cause::unclear);
    EXPECT_NEAR(found.contradictions[0].miss_ns, 3e3, 100);
    EXPECT_EQ(found.bands[2].state(), ClockBand::State::empty);
    EXPECT_TRUE(found.bands[4].found()) << "who has no part in it is answered";
    EXPECT_TRUE(found.proven) << "what is left fits";
}

TEST(Consistency, two_clocks_contradict_each_other_where_the_first_one_tells_them_nothing) {
    Meetings meetings(4);
    meetings.message(1, 2, -3 * us);
    meetings.message(2, 1, 2 * us);
    const ConsistentClocks found = meetings.solve();
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_EQ(found.contradictions[0].domains, (Domains{1, 2}));
    EXPECT_TRUE(found.bands[3].found());
}

TEST(Consistency, the_one_clock_without_which_all_others_fit_is_named_alone) {
    // Clock 3 meets 1, 2 and 4 as if it were ahead by 20 us, 0 us and -20 us; they agree with each other to 2 us.
    Meetings meetings(6);
    meetings.both_ways(1, 2, 1 * us);
    meetings.both_ways(2, 4, 1 * us);
    meetings.both_ways(1, 4, 1 * us);
    meetings.both_ways(1, 3, 1 * us, 20 * us);
    meetings.both_ways(2, 3, 1 * us);
    meetings.both_ways(4, 3, 1 * us, -20 * us);
    const ConsistentClocks found = meetings.solve();
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_EQ(found.contradictions[0].domains, (Domains{3}));
    EXPECT_EQ(found.contradictions[0].cause, Contradiction::Cause::alone);
    EXPECT_TRUE(found.proven);
    for (const std::uint32_t r : {1U, 2U, 4U, 5U}) {
        ASSERT_TRUE(found.bands[r].found()) << r;
        const ClockSpan span = found.bands[r].at(times * period / 2);
        EXPECT_LE(span.least, 0) << "what a clock that contradicts said of " << r << " is not in its band";
        EXPECT_GE(span.most, 0);
        EXPECT_GT(span.width(), 140e3);
    }
}

TEST(Consistency, a_clock_that_contradicts_the_first_one_is_named_and_bounds_no_other) {
    Meetings meetings(4);
    meetings.message(0, 2, -200 * us);
    meetings.both_ways(2, 3, 1 * us, 5 * us);
    const ConsistentClocks found = meetings.solve();
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_EQ(found.contradictions[0].domains, (Domains{2}));
    EXPECT_EQ(found.contradictions[0].cause, Contradiction::Cause::itself);
    EXPECT_NEAR(found.contradictions[0].miss_ns, 120e3, 1e3);
    EXPECT_GT(found.bands[3].at(0).width(), 140e3);
}

TEST(Consistency, what_nothing_bounds_stays_open_and_contradicts_nothing) {
    Meetings meetings(2);
    const ConsistentClocks found = find_consistent(meetings.joints, 3);
    EXPECT_EQ(found.bands[2].state(), ClockBand::State::open);
    EXPECT_TRUE(found.proven);
}

} // namespace
} // namespace plumb::ranks

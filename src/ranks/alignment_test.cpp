// SPDX-License-Identifier: Apache-2.0
// Clocks in virtual time, against the truth.
#include "ranks/alignment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ranks/planted_ranks_testing.hpp"
#include "ranks/waits.hpp"

namespace plumb::ranks {
namespace {

using testing::plant;
using testing::Planted;
using testing::RankPlan;

/// How often the true correction lies outside of the band, at the begin of each collective.
int misses(const Planted& planted, const RankAlignment& alignment) {
    int count = 0;
    for (std::uint32_t r = 0; r < planted.job.ranks.size(); ++r) {
        for (const RankEvent& event : planted.job.ranks[r].events.events) {
            const ClockSpan found = alignment.clocks[r].in_job(event.begin);
            const double truth = static_cast<double>(event.begin) + planted.correction(r, event.begin);
            count += truth < found.least - 1 || truth > found.most + 1 ? 1 : 0;
        }
    }
    return count;
}

double widest(const Planted& planted, const RankAlignment& alignment) {
    double width = 0;
    for (std::uint32_t r = 0; r < planted.job.ranks.size(); ++r) {
        const RankEvents& events = planted.job.ranks[r].events;
        width = std::max({width, alignment.clocks[r].in_job(events.first_ns).width(),
                          alignment.clocks[r].in_job(events.last_ns).width()});
    }
    return width;
}

double middle_width(const Planted& planted, const RankAlignment& alignment) {
    double width = 0;
    for (std::uint32_t r = 0; r < planted.job.ranks.size(); ++r) {
        const RankEvents& events = planted.job.ranks[r].events;
        width = std::max(width, alignment.clocks[r].in_job((events.first_ns + events.last_ns) / 2).width());
    }
    return width;
}

TEST(RankAlignment, M4_the_true_offset_lies_inside_the_band_always_and_the_band_is_narrow) {
    for (const std::uint32_t ranks : {2U, 8U, 64U}) {
        for (std::uint64_t seed = 1; seed <= (ranks == 2 ? 10 : 20); ++seed) {
            RankPlan plan;
            plan.ranks = ranks;
            plan.seed = seed;
            plan.late = seed % 2 == 0 ? std::optional<std::uint32_t>(seed % ranks) : std::nullopt;
            const Planted planted = plant(plan);
            Joints joints = match(planted.job);
            ASSERT_EQ(joints.joints.size(), plan.collectives);
            const RankAlignment found = align(planted.job, joints);
            for (const RankClock& clock : found.clocks) {
                ASSERT_TRUE(clock.found());
            }
            EXPECT_EQ(misses(planted, found), 0) << ranks << " ranks, seed " << seed;
            EXPECT_TRUE(found.notes.empty()) << found.notes[0];
            // Of 64 ranks each is the last in 16 collectives only, and in 8 where another one is late in half of them: at the ends of
            // a run little is left to bound its drift. What is printed is half of it (FittingLines: there is no narrower one).
            EXPECT_LE(widest(planted, found) / 2, ranks == 64 ? 5e3 : 2.5e3) << ranks << " ranks, seed " << seed;
            EXPECT_LE(middle_width(planted, found), ranks == 64 ? 5.5e3 : 5e3) << ranks << " ranks, seed " << seed;
        }
    }
}

TEST(RankAlignment, a_longer_recording_has_a_narrower_band) {
    for (std::uint64_t seed = 2; seed <= 20; seed += 2) {
        RankPlan plan;
        plan.ranks = 64;
        plan.collectives = 4000;
        plan.seed = seed;
        plan.late = static_cast<std::uint32_t>(seed);
        const Planted planted = plant(plan);
        Joints joints = match(planted.job);
        const RankAlignment found = align(planted.job, joints);
        EXPECT_LE(widest(planted, found) / 2, 3.2e3) << "seed " << seed;
        EXPECT_LE(middle_width(planted, found), 3.3e3) << "seed " << seed;
    }
}

TEST(RankAlignment, M4_the_error_of_begins_and_ends_is_in_the_band) {
    Planted planted = plant({});
    Joints joints = match(planted.job);
    const double exact = middle_width(planted, align(planted.job, joints));
    for (Rank& rank : planted.job.ranks) {
        for (RankEvent& event : rank.events.events) {
            event.error += 400;
        }
    }
    const RankAlignment found = align(planted.job, joints);
    EXPECT_GT(middle_width(planted, found), exact + 1500) << "each bound has a begin and an end";
    EXPECT_EQ(misses(planted, found), 0);
}

TEST(RankAlignment, waiting_and_moving_contain_the_truth) {
    RankPlan plan;
    plan.late = 3;
    const Planted planted = plant(plan);
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    std::uint32_t k = 0;
    for_each_wait(planted.job, joints, found, [&](const JointWait& wait) {
        for (const PartWait& part : wait.parts) {
            const std::uint32_t r = part.part.rank;
            const double waited = planted.last_begin[k] - planted.begin[r][k];
            const double moved = planted.end[r][k] - planted.last_begin[k];
            // In ticks of its own clock: the drift is 50 ppm of 100 us at most.
            EXPECT_LE(part.wait.least, waited + 10);
            EXPECT_GE(part.wait.most, waited - 10);
            EXPECT_LE(part.move.least, moved + 10);
            EXPECT_GE(part.move.most, moved - 10);
            EXPECT_TRUE(!part.last || waited == 0);
            EXPECT_TRUE(part.may_be_last || waited > 0);
        }
        ++k;
    });
    EXPECT_EQ(k, plan.collectives);
}

TEST(RankAlignment, a_clock_that_was_set_in_between_contradicts_and_is_not_guessed) {
    Planted planted = plant({});
    RankEvents& events = planted.job.ranks[2].events;
    for (std::size_t i = events.events.size() / 2; i < events.events.size(); ++i) {
        events.events[i].begin += 1'000'000;
        events.events[i].end += 1'000'000;
    }
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    EXPECT_EQ(found.clocks[2].source, ClockSource::contradicting);
    EXPECT_FALSE(found.clocks[2].found());
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_NE(found.contradictions[0].find("rank 2"), std::string::npos);
    EXPECT_EQ(found.clocks[3].source, ClockSource::bounds) << "the others are answered";
}

TEST(RankAlignment, M4_three_clocks_that_fit_two_by_two_and_not_together_contradict) {
    // Ranks 1, 2 and 3 hand on in a circle, and each message ends 1 us before it was sent: each of these clocks may be behind the
    // next one, but not all of them. All-reduces of 200 us bound them against rank 0, and leave room for much more.
    RankPlan plan;
    plan.ranks = 5;
    plan.least_move_ns = 200e3;
    Planted planted = plant(plan);
    Joints joints = match(planted.job);
    const RankAlignment before = align(planted.job, joints);
    EXPECT_TRUE(before.contradictions.empty());
    joints.streams.push_back({"send", "pp", 0, JointKind::message});
    for (std::uint32_t r = 1; r < 4; ++r) {
        planted.job.ranks[r].events.names.emplace_back("send");
    }
    const auto stream = static_cast<std::uint32_t>(joints.streams.size() - 1);
    const auto put = [&](std::uint32_t r, double truth) {
        const auto own = static_cast<std::int64_t>(std::llround(truth * (1 + planted.drift[r]) + planted.offset[r]));
        std::vector<RankEvent>& events = planted.job.ranks[r].events.events;
        events.push_back({own, own, not_said, not_said, 1, 1, 0, 0, Phase::none});
        joints.parts.push_back({r, static_cast<std::uint32_t>(events.size() - 1)});
    };
    for (std::uint32_t k = 0; k < plan.collectives; ++k) {
        for (std::uint32_t r = 1; r < 4; ++r) {
            joints.joints.push_back({stream, static_cast<std::uint32_t>(joints.parts.size()), 2, true, false});
            put(r, planted.begin[r][k]);
            put(r % 3 + 1, planted.begin[r][k] - 1e3);
        }
    }
    const RankAlignment found = align(planted.job, joints);
    ASSERT_EQ(found.contradictions.size(), 1U);
    EXPECT_EQ(found.contradictions[0].substr(0, 54), "ranks 1, 2 and 3: their clocks contradict each other, ");
    for (std::uint32_t r = 1; r < 4; ++r) {
        EXPECT_EQ(found.clocks[r].source, ClockSource::contradicting);
    }
    EXPECT_EQ(found.clocks[4].source, ClockSource::bounds) << "the others are answered";
    EXPECT_TRUE(found.notes.empty()) << "and proven to fit";
}

TEST(RankAlignment, one_boot_and_time_namespace_are_one_clock) {
    RankPlan plan;
    plan.most_offset_ns = 0;
    plan.most_drift = 0;
    Planted planted = plant(plan);
    for (Rank& rank : planted.job.ranks) {
        rank.metadata.boot_id = rank.number < 4 ? "boot" : "another";
        rank.metadata.time_namespace = rank.number == 3 ? 77 : 11;
    }
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    EXPECT_EQ(found.domains, 3U) << "ranks 0 to 2, rank 3, ranks 4 to 7";
    EXPECT_EQ(found.clocks[0].source, ClockSource::reference);
    EXPECT_EQ(found.clocks[2].source, ClockSource::same_clock);
    EXPECT_EQ(found.clocks[2].in_job(1000).width(), 0);
    EXPECT_EQ(found.clocks[3].source, ClockSource::bounds);
    EXPECT_EQ(misses(planted, found), 0);
}

TEST(RankAlignment, one_counter_is_one_clock_whatever_the_time_namespace) {
    Planted planted = plant({});
    for (std::uint32_t r = 0; r < planted.job.ranks.size(); ++r) {
        Rank& rank = planted.job.ranks[r];
        rank.metadata.boot_id = "boot";
        rank.metadata.time_namespace = 100 + r;
        rank.metadata.clocks = {{0, "tsc"}};
        // The counter counts 3 ticks a nanosecond of true time; the rank's clock is what it is.
        const auto pair = [&](double truth) {
            return recording::ClockPair{
                0, static_cast<std::uint64_t>(3 * truth),
                static_cast<std::int64_t>(std::llround(truth * (1 + planted.drift[r]) + planted.offset[r])), 0, 0};
        };
        rank.clock_pairs = {pair(1e6), pair(9e8)};
        rank.events.line = *resolve::fit_ticks(rank.clock_pairs, 0);
    }
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    EXPECT_EQ(found.domains, 1U);
    EXPECT_EQ(found.clocks[5].source, ClockSource::same_counter);
    const std::int64_t moment = planted.job.ranks[5].events.last_ns;
    EXPECT_NEAR(found.clocks[5].in_job(moment).middle(), static_cast<double>(moment) + planted.correction(5, moment),
                5);
}

TEST(RankAlignment, what_is_one_clock_and_contradicts_is_no_collective) {
    RankPlan plan;
    plan.most_offset_ns = 0;
    plan.most_drift = 0;
    Planted planted = plant(plan);
    for (Rank& rank : planted.job.ranks) {
        rank.metadata.boot_id = "boot";
        rank.metadata.time_namespace = 11;
    }
    planted.job.ranks[1].events.events[500].end =
        planted.job.ranks[1].events.events[500].begin + 1; // before most began
    planted.job.ranks[1].events.events[500].begin -= 300'000;
    planted.job.ranks[1].events.events[500].end -= 300'000;
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    EXPECT_TRUE(joints.joints[500].contradicts);
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_EQ(found.notes[0].substr(0, 14), "1 collectives ");
}

TEST(RankAlignment, a_given_offset_bounds_a_clock_that_nothing_else_does) {
    Planted planted = plant({});
    for (std::uint32_t r = 0; r < 8; ++r) {
        Rank& rank = planted.job.ranks[r];
        rank.events.events.clear();
        // Wall clocks that are right but for 3 us on rank 1.
        for (const double truth : {1e6, 4e8}) {
            const auto own =
                static_cast<std::int64_t>(std::llround(truth * (1 + planted.drift[r]) + planted.offset[r]));
            const double wall = truth * (1 + planted.drift[0]) + planted.offset[0] + (r == 1 ? 3000 : 0);
            rank.clock_pairs.push_back({0, 0, own, 1'750'000'000'000'000'000 + std::llround(wall), 0});
        }
    }
    Joints joints = match(planted.job);
    EXPECT_EQ(align(planted.job, joints).clocks[1].source, ClockSource::unknown);
    const RankAlignment found = align(planted.job, joints, {{1U, 3000, 500}, {2U, 0, 2000}});
    ASSERT_TRUE(found.clocks[1].found());
    const std::int64_t moment = planted.job.ranks[1].events.last_ns;
    const double truth = static_cast<double>(moment) + planted.correction(1, moment);
    EXPECT_LE(found.clocks[1].in_job(moment).least, truth + 2);
    EXPECT_GE(found.clocks[1].in_job(moment).most, truth - 2);
    EXPECT_LE(found.clocks[1].in_job(moment).width(), 1300);
    EXPECT_EQ(found.clocks[3].source, ClockSource::unknown);
}

/// What their traces count from is a second apart, and no wall clock's: boot, say.
TEST(RankAlignment, a_given_offset_of_what_has_no_time_of_day_is_ignored_with_a_note) {
    Planted planted = plant({});
    constexpr std::int64_t day = 1'750'000'000'000'000'000;
    std::int64_t zero = 0;
    for (Rank& rank : planted.job.ranks) {
        zero += 1'000'000'000;
        rank.clock_pairs = {{0, 0, rank.events.first_ns, rank.events.first_ns + zero, 0},
                            {0, 0, rank.events.last_ns, rank.events.last_ns + zero, 0}};
    }
    const auto align_now = [&planted](const GivenOffset& given) {
        Joints joints = match(planted.job);
        return align(planted.job, joints, {given});
    };
    const RankAlignment without = align_now({9999U, 0, 0});
    EXPECT_TRUE(without.notes.empty());
    const RankAlignment ignored = align_now({{}, 0, 10'000});
    EXPECT_TRUE(ignored.contradictions.empty()) << ignored.contradictions[0];
    ASSERT_EQ(ignored.notes.size(), 1U);
    EXPECT_EQ(ignored.notes[0],
              "--offset of ranks 1, 2, 3, 4, 5, 6 and 7 is ignored: it is counted from the wall clock "
              "of rank 0, whose recording says no time of day.");
    const std::int64_t moment = planted.job.ranks[5].events.last_ns;
    EXPECT_EQ(ignored.clocks[5].in_job(moment).least, without.clocks[5].in_job(moment).least);
    planted.job.ranks[0].clock_pairs[0].realtime_ns += day;
    planted.job.ranks[0].clock_pairs[1].realtime_ns += day;
    EXPECT_EQ(align_now({3U, 0, 10'000}).notes.at(0),
              "--offset of rank 3 is ignored: its recording says no time of day.");
    EXPECT_TRUE(align_now({{}, 0, 10'000}).contradictions.empty());
}

TEST(RankAlignment, stages_that_only_hand_on_are_bounded_through_their_neighbours) {
    // Four stages; each sends to the next one, the last one back to the first: clocks of stages that never met are bounded
    // through those between.
    RankPlan plan;
    plan.ranks = 4;
    plan.collectives = 1;
    Planted planted = plant(plan);
    for (Rank& rank : planted.job.ranks) {
        rank.events.events.clear();
        rank.events.names = {"send", "recv"};
        rank.metadata.groups = {{"pp", rank.number, 4, {}}};
    }
    const auto put = [&](std::uint32_t r, std::uint16_t name, double begin, double end) {
        const auto shown = [&](double truth) {
            return static_cast<std::int64_t>(std::llround(truth * (1 + planted.drift[r]) + planted.offset[r]));
        };
        RankEvents& events = planted.job.ranks[r].events;
        events.events.push_back({shown(begin), shown(end), not_said, not_said, 1, name, 0, 0, Phase::none});
        events.last_ns = shown(end);
    };
    double now = 1e6;
    for (int k = 0; k < 200; ++k) {
        for (std::uint32_t r = 0; r < 4; ++r) {
            now += 30e3;
            put(r, 0, now, now + 4e3);
            put((r + 1) % 4, 1, now - 10e3, now + 5e3);
        }
    }
    for (Rank& rank : planted.job.ranks) {
        std::sort(rank.events.events.begin(), rank.events.events.end(),
                  [](const RankEvent& a, const RankEvent& b) { return a.begin < b.begin; });
        rank.events.first_ns = rank.events.events.front().begin;
    }
    Joints joints = match(planted.job);
    const RankAlignment found = align(planted.job, joints);
    for (const RankClock& clock : found.clocks) {
        ASSERT_TRUE(clock.found());
    }
    EXPECT_EQ(misses(planted, found), 0);
}

} // namespace
} // namespace plumb::ranks

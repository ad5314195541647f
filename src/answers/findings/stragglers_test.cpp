// SPDX-License-Identifier: Apache-2.0
// Late ranks of planted jobs as findings: the right one, a bound that holds against the same job without it, and silence without one.
#include <gtest/gtest.h>

#include "answers/findings/detect.hpp"
#include "answers/ranks/summary.hpp"
#include "planted/tape.hpp"
#include "ranks/planted_ranks_testing.hpp"
#include "recording/files_testing.hpp"
#include "support/sanitizers.hpp"

namespace plumb::findings {
namespace {

using ranks::testing::RankPlan;

struct Judged {
    std::vector<Finding> found;
    double step_ns = 0; // of the job without its errors
};

Judged judged(const RankPlan& plan) {
    const ranks::testing::Planted planted = ranks::testing::plant(plan);
    ranks::Joints joints = ranks::match(planted.job);
    const ranks::RankAlignment alignment = ranks::align(planted.job, joints);
    const RanksReport report = ranks::summary_of(planted.job, joints, alignment);
    const double whole = planted.end[0].back() - planted.begin[0].front();
    return {find_stragglers(report), whole / static_cast<double>(report.steps)};
}

TEST(Stragglers, are_found_and_cost_no_more_than_the_bound_says) {
    int right = 0, trials = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        RankPlan plan;
        plan.seed = 900 + seed;
        plan.late = static_cast<std::uint32_t>(seed * 5 % plan.ranks);
        plan.late_share = 0.3 + 0.02 * static_cast<double>(seed % 20);
        plan.late_ns = plan.compute_ns * (0.1 + 0.01 * static_cast<double>(seed)); // 3 to 28 % of a step
        const Judged with = judged(plan);
        plan.late.reset(); // draws the same numbers
        const Judged without = judged(plan);
        const double gain = with.step_ns - without.step_ns;
        const bool named =
            !with.found.empty() && with.found[0].subject == "rank " + std::to_string(seed * 5 % plan.ranks);
        if (gain >= 0.05 * with.step_ns) {
            ++trials;
            right += named ? 1 : 0;
        }
        if (named) {
            EXPECT_GE(with.found[0].at_most_ns, gain) << seed;
            EXPECT_LE(with.found[0].likely_ns, gain * 1.05) << seed;
            EXPECT_EQ(with.found[0].sure, Sureness::sure);
        }
        EXPECT_LE(with.found.size(), 1U) << seed;
        EXPECT_TRUE(without.found.empty()) << seed;
    }
    EXPECT_GE(trials, 20);
    EXPECT_GE(right, trials * 9 / 10);
}

/// Collectives without a step around them: nothing of one rank alone can be told, and of all together it can.
TEST(Stragglers, of_recordings_without_steps_are_found_too) {
    const recording::testing::TemporaryFolder folder;
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        planted::Tape tape;
        tape.track(1);
        tape.metadata_.rank = std::to_string(rank);
        tape.metadata_.world = 4;
        for (std::int64_t k = 0; k < 200; ++k) {
            const std::int64_t late = rank == 2 && k % 2 == 0 ? 400'000 : 0;
            const std::int64_t begin = 1'000'000 * (k + 1) + 7'919 * ((k + rank) % 5) + late;
            const std::int64_t end = 1'000'000 * (k + 1) + (k % 2 == 0 ? 450'000 : 50'000);
            tape.scope(1, Brick::all_reduce, begin, end);
        }
        files.push_back(folder.file("r" + std::to_string(rank) + ".plumb"));
        ASSERT_TRUE(tape.save(files.back()).ok());
    }
    const Result<FindingsReport> report = read_findings(files);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->runs.size(), 4U);
    EXPECT_NE(report->runs[0].notes.at(0).find("holds no complete step"), std::string::npos);
    ASSERT_EQ(report->together.size(), 1U);
    EXPECT_EQ(report->together[0].subject, "rank 2");
}

TEST(Stragglers, quiet_jobs_have_none) {
    for (std::uint64_t seed = 1; seed <= draws(300); ++seed) {
        RankPlan plan;
        plan.ranks = seed % 2 == 0 ? 8 : 2;
        plan.seed = 70'000 + seed;
        plan.jitter_ns = seed % 3 == 0 ? 60e3 : 3e3;
        EXPECT_TRUE(judged(plan).found.empty()) << seed;
    }
}

} // namespace
} // namespace plumb::findings

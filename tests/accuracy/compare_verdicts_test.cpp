// SPDX-License-Identifier: Apache-2.0
// Verdicts on noise recorded from real runs; the first lines of each pool say how it was made. compare_noise.txt: a machine
// under heavy load, where one run lies some 4 % from the next. compare_noise_calm.txt: a larger model on a machine with
// little else to do.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "compare_trials.hpp"

namespace {

using namespace trials;

Pool recorded(const char* path = PLUMB_COMPARE_NOISE) {
    std::ifstream in(path);
    const plumb::Result<Pool> pool = read_pool(in);
    EXPECT_TRUE(pool.ok());
    return pool.ok() ? *pool : Pool{};
}

/// The same rows, with runs of a calm machine: what a run does to all bricks, and what each does on its own.
Pool calm(double common, double own) {
    Pool pool = recorded();
    const std::vector<double> middle = pool.runs.at(0);
    std::mt19937_64 random(3);
    std::normal_distribution<double> shared(0, common);
    std::normal_distribution<double> apart(0, own);
    for (auto& run : pool.runs) {
        const double pace = shared(random);
        for (std::size_t column = 0; column < run.size(); ++column) {
            run[column] = middle[column] * std::exp(pace + apart(random));
        }
    }
    return pool;
}

TEST(CompareVerdicts, on_real_noise_at_most_1_percent_of_pairs_without_a_change_get_a_false_one) {
    const Pool pool = recorded();
    ASSERT_GE(pool.runs.size(), 200u);
    const Outcome clean = run_trials(pool, {});
    EXPECT_EQ(clean.pairs, 200u);
    EXPECT_LE(clean.false_verdicts, 2u);
}

TEST(CompareVerdicts, on_real_noise_a_slowed_brick_blames_no_other) {
    const Pool pool = recorded();
    for (const std::string& brick : bricks_of(pool)) {
        Plan plan;
        plan.brick = brick;
        EXPECT_LE(run_trials(pool, plan).false_verdicts, 2u) << brick;
    }
}

TEST(CompareVerdicts, on_real_noise_a_change_well_above_it_is_found_in_95_percent_of_pairs) {
    Plan plan;
    plan.brick = "qkv_projection";
    plan.change = 0.10;
    const Outcome outcome = run_trials(recorded(), plan);
    EXPECT_GE(outcome.named, 190u);
}

TEST(CompareVerdicts, on_a_calm_machine_a_brick_3_percent_slower_is_named_in_95_percent_of_pairs) {
    const Pool pool = recorded(PLUMB_COMPARE_NOISE_CALM);
    EXPECT_LE(run_trials(pool, {}).false_verdicts, 2u);
    std::size_t pairs = 0, named = 0;
    for (const std::string& brick : bricks_of(pool)) {
        Plan plan;
        plan.brick = brick;
        const Outcome outcome = run_trials(pool, plan);
        EXPECT_GE(outcome.named, 186u) << brick;
        EXPECT_LE(outcome.false_verdicts, 2u) << brick;
        pairs += outcome.pairs;
        named += outcome.named;
    }
    EXPECT_EQ(pairs, 1200u);
    EXPECT_GE(named, pairs * 95 / 100);
}

TEST(CompareVerdicts, a_brick_3_percent_slower_is_named_where_bricks_wobble_by_a_third_of_a_percent_and_runs_by_2) {
    const Pool pool = calm(0.02, 0.003);
    for (const std::string& brick : bricks_of(pool)) {
        Plan plan;
        plan.brick = brick;
        const Outcome outcome = run_trials(pool, plan);
        EXPECT_GE(outcome.named, 190u) << brick;
        EXPECT_LE(outcome.false_verdicts, 2u) << brick;
    }
    EXPECT_LE(run_trials(pool, {}).false_verdicts, 2u);
}

TEST(CompareVerdicts, when_most_bricks_change_nobody_is_blamed_against_a_pace_that_changed_too) {
    Pool pool = calm(0.02, 0.001);
    std::vector<plumb::analysis::NamedRun> sides[2];
    for (std::size_t i = 0; i < 10; ++i) {
        plumb::analysis::NamedRun run;
        run.name = std::to_string(i);
        run.figures.start_realtime_ns = static_cast<std::int64_t>(i);
        run.figures.phases[static_cast<std::size_t>(plumb::Phase::decode)].steps = 1000;
        double step = 0;
        std::size_t number = 0;
        for (const std::string& brick : bricks_of(pool)) {
            plumb::analysis::RunRow row;
            row.id = {plumb::CompareSubject::brick, plumb::Phase::decode, false, brick, 0};
            // All but one are slower by 3 %: that one is not faster.
            row.p50 = pool.runs[i][3] * (i % 2 == 1 && number++ != 0 ? 1.03 : 1);
            row.p90 = row.p99 = row.mean = row.central = row.p50;
            step += row.p50;
            run.figures.rows.push_back(row);
        }
        plumb::analysis::RunRow row;
        row.id.phase = plumb::Phase::decode;
        row.p50 = row.p90 = row.p99 = row.mean = row.central = step;
        run.figures.rows.push_back(row);
        sides[i % 2].push_back(std::move(run));
    }
    for (const plumb::CompareRow& row : plumb::analysis::compare_runs(sides[0], sides[1], {}, {}).rows) {
        EXPECT_NE(row.verdict, plumb::Verdict::fast) << row.name;
    }
}

} // namespace

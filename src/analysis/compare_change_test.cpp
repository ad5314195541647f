// SPDX-License-Identifier: Apache-2.0
// Verdicts on noise of a known size: how often they are wrong, and what they must not say.
#include "analysis/compare_change.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plumb::analysis {
namespace {

std::vector<double> noisy(std::mt19937_64& random, std::size_t runs, double middle, double noise) {
    std::normal_distribution<double> log(std::log(middle), noise);
    std::vector<double> out;
    for (std::size_t i = 0; i < runs; ++i) {
        out.push_back(std::exp(log(random)));
    }
    return out;
}

TEST(CompareChange, F14_fewer_than_3_runs_a_side_give_no_verdict_however_far_apart_they_lie) {
    for (const auto& [base, changed] : {std::pair<std::vector<double>, std::vector<double>>{{100}, {200}},
                                        {{100, 100}, {200, 200}},
                                        {{100, 101, 102}, {200, 201}},
                                        {{100, 101}, {200, 201, 202}}}) {
        const LogChange change = ratio_change(base, changed, 0.95);
        EXPECT_FALSE(change.known);
        const Judgement judgement = judge(change, 0.01);
        EXPECT_EQ(judgement.verdict, Verdict::undecided);
        EXPECT_NE(judgement.reason.find("3"), std::string::npos) << judgement.reason;
        EXPECT_FALSE(as_share(change).low.value.has_value()) << "no interval, least of all one of width 0";
    }
}

TEST(CompareChange, F14_an_interval_has_the_width_of_students_t_not_of_1_96) {
    // By hand: means 1 apart, both variances 1, n = 3 a side: df = 4, t(0.975) = 2.776, standard error sqrt(2/3).
    const std::vector<double> base = {-1, 0, 1};
    const std::vector<double> changed = {0, 1, 2};
    const LogChange change = log_change(base, changed, 0.95);
    ASSERT_TRUE(change.known);
    EXPECT_NEAR(change.interval.estimate, 1, 1e-12);
    EXPECT_NEAR(change.interval.high - change.interval.estimate, 2.7764 * std::sqrt(2.0 / 3), 1e-3);
    EXPECT_NEAR(change.noise, 1, 1e-12);
}

TEST(CompareChange, F14_runs_that_do_not_differ_at_all_prove_nothing) {
    const std::vector<double> base = {100, 100, 100};
    const std::vector<double> changed = {110, 110, 110};
    EXPECT_EQ(judge(ratio_change(base, changed, 0.95), 0.01).verdict, Verdict::undecided);
    EXPECT_EQ(judge(ratio_change(base, base, 0.95), 0.01).verdict, Verdict::undecided);
}

TEST(CompareChange, false_verdicts_are_as_rare_as_asked_for) {
    std::mt19937_64 random(11);
    int wrong = 0;
    constexpr int trials = 4000;
    for (int trial = 0; trial < trials; ++trial) {
        const auto base = noisy(random, 5, 100, 0.02);
        const auto changed = noisy(random, 5, 100, 0.02);
        const Verdict verdict = judge(ratio_change(base, changed, 0.95), 0.001).verdict;
        wrong += verdict == Verdict::fast || verdict == Verdict::slow ? 1 : 0;
    }
    EXPECT_LT(wrong, trials * 6 / 100);
    EXPECT_GT(wrong, trials * 3 / 100) << "so the interval is not simply huge";
}

TEST(CompareChange, a_change_far_above_the_noise_is_found_with_its_sign_and_size) {
    std::mt19937_64 random(12);
    const LogChange slower = ratio_change(noisy(random, 5, 100, 0.003), noisy(random, 5, 105, 0.003), 0.999);
    EXPECT_EQ(judge(slower, 0.01).verdict, Verdict::slow);
    EXPECT_NEAR(*as_share(slower).estimate.value, 0.05, 0.005);
    const LogChange faster = ratio_change(noisy(random, 5, 100, 0.003), noisy(random, 5, 95, 0.003), 0.999);
    EXPECT_EQ(judge(faster, 0.01).verdict, Verdict::fast);
}

TEST(CompareChange, same_needs_the_whole_interval_in_the_band) {
    std::mt19937_64 random(13);
    const auto base = noisy(random, 8, 100, 0.001);
    const auto changed = noisy(random, 8, 100, 0.001);
    EXPECT_EQ(judge(ratio_change(base, changed, 0.999), 0.01).verdict, Verdict::same);
    const auto wild = noisy(random, 8, 100, 0.03);
    EXPECT_EQ(judge(ratio_change(base, wild, 0.999), 0.01).verdict, Verdict::undecided) << "no evidence is not SAME";
}

TEST(CompareChange, a_gap_within_the_noise_between_runs_is_no_verdict_however_many_runs_there_are) {
    std::mt19937_64 random(14);
    const auto base = noisy(random, 400, 100, 0.1);
    const auto changed = noisy(random, 400, 104, 0.1);
    const LogChange change = ratio_change(base, changed, 0.95);
    EXPECT_GT(change.interval.low, 0) << "the intervals do separate";
    EXPECT_EQ(judge(change, 0.01).verdict, Verdict::undecided);
}

TEST(CompareChange, the_pace_is_what_the_other_bricks_say) {
    const std::vector<std::vector<double>> logs = {{0, 0.5, 0}, {1, 1.1, 1}, {2, 2.1, 2}, {3, 3.1, 3}};
    const std::vector<double> pace = pace_without(0, logs, {10, 1, 1, 1});
    ASSERT_EQ(pace.size(), 3u);
    EXPECT_NEAR(pace[0], 0, 1e-12);
    EXPECT_NEAR(pace[1], 0.1, 1e-12) << "its own jump is no part of it";
    EXPECT_TRUE(pace_without(0, {{0}, {1}, {2}}, {1, 1, 1}).empty()) << "two others are no reference";
}

} // namespace
} // namespace plumb::analysis

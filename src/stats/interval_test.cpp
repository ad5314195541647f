// SPDX-License-Identifier: Apache-2.0
// Student's t against published tables, and what both kinds of interval promise.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "stats/bootstrap.hpp"
#include "stats/median.hpp"
#include "stats/student_t.hpp"

namespace plumb::stats {
namespace {

TEST(StudentT, F14_quantiles_are_those_of_the_published_tables_also_from_30_degrees_on) {
    struct Published {
        double p, df, t;
    };
    // NIST/SEMATECH e-Handbook of Statistical Methods, table of critical values of Student's t.
    for (const Published& row : {Published{0.975, 1, 12.706},
                                 {0.975, 2, 4.303},
                                 {0.975, 5, 2.571},
                                 {0.975, 10, 2.228},
                                 {0.975, 29, 2.045},
                                 {0.975, 30, 2.042},
                                 {0.975, 31, 2.040},
                                 {0.975, 60, 2.000},
                                 {0.975, 100, 1.984},
                                 {0.95, 30, 1.697},
                                 {0.99, 30, 2.457},
                                 {0.995, 4, 4.604},
                                 {0.999, 7, 4.785}}) {
        EXPECT_NEAR(student_t_quantile(row.p, row.df), row.t, 0.0006) << row.p << " " << row.df;
        EXPECT_NEAR(student_t_quantile(1 - row.p, row.df), -row.t, 0.0006);
    }
}

TEST(StudentT, quantile_and_distribution_are_inverse) {
    for (const double df : {1.0, 2.5, 3.0, 30.0, 1000.0}) {
        for (const double p : {0.001, 0.1, 0.4, 0.5, 0.77, 0.999}) {
            EXPECT_NEAR(student_t_cdf(student_t_quantile(p, df), df), p, 1e-12) << df << " " << p;
        }
    }
    // Closed forms: one degree is Cauchy's distribution, two have an algebraic one.
    EXPECT_NEAR(student_t_cdf(3, 1), 0.5 + std::atan(3.0) / 3.14159265358979323846, 1e-13);
    EXPECT_NEAR(student_t_cdf(1.5, 2), 0.5 + 1.5 / (2 * std::sqrt(2 + 1.5 * 1.5)), 1e-13);
}

TEST(Intervals, F14_fewer_than_3_runs_give_no_interval) {
    const std::vector<double> two = {10.0, 10.0};
    const std::vector<double> three = {10.0, 11.0, 12.0};
    EXPECT_FALSE(mean_interval(two).ok());
    EXPECT_FALSE(bootstrap_median(two).ok());
    EXPECT_FALSE(bootstrap_mean(two).ok());
    EXPECT_FALSE(bootstrap_median_ratio(three, two).ok());
    EXPECT_FALSE(bootstrap_median_ratio(two, three).ok());
    EXPECT_TRUE(mean_interval(three).ok());
    EXPECT_TRUE(bootstrap_median_ratio(three, three).ok());
}

TEST(Intervals, of_a_mean_is_the_textbook_one) {
    const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
    const Result<ConfidenceInterval> interval = mean_interval(values, 0.95);
    ASSERT_TRUE(interval.ok());
    EXPECT_DOUBLE_EQ(interval->estimate, 5);
    const double reach = 2.36462425 * std::sqrt(32.0 / 7 / 8);
    EXPECT_NEAR(interval->high, 5 + reach, 1e-7);
    EXPECT_NEAR(interval->low, 5 - reach, 1e-7);
}

TEST(Intervals, refuse_what_means_nothing) {
    const std::vector<double> nan = {1, 2, std::numeric_limits<double>::quiet_NaN()};
    const std::vector<double> zero = {0, 1, 2};
    const std::vector<double> good = {1, 2, 3};
    EXPECT_FALSE(mean_interval(nan).ok());
    EXPECT_FALSE(bootstrap_mean_ratio(zero, good).ok());
    EXPECT_FALSE(mean_interval(good, 1.0).ok());
    EXPECT_FALSE(bootstrap_median(good, {0.95, 3, 1}).ok());
}

TEST(Bootstrap, holds_the_true_mean_about_as_often_as_it_says) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> values(100, 10);
    int inside = 0;
    constexpr int trials = 400;
    for (int trial = 0; trial < trials; ++trial) {
        std::vector<double> sample(40);
        for (double& value : sample) {
            value = values(random);
        }
        const Result<ConfidenceInterval> interval =
            bootstrap_mean(sample, {0.9, 500, static_cast<std::uint64_t>(trial)});
        ASSERT_TRUE(interval.ok());
        inside += interval->low <= 100 && 100 <= interval->high ? 1 : 0;
    }
    EXPECT_GT(inside, trials * 83 / 100);
    EXPECT_LT(inside, trials * 95 / 100);
}

TEST(Bootstrap, ratio_of_medians_finds_the_planted_ratio_and_repeats_itself) {
    std::mt19937_64 random(6);
    std::normal_distribution<double> noise(1, 0.01);
    std::vector<double> base(50);
    std::vector<double> changed(50);
    for (std::size_t i = 0; i < base.size(); ++i) {
        base[i] = 100 * noise(random);
        changed[i] = 105 * noise(random);
    }
    const Result<ConfidenceInterval> first = bootstrap_median_ratio(base, changed);
    const Result<ConfidenceInterval> again = bootstrap_median_ratio(base, changed);
    ASSERT_TRUE(first.ok());
    EXPECT_LT(first->low, 1.05);
    EXPECT_GT(first->high, 1.05);
    EXPECT_GT(first->low, 1.03);
    EXPECT_LT(first->high, 1.07);
    EXPECT_EQ(first->low, again->low);
    EXPECT_EQ(first->high, again->high);
}

TEST(Bootstrap, a_median_of_an_even_number_is_the_middle_of_two) {
    EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
    EXPECT_DOUBLE_EQ(median(std::vector<double>{9, 1, 5}), 5);
}

} // namespace
} // namespace plumb::stats

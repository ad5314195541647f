// SPDX-License-Identifier: Apache-2.0
#include "decoder/sampling/sampler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace plumb::decoder {
namespace {

constexpr std::array<float, 5> logits{0.0F, 3.0F, 1.0F, 2.5F, -4.0F};

std::array<int, 5> drawn(const SamplingOptions& options, int draws) {
    Sampler sampler = Sampler::make(options, logits.size()).value();
    std::array<int, 5> counts{};
    for (int i = 0; i < draws; ++i) {
        ++counts[static_cast<std::size_t>(sampler.pick(logits))];
    }
    return counts;
}

TEST(Sampler, the_same_seed_gives_the_same_tokens_and_another_seed_others) {
    const auto sequence = [](std::uint64_t seed) {
        Sampler sampler = Sampler::make({1.0F, 0, 1.0F, seed}, logits.size()).value();
        std::vector<std::int32_t> out;
        for (int i = 0; i < 50; ++i) {
            out.push_back(sampler.pick(logits));
        }
        return out;
    };
    EXPECT_EQ(sequence(1), sequence(1));
    EXPECT_NE(sequence(1), sequence(2));
}

TEST(Sampler, a_restart_repeats_the_sequence) {
    Sampler sampler = Sampler::make({1.0F, 0, 1.0F, 9}, logits.size()).value();
    std::vector<std::int32_t> first, second;
    for (int i = 0; i < 30; ++i) {
        first.push_back(sampler.pick(logits));
    }
    sampler.restart();
    for (int i = 0; i < 30; ++i) {
        second.push_back(sampler.pick(logits));
    }
    EXPECT_EQ(first, second);
}

TEST(Sampler, frequencies_follow_the_softmax) {
    constexpr int draws = 20000;
    const auto counts = drawn({1.0F, 0, 1.0F, 3}, draws);
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit));
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double p = std::exp(static_cast<double>(logits[i])) / sum;
        // Five standard deviations; the seed is fixed, so this passes always or never.
        EXPECT_NEAR(counts[i], draws * p, 5 * std::sqrt(draws * p * (1 - p))) << i;
    }
}

TEST(Sampler, top_k_keeps_the_k_best) {
    const auto counts = drawn({5.0F, 2, 1.0F, 3}, 500);
    EXPECT_GT(counts[1], 0);
    EXPECT_GT(counts[3], 0);
    EXPECT_EQ(counts[1] + counts[3], 500);
}

TEST(Sampler, top_p_keeps_the_smallest_set_that_reaches_p) {
    // The probabilities are 0.54, 0.33, 0.07, …: 0.5 needs one token, 0.6 two.
    EXPECT_EQ(drawn({1.0F, 0, 0.5F, 3}, 200)[1], 200);
    const auto counts = drawn({1.0F, 0, 0.6F, 3}, 500);
    EXPECT_GT(counts[3], 0);
    EXPECT_EQ(counts[1] + counts[3], 500);
}

TEST(Sampler, a_low_temperature_is_nearly_greedy) { EXPECT_EQ(drawn({0.01F, 0, 1.0F, 3}, 200)[1], 200); }

TEST(Sampler, a_nan_is_never_chosen) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::array<float, 3> bad{nan, 0.5F, nan};
    Sampler sampler = Sampler::make({1.0F, 0, 1.0F, 3}, bad.size()).value();
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(sampler.pick(bad), 1);
    }
}

TEST(Sampler, options_that_make_no_sense_are_refused) {
    EXPECT_FALSE(Sampler::make({-1.0F, 0, 1.0F, 1}, 5).ok());
    EXPECT_FALSE(Sampler::make({std::numeric_limits<float>::quiet_NaN(), 0, 1.0F, 1}, 5).ok());
    EXPECT_FALSE(Sampler::make({1.0F, 0, 0.0F, 1}, 5).ok());
    EXPECT_FALSE(Sampler::make({1.0F, 0, 1.5F, 1}, 5).ok());
}

TEST(Sampler, min_p_leaves_out_what_is_much_less_likely_than_the_best) {
    SamplingOptions options{1.0F, 0, 1.0F, 3};
    options.min_p = 0.5F; // exp(2.5 - 3) = 0.61, exp(1 - 3) = 0.14
    const auto counts = drawn(options, 2000);
    EXPECT_GT(counts[1], 0);
    EXPECT_GT(counts[3], 0);
    EXPECT_EQ(counts[0] + counts[2] + counts[4], 0);
    options.min_p = 0.1F;
    EXPECT_GT(drawn(options, 2000)[2], 0);
    options.min_p = 1;
    EXPECT_EQ(drawn(options, 200)[1], 200);
}

TEST(Sampler, what_was_said_lately_is_penalised_once_and_within_its_window) {
    SamplingOptions options;
    options.repeat_penalty = 1.5F;
    options.repeat_window = 2;
    Sampler sampler = Sampler::make(options, logits.size()).value();
    EXPECT_FALSE(sampler.greedy());
    EXPECT_EQ(sampler.pick(logits), 1);
    sampler.said(1);
    sampler.said(1);
    EXPECT_EQ(sampler.pick(logits), 3) << "3 / 1.5 is less than 2.5";
    sampler.said(3);
    EXPECT_EQ(sampler.pick(logits), 1) << "3 / 1.5 is more than 2.5 / 1.5: each is divided once";
    sampler.said(0);
    sampler.said(0);
    EXPECT_EQ(sampler.pick(logits), 1) << "the window has moved on";
    sampler.said(1);
    sampler.restart();
    EXPECT_EQ(sampler.pick(logits), 1);
    const std::array<float, 2> negative{-1.0F, -1.2F};
    sampler = Sampler::make(options, 2).value();
    sampler.said(0);
    EXPECT_EQ(sampler.pick(negative), 1) << "a negative logit is multiplied";
}

TEST(Sampler, options_outside_their_range_are_refused) {
    for (const float wrong : {-0.1F, 1.1F, std::numeric_limits<float>::quiet_NaN()}) {
        SamplingOptions options;
        options.min_p = wrong;
        EXPECT_FALSE(Sampler::make(options, 5).ok());
    }
    for (const float wrong : {0.0F, -1.0F, 101.0F, std::numeric_limits<float>::quiet_NaN()}) {
        SamplingOptions options;
        options.repeat_penalty = wrong;
        EXPECT_FALSE(Sampler::make(options, 5).ok());
    }
}

} // namespace
} // namespace plumb::decoder

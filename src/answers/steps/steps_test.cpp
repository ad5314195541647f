// SPDX-License-Identifier: Apache-2.0
// Steps of planted lengths.
#include "answers/steps/steps.hpp"

#include <gtest/gtest.h>

#include "answers/planted_answer_testing.hpp"

namespace plumb {

const answers::Entry& steps_answer();

namespace {

using planted::Tape;
using planted::us;

/// Steps of 100 us that follow each other, number 3 of 900 us; 50 us lie between numbers 4 and 5, outside of any step.
Tape tape(int steps) {
    Tape made;
    made.metadata_.warmup_steps = 1;
    made.track(1);
    std::int64_t t = 0;
    for (int i = 0; i < steps; ++i) {
        const Phase phase = i == 0 ? Phase::prefill : Phase::decode;
        const std::int64_t end = t + (i == 3 ? 900 : 100) * us;
        made.step_begin(1, static_cast<std::uint64_t>(10 + i), phase, t);
        made.step_value(1, StepValue::decode_tokens, 1);
        made.step_end(1, phase, t, end);
        t = end + (i == 4 ? 50 * us : 0);
    }
    return made;
}

TEST(Steps, every_step_is_listed_and_the_slowest_named) {
    const auto [steps, text] = answers::said_of(steps_answer(), tape(30));
    EXPECT_EQ(steps["steps"], 30);
    EXPECT_EQ(steps["counted"], 29); // without the warm-up
    EXPECT_EQ(steps["every"], 1);
    EXPECT_EQ(steps["phases"], "p" + std::string(29, 'd'));
    EXPECT_EQ(steps["marks"], ".w" + std::string(28, '.'));
    EXPECT_EQ(steps["id_deltas"][0], 10);
    EXPECT_EQ(steps["id_deltas"][29], 1);
    EXPECT_EQ(steps["periods_ns"][3], 900 * us);
    EXPECT_EQ(steps["periods_ns"][5], 150 * us); // its period begins where the one before ended
    std::int64_t end = 0;
    for (std::size_t i = 0; i < 30; ++i) {
        end += steps["gaps_ns"][i].get<std::int64_t>() + steps["periods_ns"][i].get<std::int64_t>();
    }
    EXPECT_EQ(end, (30 * 100 + 800 + 50) * us);
    EXPECT_EQ(steps["slowest"].size(), 10);
    EXPECT_EQ(steps["slowest"][0]["step"], 13);
    EXPECT_NEAR(steps["slowest"][0]["times_median"].get<double>(), 9, 0.1);
    EXPECT_NE(text.find("decode      13     0.3       0.900"), std::string::npos) << text;
}

TEST(Steps, of_more_than_a_hundred_thousand_the_longest_of_each_few_is_listed) {
    const auto [steps, text] = answers::said_of(steps_answer(), tape(100'002), {{"slowest", "1"}});
    EXPECT_EQ(steps["every"], 2);
    EXPECT_EQ(steps["periods_ns"].size(), 50'001);
    EXPECT_EQ(steps["periods_ns"][1], 900 * us);
    EXPECT_EQ(steps["periods_ns"][2], 150 * us);
    EXPECT_EQ(steps["slowest"].size(), 1);
}

TEST(Steps, time_runs_from_the_first_step_though_that_one_is_not_listed) {
    Tape made;
    made.track(1);
    std::int64_t t = 0;
    for (std::uint64_t i = 0; i < 100'002; ++i) { // the second one is longer, and listed for both
        const std::int64_t end = t + (i == 0 ? 5'000 : i == 1 ? 6'000 : 100) * us;
        made.step_begin(1, i, Phase::decode, t);
        made.step_end(1, Phase::decode, t, end);
        t = end;
    }
    const auto steps = answers::said_of(steps_answer(), made, {{"slowest", "2"}}).document;
    EXPECT_EQ(steps["slowest"][0]["begin_ns"], 5'000 * us);
    EXPECT_EQ(steps["slowest"][1]["begin_ns"], 0);
}

TEST(Steps, F1_tokens_that_nobody_gave_are_unknown) {
    Tape none;
    none.track(1);
    none.step_begin(1, 1, Phase::decode, 0);
    none.step_end(1, Phase::decode, 0, 100 * us);
    const auto [steps, text] = answers::said_of(steps_answer(), none);
    ASSERT_EQ(steps["slowest"].size(), 1);
    EXPECT_FALSE(steps["slowest"][0].contains("tokens"));
    EXPECT_NE(text.find("n/a  tokens: the step carries none"), std::string::npos) << text;
    EXPECT_EQ(answers::said_of(steps_answer(), tape(30)).document["slowest"][0]["tokens"], 1);
}

TEST(Steps, a_run_without_steps_says_so) {
    Tape none;
    none.track(1);
    none.scope(1, Brick::attention, 0, 100);
    EXPECT_NE(answers::said_of(steps_answer(), none).text.find("no complete step"), std::string::npos);
    none.step_begin(1, 1, Phase::none, 200);
    none.step_end(1, Phase::none, 200, 300);
    EXPECT_NE(answers::said_of(steps_answer(), none).text.find("the steps of this recording are of phase none"),
              std::string::npos);
}

} // namespace
} // namespace plumb

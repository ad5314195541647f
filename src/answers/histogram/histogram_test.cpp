// SPDX-License-Identifier: Apache-2.0
// Bricks of planted durations.
#include "answers/histogram/histogram.hpp"

#include <gtest/gtest.h>

#include "answers/planted_answer_testing.hpp"

namespace plumb {

const answers::Entry& histogram_answer();

namespace {

using nlohmann::json;
using planted::us;

TEST(Histogram, calls_stand_in_equal_bins_from_the_least_to_the_99th_percentile) {
    planted::Tape tape;
    tape.track(1);
    std::int64_t t = 0;
    tape.step_begin(1, 1, Phase::decode, 0);
    for (int i = 0; i < 1000; ++i) { // 900 of 100 us, 95 of 196 us, 5 of 1 ms
        const std::int64_t length = (i < 900 ? 100 : i < 995 ? 196 : 1000) * us;
        tape.scope(1, Brick::attention, t, t + length);
        t += length;
    }
    tape.scope(1, Brick::lm_head, t, t + 7 * us);
    t += 7 * us;
    tape.step_end(1, Phase::decode, 0, t);
    const auto [document, text] = answers::said_of(histogram_answer(), tape);
    ASSERT_EQ(document["rows"].size(), 2);
    const json& row = document["rows"][0];
    EXPECT_EQ(row["name"], "attention");
    EXPECT_EQ(row["count"], 1000);
    ASSERT_EQ(row["bins"].size(), 24);
    EXPECT_EQ(row["bins"][0], 900);
    EXPECT_EQ(row["bins"][23], 95);
    EXPECT_EQ(row["above"], 5);
    EXPECT_NEAR(row["begin_ns"].get<double>(), 100 * us, 0.01 * 100 * us);
    EXPECT_NEAR(row["end_ns"].get<double>(), 196 * us, 0.01 * 196 * us);
    EXPECT_EQ(document["rows"][1]["bins"], json::array({1})); // one value, one bin
    EXPECT_NE(text.find("█"), std::string::npos) << text;
}

TEST(Histogram, F1_few_calls_have_no_p99_and_it_is_never_above_the_longest) {
    planted::Tape tape;
    tape.track(1);
    tape.step_begin(1, 1, Phase::decode, 0);
    for (int i = 0; i < 1999; ++i) {
        tape.scope(1, i < 1000 ? Brick::attention : Brick::lm_head, i * 200 * us, i * 200 * us + 196 * us);
    }
    tape.step_end(1, Phase::decode, 0, 1999 * 200 * us);
    const std::string text = answers::said_of(histogram_answer(), tape).text;
    EXPECT_NE(text.find("attention   1,000    196.0    196.0    196.0    196.0"), std::string::npos) << text;
    EXPECT_NE(text.find("lm_head       999    196.0    196.0      n/a    196.0"), std::string::npos) << text;
    EXPECT_NE(text.find("n/a  decode lm_head: too few samples (n = 999, p99 needs 1000)"), std::string::npos) << text;
}

TEST(Histogram, rows_are_told_apart_as_in_the_report_and_what_was_lost_is_said) {
    planted::Tape tape;
    tape.track(1);
    for (std::int64_t i = 0; i < 40; ++i) {
        const std::int64_t t = i * 1'000 * us;
        tape.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
        tape.scope(1, Brick::attention, t, t + 300 * us);
        tape.lap(1, Brick::attention, t + 400 * us, t + 600 * us);
        tape.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    const auto [whole, plain] = answers::said_of(histogram_answer(), tape);
    EXPECT_TRUE(whole["notes"].empty());
    EXPECT_NE(plain.find("\ndecode   attention        40    300.0"), std::string::npos) << plain;
    EXPECT_NE(plain.find("\ndecode   attention ~      40    200.0"), std::string::npos) << plain;
    EXPECT_NE(plain.find("\n~  made of laps"), std::string::npos) << plain;
    EXPECT_EQ(plain.find("\n+  "), std::string::npos) << plain;
    tape.counters_.drops = {{"ring full", 5'000}};
    const auto [document, text] = answers::said_of(histogram_answer(), tape);
    ASSERT_EQ(document["notes"].size(), 1);
    EXPECT_NE(text.find("\nnote  5000 records of this run were lost"), std::string::npos) << text;
}

TEST(Histogram, what_has_no_row_because_there_are_too_many_is_said) {
    planted::Tape tape;
    tape.track(1);
    tape.step_begin(1, 1, Phase::decode, 0);
    for (std::uint16_t i = 0; i < 8'200; ++i) {
        tape.scope(1, Name(static_cast<std::uint16_t>(1'000 + i)), i * us, i * us + 500);
    }
    tape.step_end(1, Phase::decode, 0, 9'000 * us);
    const auto document = answers::said_of(histogram_answer(), tape).document;
    ASSERT_EQ(document["notes"].size(), 1);
    EXPECT_EQ(document["notes"][0].get<std::string>().rfind("Rows beyond 8192", 0), 0);
}

} // namespace
} // namespace plumb

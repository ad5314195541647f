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

} // namespace
} // namespace plumb

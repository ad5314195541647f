// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_builder.hpp"

#include <gtest/gtest.h>

#include "resolve/planted_source.hpp"

namespace plumb::analysis {
namespace {

using resolve::PlantedSource;

const Row* row_of(const std::vector<Row>& rows, Phase phase, const std::string& name) {
    for (const Row& row : rows) {
        if (row.key.phase == phase && row.key.name == name)
            return &row;
    }
    return nullptr;
}

TEST(ReportBuilder, a_planted_decode_gives_the_numbers_that_were_planted) {
    PlantedSource source;
    source.track(1);
    for (int i = 0; i < 4; ++i) {
        const std::int64_t t = 1'000'000 * i;
        source.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 2);
        source.scope(1, Brick::rms_norm, t + 100'000, t + 200'000);
        source.scope(1, Brick::attention, t + 200'000, t + 900'000);
        source.step_end(1, Phase::decode, t, t + 1'000'000);
    }
    auto report = build_report(source, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->phases.size(), 1u);
    const PhaseSummary& decode = report->phases[0];
    EXPECT_EQ(decode.steps, 4u);
    EXPECT_DOUBLE_EQ(*decode.tokens_per_second.value, 8 / 4e-3);
    EXPECT_DOUBLE_EQ(decode.wall.period_ns, 4e6);
    EXPECT_DOUBLE_EQ(decode.wall.union_ns, 3.2e6);
    const Row* attention = row_of(report->bricks, Phase::decode, "attention");
    ASSERT_NE(attention, nullptr);
    EXPECT_DOUBLE_EQ(attention->calls_per_step, 1);
    EXPECT_DOUBLE_EQ(attention->time.mean_ns, 700'000);
}

} // namespace
} // namespace plumb::analysis

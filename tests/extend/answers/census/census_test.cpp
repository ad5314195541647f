// SPDX-License-Identifier: Apache-2.0
#include "answers/census/census.hpp"

#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

TEST(Census, counts_the_phases_that_have_enough_steps) {
    Report report;
    report.phases.resize(2);
    report.phases[0].phase = Phase::prefill;
    report.phases[0].steps = 1;
    report.phases[1].phase = Phase::decode;
    report.phases[1].steps = 24;
    EXPECT_EQ(census_of(report, {}).rows.size(), 2u);
    const CensusReport census = census_of(report, {2});
    ASSERT_EQ(census.rows.size(), 1u);
    EXPECT_TRUE(contains(render_text(census), "decode")) << render_text(census);
    EXPECT_EQ(json::parse(render_json(census))["rows"][0]["steps"], 24);
}

} // namespace
} // namespace plumb::answers

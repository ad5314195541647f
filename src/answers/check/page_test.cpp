// SPDX-License-Identifier: Apache-2.0
// Checks as text and JSON.
#include "answers/check/check.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

CheckReport sample_check() {
    CheckReport report;
    report.rows = {{"lm_head=1/step", "a.plumb", Outcome::pass, measured(1), "in each of 7 decode steps"},
                   {"drops <= 0", "b\x1b[31m.plumb", Outcome::fail, measured(3), "3 (ring full: 3)"},
                   {"variation <= 0.05", "", Outcome::unknown, missing("too few"), "too few"}};
    report.verdict = Outcome::fail;
    return report;
}

TEST(CheckText, T16_each_check_has_a_line_and_the_last_one_counts_them) {
    const std::string text = render_text(sample_check());
    EXPECT_TRUE(contains(text, "PASS  lm_head=1/step  a.plumb  in each of 7 decode steps\n")) << text;
    EXPECT_TRUE(contains(text, "\nFAIL  drops <= 0  b"));
    EXPECT_TRUE(contains(text, "\nN/A   variation <= 0.05  too few\n"));
    EXPECT_TRUE(contains(text, "\nCHECK failed  1 passed, 1 failed, 1 n/a\n"));
    EXPECT_FALSE(contains(text, "\x1b"));
    CheckReport clean = sample_check();
    clean.rows.resize(1);
    clean.verdict = Outcome::pass;
    EXPECT_EQ(render_text(clean),
              "PASS  lm_head=1/step  in each of 7 decode steps\nCHECK passed  1 passed, 0 failed, 0 n/a\n");
}

TEST(CheckJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<CheckReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_check()});
}

TEST(CheckJson, figures_arrive_whole) {
    const json check = parsed(render_json(sample_check()));
    EXPECT_EQ(check["checks"][1]["found"], 3);
}

} // namespace
} // namespace plumb::answers

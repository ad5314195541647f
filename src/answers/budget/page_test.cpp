// SPDX-License-Identifier: Apache-2.0
// Budgets as text and JSON.
#include "answers/budget/budget.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

BudgetReport sample_budget() {
    BudgetReport report;
    report.steps = 120;
    report.ns_per_token = 8e6;
    report.tokens_per_step = measured(4);
    report.budget_ns = measured(32e6);
    report.period_ns = measured(40e6);
    report.room_ns = measured(-8e6);
    report.tokens_per_second = measured(100);
    report.period_verdict = report.verdict = Outcome::fail;
    BudgetRow head;
    head.name = "lm_head";
    head.step_ns = head.self_ns = measured(1.5e6);
    head.token_ns = measured(0.375e6);
    head.budget_share = measured(0.046875);
    head.limited = true;
    head.allowed_ns = measured(1.6e6);
    head.room_ns = measured(0.1e6);
    head.verdict = Outcome::pass;
    BudgetRow missing_row = head;
    missing_row.name = "evil\n\x1b[31m";
    missing_row.verdict = Outcome::unknown;
    for (Figure BudgetRow::*figure : {&BudgetRow::step_ns, &BudgetRow::self_ns, &BudgetRow::token_ns,
                                      &BudgetRow::budget_share, &BudgetRow::room_ns}) {
        missing_row.*figure = missing("no brick of this name in the decode steps");
    }
    BudgetRow idle;
    idle.name = "idle";
    idle.account = true;
    idle.step_ns = idle.self_ns = measured(2e6);
    idle.token_ns = measured(0.5e6);
    idle.budget_share = measured(0.0625);
    idle.allowed_ns = measured(1.6e6);
    idle.room_ns = measured(-0.4e6);
    report.rows = {head, missing_row, idle};
    report.notes = {"a note"};
    return report;
}

TEST(BudgetText, overruns_room_and_what_is_unknown_each_have_their_line) {
    const std::string text = render_text(sample_budget());
    EXPECT_TRUE(
        contains(text, "decode 120 steps, 4.00 tokens/step; budget 8.000 ms/token (125.0 tok/s) = 32.000 ms/step\n"))
        << text;
    EXPECT_TRUE(contains(text, "measured 40.000 ms/step, 100.0 tok/s, room -8.000 ms/step\n"));
    EXPECT_TRUE(contains(text, "\nOVER  step: 40000.000 us/step of 32000.000 us, 8000.000 us too much\n"));
    EXPECT_TRUE(contains(text, "\nWITHIN  lm_head: 1500.000 us/step of 1600.000 us, 100.000 us of room\n"));
    EXPECT_TRUE(contains(text, ": no brick of this name in the decode steps\n"));
    EXPECT_TRUE(contains(text, "\nnote  a note\n"));
    EXPECT_FALSE(contains(text, "\x1b"));
}

TEST(BudgetText, a_brick_named_as_a_row_of_the_account_can_be_told_from_it) {
    BudgetReport report = sample_budget();
    EXPECT_FALSE(contains(render_text(report), "(brick)"));
    report.rows[0].name = "idle";
    EXPECT_TRUE(contains(render_text(report), "\nidle (brick) ")) << render_text(report);
}

TEST(BudgetJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<BudgetReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_budget()});
}

TEST(BudgetJson, figures_and_verdicts_arrive_whole) {
    const json budget = parsed(render_json(sample_budget()));
    EXPECT_EQ(budget["verdict"], "fail");
    EXPECT_EQ(budget["rows"][0]["verdict"], "pass");
    EXPECT_EQ(budget["rows"][1]["step_ns"]["absent"], "no brick of this name in the decode steps");
    EXPECT_FALSE(budget["rows"][2].contains("verdict"));
}

} // namespace
} // namespace plumb::answers

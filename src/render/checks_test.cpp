// SPDX-License-Identifier: Apache-2.0
// Budgets, checks and layers as text and JSON.
#include <gtest/gtest.h>

#include "plumb/budget.hpp"
#include "plumb/invariants.hpp"
#include "plumb/layers.hpp"
#include "render/sample_report.hpp"
#include "render/schema_check.hpp"

namespace {

using namespace plumb;
using namespace plumb::render;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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
    head.percent = measured(4.6875);
    head.limited = true;
    head.allowed_ns = measured(1.6e6);
    head.room_ns = measured(0.1e6);
    head.verdict = Outcome::pass;
    BudgetRow missing_row = head;
    missing_row.name = "evil\n\x1b[31m";
    missing_row.verdict = Outcome::unknown;
    for (Figure BudgetRow::*figure :
         {&BudgetRow::step_ns, &BudgetRow::self_ns, &BudgetRow::token_ns, &BudgetRow::percent, &BudgetRow::room_ns}) {
        missing_row.*figure = missing("no brick of this name in the decode steps");
    }
    BudgetRow idle;
    idle.name = "idle";
    idle.account = true;
    idle.step_ns = idle.self_ns = measured(2e6);
    idle.token_ns = measured(0.5e6);
    idle.percent = measured(6.25);
    idle.allowed_ns = measured(1.6e6);
    idle.room_ns = measured(-0.4e6);
    report.rows = {head, missing_row, idle};
    report.notes = {"a note"};
    return report;
}

CheckReport sample_check() {
    CheckReport report;
    report.rows = {{"lm_head=1/step", "a.plumb", Outcome::pass, measured(1), "in each of 7 decode steps"},
                   {"drops <= 0", "b\x1b[31m.plumb", Outcome::fail, measured(3), "3 (ring full: 3)"},
                   {"variation <= 0.05", "", Outcome::unknown, missing("too few"), "too few"}};
    report.verdict = Outcome::fail;
    return report;
}

LayerReport sample_layers() {
    LayerReport report;
    report.metric = LayerMetric::p50;
    LayerRow row;
    row.phase = Phase::decode;
    row.name = "attention";
    row.source = "cpu_tsc";
    for (std::uint32_t layer = 0; layer < 12; ++layer) {
        report.layers.push_back(layer);
        row.cells.push_back(layer == 4 ? missing("it does not occur in this layer")
                                       : measured(layer == 7 ? 150e3 : 100e3));
    }
    row.cells[2] = measured(80e3);
    row.median = measured(100e3);
    row.mad = measured(0);
    LayerRow none = row;
    none.name = "rope_embedding";
    none.cells.assign(12, missing("too few samples"));
    none.median = none.mad = missing("too few samples");
    report.rows = {row, none};
    report.odd = {{0, 7, 150e3, 100e3, 62.5}};
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

TEST(LayersText, the_map_marks_cells_against_their_median_and_names_the_odd_one) {
    const std::string text = render_text(sample_layers());
    EXPECT_TRUE(contains(text, "attention                      100.00  ==.= ==@====\n")) << text;
    EXPECT_TRUE(contains(text, "decode, layer               median us  0         10\n"));
    EXPECT_TRUE(contains(
        text, "\nODD  decode layer 7 attention: 150.00 us, the other layers 100.00 us (1.50x, robust z 62.5)\n"));
    EXPECT_TRUE(contains(text, "\nn/a  rope_embedding: too few samples\n"));
    EXPECT_FALSE(contains(text, "no odd layer"));
    LayerReport clean = sample_layers();
    clean.odd.clear();
    EXPECT_TRUE(contains(render_text(clean), "\nno odd layer\n"));
}

TEST(LayersText, colour_stands_for_the_same_marks_only_where_it_is_asked_for) {
    EXPECT_FALSE(contains(render_text(sample_layers()), "\x1b"));
    const std::string colored_text = render_text(sample_layers(), {true, 100});
    EXPECT_TRUE(contains(colored_text, "\x1b[48;5;196m \x1b[0m")); // layer 7
    EXPECT_FALSE(contains(colored_text, "==.= "));
}

TEST(LayersText, many_layers_go_on_below_and_none_is_left_out) {
    LayerReport report = sample_layers();
    report.odd.clear();
    report.rows.resize(1);
    for (std::uint32_t layer = 12; layer < 100; ++layer) {
        report.layers.push_back(layer);
        report.rows[0].cells.push_back(measured(100e3));
    }
    const std::string text = render_text(report, {false, 80});
    std::size_t alike = 0;
    for (const char mark : text) {
        alike += mark == '=' ? 1 : 0;
    }
    EXPECT_EQ(alike, 97u + 1); // one in the legend
    EXPECT_TRUE(contains(text, "90"));
}

TEST(BudgetJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<BudgetReport>(PLUMB_TEST_SOURCE_DIR, "plumb.budget.1.json", {{}, sample_budget()});
}

TEST(CheckJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<CheckReport>(PLUMB_TEST_SOURCE_DIR, "plumb.check.1.json", {{}, sample_check()});
}

TEST(LayersJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<LayerReport>(PLUMB_TEST_SOURCE_DIR, "plumb.layers.1.json", {{}, sample_layers()});
}

TEST(BudgetJson, figures_and_verdicts_arrive_whole) {
    const json budget = json::parse(render_json(sample_budget()));
    EXPECT_EQ(budget["verdict"], "fail");
    EXPECT_EQ(budget["rows"][0]["verdict"], "pass");
    EXPECT_EQ(budget["rows"][1]["step_ns"]["absent"], "no brick of this name in the decode steps");
    EXPECT_FALSE(budget["rows"][2].contains("verdict"));
    const json check = json::parse(render_json(sample_check()));
    EXPECT_EQ(check["checks"][1]["found"], 3);
    const json layers = json::parse(render_json(sample_layers()));
    EXPECT_EQ(layers["rows"][0]["cells"][7]["value"], 150e3);
    EXPECT_EQ(layers["odd"][0]["layer"], 7);
}

} // namespace

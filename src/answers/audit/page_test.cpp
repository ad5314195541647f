// SPDX-License-Identifier: Apache-2.0
// An audit as text and JSON.
#include "answers/audit/audit.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

AuditRow sample_row(const char* brick, double ours, double span) {
    AuditRow row;
    row.brick = brick;
    row.source = "cuda_event";
    row.calls = 100;
    row.matched = 98;
    row.operations = 196;
    row.ours_ns = measured(ours);
    row.span_ns = measured(span);
    row.sum_ns = measured(span - 1'000);
    row.error_ns = measured(ours - span);
    row.error = measured((ours - span) / span);
    row.least_error_ns = measured(ours - span - 200);
    row.median_error_ns = measured(ours - span - 50);
    row.most_error_ns = measured(ours - span + 300);
    row.covered = measured(0.975);
    row.total_span_ns = span * 98;
    row.names = {{"flash_kernel", 98}, {"rope_kernel", 98}};
    return row;
}

AuditReport sample_audit() {
    AuditReport report;
    report.recording = "run.plumb";
    report.trace = "trace.json.gz";
    report.tool = "kineto";
    report.fits = true;
    report.verdict = Outcome::pass;
    report.rows = {sample_row("attention", 93'000, 90'000), sample_row("rms_norm", 6'100, 6'000)};
    AuditRow none;
    none.brick = "sampling";
    none.source = "cuda_event";
    none.calls = 3;
    none.ours_ns = none.sum_ns = none.span_ns = none.error_ns = none.error = none.least_error_ns = none.most_error_ns =
        missing("no operation of the trace is in its calls");
    none.covered = measured(0);
    report.rows.push_back(none);
    report.lanes.push_back({"stream 1", "cuda_event", "gpu:0 stream 7", 203, 200, 199, measured(-3.6e12), measured(24),
                            measured(310), measured(2'800)});
    const Figure nowhere = missing("on no stream of the trace operations end where its scopes do");
    report.lanes.push_back({"stream 2", "cuda_event", "", 5, 0, 0, nowhere, nowhere, nowhere, nowhere});
    report.ours_ns = measured(9'711'800);
    report.span_ns = measured(9'408'000);
    report.error = measured(0.0323);
    report.worst = "attention";
    report.worst_source = "cuda_event";
    report.covered = measured(0.97);
    report.uncovered = measured(0.012);
    report.follows = measured(0.98);
    report.operations = 450;
    report.inside = 392;
    report.not_covered = 8;
    report.outside = 40;
    report.elsewhere = 10;
    report.leftovers = {{"memcpy", "gpu:0 stream 7", 8, 96'000}};
    report.notes = {"a note"};
    return report;
}

TEST(AuditText, bricks_then_clocks_then_what_is_not_covered_then_the_verdict) {
    const std::string text = render_text(sample_audit());
    EXPECT_TRUE(contains(
        text,
        "attention   cuda_event     100        98   196     93.00     90.00    89.00      +3.00   +2.80   +2.95   +3.30    "
        "  +3.3        97.5\n"))
        << text;
    EXPECT_TRUE(contains(text, "n/a  sampling: no operation of the trace is in its calls\n")) << text;
    EXPECT_TRUE(contains(text, "clock  stream 1 lies on gpu:0 stream 7: 199 of 200 scopes end with an operation, "
                               "0.31 us away; drift +24.00 ppm; steps lie within 2.80 us of that\n"))
        << text;
    EXPECT_TRUE(contains(text, "NOT IN TRACE stream 2: on no stream of the trace operations end where its scopes do\n"))
        << text;
    EXPECT_TRUE(contains(text, "NOT COVERED 8 x memcpy, 96.0 us on gpu:0 stream 7\n")) << text;
    EXPECT_TRUE(contains(text, "counts  392 of 450 operations in our scopes, 8 between them, 40 in steps that were not "
                               "timed, 10 on streams without scopes\n"))
        << text;
    EXPECT_TRUE(contains(text,
                         "audit  all bricks +3.2 % against kineto; worst attention by cuda_event +3.3 % (+3.00 us a "
                         "call); not covered 1.2 % of the trace's time\n"))
        << text;
    EXPECT_TRUE(contains(text, "note  a note\n")) << text;
}

TEST(AuditText, beyond_what_was_allowed_and_no_fit_are_said_first) {
    AuditReport report = sample_audit();
    report.max_error = 0.03;
    report.verdict = Outcome::fail;
    EXPECT_TRUE(contains(render_text(report), "BEYOND all bricks +3.2 %")) << render_text(report);
    EXPECT_TRUE(contains(render_text(report), "; allowed 3.0 %\n"));
    AuditReport other;
    other.reason = "the trace begins 7.0 s after the recording's last scope";
    EXPECT_EQ(render_text(other), "NO FIT the trace begins 7.0 s after the recording's last scope\n");
    EXPECT_EQ(outcome_of(other), Outcome::unknown);
}

TEST(AuditText, the_verdict_has_the_numbers_of_the_worst_row_and_not_of_another_of_its_brick) {
    AuditReport report = sample_audit();
    report.rows.push_back(sample_row("attention", 45'000, 30'000));
    report.rows.back().source = report.worst_source.emplace("cuda_graph_event");
    EXPECT_TRUE(contains(render_text(report), "; worst attention by cuda_graph_event +50.0 % (+15.00 us a call);"))
        << render_text(report);
}

TEST(AuditText, T8_a_name_cannot_reach_the_terminal_raw) {
    AuditReport report = sample_audit();
    report.rows[0].brick = report.rows[2].brick = report.lanes[0].name = report.lanes[0].stream =
        report.leftovers[0].name = report.tool = "\x1b[31m\nevil";
    report.worst = report.rows[0].brick;
    EXPECT_FALSE(contains(render_text(report), "\x1b"));
    EXPECT_FALSE(contains(render_text(report), "\nevil"));
}

TEST(AuditJson, output_is_valid_under_the_schema_and_documented) {
    AuditReport gated = sample_audit();
    gated.max_error = 0.05;
    AuditReport other;
    other.reason = "no fit";
    other.ours_ns = other.span_ns = other.error = other.covered = other.uncovered = other.follows =
        missing("the trace does not fit");
    expect_valid<AuditReport>(PLUMB_TEST_SOURCE_DIR, {sample_audit(), gated, other});
}

TEST(AuditJson, says_what_the_text_says) {
    const json said = parsed(render_json(sample_audit()));
    EXPECT_EQ(said["verdict"], "pass");
    EXPECT_EQ(said["fits"], true);
    EXPECT_EQ(said["rows"][0]["brick"], "attention");
    EXPECT_EQ(said["rows"][0]["error_ns"], 3'000);
    EXPECT_EQ(said["rows"][0]["names"][1]["name"], "rope_kernel");
    EXPECT_EQ(said["rows"][2]["error"]["absent"], "no operation of the trace is in its calls");
    EXPECT_EQ(said["lanes"][0]["agreeing"], 199);
    EXPECT_FALSE(said["lanes"][1].contains("stream"));
    EXPECT_EQ(said["leftovers"][0]["operations"], 8);
    EXPECT_FALSE(said.contains("reason"));
}

} // namespace
} // namespace plumb::answers

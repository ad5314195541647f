// SPDX-License-Identifier: Apache-2.0
// Comparisons and histories as JSON and Markdown, and what cannot be compared.
#include "answers/compare/compare.hpp"
#include "answers/compare/words.hpp"
#include "answers/rendered_testing.hpp"
#include "planted/tape.hpp"
#include "recording/files_testing.hpp"

namespace plumb::answers {
namespace {

Comparison sample_comparison() {
    Comparison comparison;
    ComparedRun run;
    run.name = "a\"\n.plumb";
    run.start_realtime_ns = 17;
    run.conditions = {{"load.average", "0.3"}};
    comparison.base = {run, run};
    comparison.changed = {run};
    comparison.key = {{"model", "m"}};
    comparison.differences = {{"threads", "1", "(absent)", true}};
    comparison.comparable = false;
    CompareRow row;
    row.subject = CompareSubject::brick;
    row.phase = Phase::decode;
    row.name = "attention";
    row.category = Category::attention;
    row.base_ns = measured(100);
    row.changed_ns = measured(103);
    row.base_noise = row.changed_noise = missing("one run");
    row.base_runs = {99, 101};
    row.changed_runs = {103};
    row.change = row.own_change = {measured(0.03), missing("1 run a side, 3 are needed"), missing("1 run")};
    row.reason = "1 run a side, 3 are needed";
    CompareRow layer = row;
    layer.subject = CompareSubject::layer;
    layer.name.clear();
    layer.layer = 3;
    layer.verdict = Verdict::slow;
    layer.reason.clear();
    comparison.rows = {row, layer};
    comparison.attributions = {{Phase::decode, false, 100, 103, 3, {{"attention", false, 100, 103, 3}}}};
    GateResult gate;
    gate.gate.text = "step.p50=+2%";
    gate.sentence = "undecided";
    GateResult judged = gate;
    judged.outcome = GateOutcome::failed;
    judged.change = {measured(0.05), measured(0.04), measured(0.06)};
    comparison.gates = {gate, judged};
    comparison.notes = {"a note"};
    return comparison;
}

History sample_history() {
    History history;
    history.runs = sample_comparison().base;
    HistoryRow row;
    row.subject = CompareSubject::brick;
    row.phase = Phase::decode;
    row.name = "attention";
    row.runs_ns = {5, std::nullopt};
    history.rows = {HistoryRow{}, row};
    history.notes = {"a note"};
    return history;
}

TEST(CompareJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<Comparison>(PLUMB_TEST_SOURCE_DIR, {{}, sample_comparison()});
}

TEST(CompareJson, history_is_valid_under_the_schema_and_documented) {
    expect_valid<History>(PLUMB_TEST_SOURCE_DIR, {{}, sample_history()});
}

TEST(CompareJson, changes_and_gates_arrive_whole) {
    const json written = parsed(render_json(sample_comparison()));
    EXPECT_EQ(written["base"][0]["name"], "a\"\n.plumb");
    EXPECT_EQ(written["rows"][0]["change"]["estimate"], 0.03);
    EXPECT_EQ(written["rows"][0]["change"]["low"]["absent"], "1 run a side, 3 are needed");
    EXPECT_EQ(written["rows"][0]["verdict"], "UNDECIDED");
    EXPECT_EQ(written["rows"][1]["layer"], 3);
    EXPECT_EQ(written["rows"][1]["verdict"], "SLOW");
    EXPECT_FALSE(written["gates"][0].contains("change"));
    EXPECT_EQ(written["gates"][1]["outcome"], "FAILED");
    EXPECT_EQ(written["attributions"][0]["parts"][0]["change_ns"], 3);
    const json history = parsed(render_json(sample_history()));
    EXPECT_EQ(history["rows"][1]["runs_ns"][0], 5);
    EXPECT_TRUE(history["rows"][1]["runs_ns"][1].is_null());
}

TEST(CompareWords, ranks_of_one_step_are_headed_as_what_they_are) {
    Comparison comparison = sample_comparison();
    EXPECT_EQ(runs_text(comparison), "2 runs against 1");
    comparison.one_step = true;
    EXPECT_EQ(runs_text(comparison), "1 step, 2 and 1 ranks: says that these two steps differ, not the builds");
    comparison.changed = comparison.base;
    EXPECT_EQ(runs_text(comparison), "1 step, 2 ranks: says that these two steps differ, not the builds");
}

TEST(CompareText, names_its_means) {
    Comparison comparison = sample_comparison();
    CompareRow step = comparison.rows.front();
    step.subject = CompareSubject::step;
    comparison.rows.push_back(step);
    EXPECT_TRUE(contains(render_text(comparison), "medians over the runs; change: ratio of their geometric means\n"));
    EXPECT_TRUE(
        contains(render_text(comparison), "us (arithmetic means over the middle half of the steps; adds up):\n"));
    comparison.one_step = true;
    EXPECT_TRUE(contains(render_text(comparison), "medians over the ranks; change: ratio of their geometric means\n"));
}

TEST(CompareText, does_not_say_of_parts_that_they_add_up_where_they_do_not) {
    Comparison comparison = sample_comparison();
    comparison.rows[0].subject = CompareSubject::step;
    comparison.attributions[0].adds_up = false;
    for (const std::string& text : {render_text(comparison), AnswerOf<Comparison>(comparison).markdown()}) {
        EXPECT_TRUE(contains(text, "over the middle half of the steps; does not add up, see the note):\n")) << text;
        EXPECT_FALSE(contains(text, "; adds up)"));
    }
    EXPECT_FALSE(parsed(render_json(comparison))["attributions"][0]["adds_up"]);
}

TEST(CompareWords, an_interval_without_an_end_worth_printing_says_how_far_it_goes) {
    EXPECT_EQ(interval_text({measured(0), measured(-0.999), measured(99.5)}), "-99.90 .. +9950.00 %");
    EXPECT_EQ(interval_text({measured(0), measured(-1), measured(1.8e28)}), "-100.00 .. over +10000 %");
}

TEST(CompareMarkdown, is_its_own_page_and_names_no_file) {
    const std::string markdown = AnswerOf<Comparison>(sample_comparison()).markdown();
    EXPECT_EQ(markdown.rfind("## plumb compare: 2 runs against 1\n", 0), 0u) << markdown;
    EXPECT_TRUE(contains(markdown, "\n- **FAILED** step.p50=+2%: undecided\n"));
    EXPECT_FALSE(contains(markdown, ".plumb"));
    EXPECT_TRUE(contains(AnswerOf<History>(sample_history()).markdown(), "| attention |"));
}

TEST(CompareMarkdown, has_the_marks_and_notes_of_the_table_without_the_names_of_files) {
    Comparison comparison = sample_comparison();
    comparison.base[0].name = "b.plumb";
    comparison.base[1].name = "b.plumb, c.plumb";
    comparison.changed[0].name = "n.plumb";
    CompareRow step = comparison.rows[0];
    step.subject = CompareSubject::step;
    CompareRow brick = comparison.rows[0];
    brick.verdict = Verdict::slow;
    brick.per_replay = brick.by_own_change = true;
    comparison.rows.insert(comparison.rows.begin(), {step, brick});
    comparison.notes = {"b.plumb, c.plumb, b.plumb: 7 records were lost", "n.plumb: n.plumb.rings: another",
                        "of all runs: this"};
    const std::string markdown = AnswerOf<Comparison>(comparison).markdown();
    EXPECT_TRUE(contains(markdown, "| attention | brick (sampled) |")) << markdown;
    EXPECT_TRUE(contains(markdown, "| **SLOW** \\* |\n")) << markdown;
    EXPECT_TRUE(contains(markdown, "\n\\*  against the pace of the other bricks of the same runs\n")) << markdown;
    EXPECT_TRUE(contains(markdown, "medians over the runs; change: ratio of their geometric means\n")) << markdown;
    EXPECT_TRUE(contains(markdown, "\n- note: base run 2, base run 1: 7 records were lost\n"
                                   "- note: new run 1: its file.rings: another\n"
                                   "- note: of all runs: this\n"))
        << markdown;
    EXPECT_FALSE(contains(markdown, ".plumb")) << markdown;
}

TEST(CompareHistory, counts_a_recording_once_and_says_what_its_runs_lost) {
    const recording::testing::TemporaryFolder folder;
    const auto save = [&folder](const std::string& name, std::uint64_t id, std::uint64_t lost) {
        planted::Tape tape;
        tape.track(1);
        tape.metadata_.recording_id[0] = id;
        if (lost != 0) {
            tape.counters_.drops = {{"ring full", lost}};
        }
        for (std::uint64_t step = 0; step < 30; ++step) {
            const std::int64_t t = static_cast<std::int64_t>(step) * planted::ms;
            tape.step_begin(1, step, Phase::decode, t);
            tape.scope(1, Brick::attention, t, t + 500 * planted::us);
            tape.step_end(1, Phase::decode, t, t + planted::ms);
        }
        EXPECT_TRUE(tape.save(folder.file(name)).ok());
    };
    save("a.plumb", 1, 0);
    save("b.plumb", 2, 7);
    save("copy of b.plumb", 2, 7);
    const Result<History> history = history_of(folder.path(), {});
    ASSERT_TRUE(history.ok());
    EXPECT_EQ(history->runs.size(), 2u);
    ASSERT_EQ(history->notes.size(), 2u);
    EXPECT_TRUE(contains(history->notes[0], "b.plumb: 7 records were lost")) << history->notes[0];
    EXPECT_TRUE(contains(history->notes[1], "copy of b.plumb is left out: it is the same run as "))
        << history->notes[1];
}

TEST(CompareSides, what_is_neither_two_runs_nor_two_sides_nor_a_folder_is_refused) {
    const OptionValues base{{"base", "a.plumb"}};
    const OptionValues folder{{"history", "."}};
    for (const auto& [files, values] :
         std::vector<std::pair<std::vector<std::string>, OptionValues>>{{{}, {}},
                                                                        {{"a.plumb"}, {}},
                                                                        {{"a.plumb", "b.plumb", "c.plumb"}, {}},
                                                                        {{}, base},
                                                                        {{"a.plumb", "b.plumb"}, base},
                                                                        {{"a.plumb", "b.plumb"}, folder}}) {
        const Result<Answer> answer = ask("compare", files, values);
        ASSERT_FALSE(answer.ok());
        EXPECT_TRUE(contains(answer.error().message, "say what to compare")) << answer.error().message;
    }
    EXPECT_EQ(ask("compare", {}, {{"history", "."}, {"gate", "x"}}).error().message,
              "compare takes history or gate, not both");
}

} // namespace
} // namespace plumb::answers

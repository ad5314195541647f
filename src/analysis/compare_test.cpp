// SPDX-License-Identifier: Apache-2.0
// Comparisons of planted runs: keys, attribution, gates, exit codes.
#include "analysis/compare.hpp"
#include "analysis/compare_gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "planted/tape.hpp"
#include "plumb/backend.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;
using planted::us;

/// 40 decode steps of: rms_norm 10 us, attention 50 us, gate_projection 30 us, lm_head 20 us; 5 us of nothing. `wobble`
/// scales all of it, `attention` that brick.
Tape planted(double wobble, double attention = 1) {
    Tape source;
    source.track(1);
    source.metadata_.comparability = {{"cpu", "some cpu"}};
    std::int64_t t = 0;
    const auto lasting = [&](double microseconds) {
        return static_cast<std::int64_t>(microseconds * wobble * 500) * 2;
    };
    for (std::uint64_t step = 0; step < 40; ++step) {
        const std::int64_t begin = t;
        source.step_begin(1, step, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        const auto brick = [&](Brick name, double microseconds) {
            source.scope(1, name, t, t + lasting(microseconds));
            t += lasting(microseconds);
        };
        brick(Brick::rms_norm, 10);
        brick(Brick::attention, 50 * attention);
        brick(Brick::gate_projection, 30);
        brick(Brick::lm_head, 20);
        t += 5 * us;
        source.step_end(1, Phase::decode, begin, t);
    }
    return source;
}

NamedRun run_of(Tape source, std::int64_t start = 0) {
    const Result<RunFigures> figures = gather_run(source);
    EXPECT_TRUE(figures.ok());
    NamedRun run{"run " + std::to_string(start), figures.ok() ? *figures : RunFigures{}};
    run.figures.start_realtime_ns = start;
    return run;
}

std::vector<NamedRun> side(std::size_t runs, double attention, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> wobble(0.998, 1.002);
    std::vector<NamedRun> out;
    for (std::size_t i = 0; i < runs; ++i) {
        out.push_back(run_of(planted(wobble(random), attention), static_cast<std::int64_t>(2 * i + seed % 2)));
    }
    return out;
}

const CompareRow& compare_row_of(const Comparison& comparison, CompareSubject subject, const std::string& name = "") {
    for (const CompareRow& row : comparison.rows) {
        if (row.subject == subject && row.name == name) {
            return row;
        }
    }
    ADD_FAILURE() << "no row " << name;
    static const CompareRow none;
    return none;
}

Gate gate(const std::string& text) {
    const Result<Gate> parsed = parse_gate(text);
    EXPECT_TRUE(parsed.ok()) << text;
    return parsed.ok() ? *parsed : Gate{};
}

TEST(Compare, takes_the_time_of_each_brick_category_and_step_from_a_recording) {
    const NamedRun run = run_of(planted(1));
    double step = 0;
    double attention = 0;
    for (const RunRow& row : run.figures.rows) {
        if (row.id.subject == CompareSubject::step) {
            step = row.p50;
        }
        if (row.id.subject == CompareSubject::brick && row.id.name == "attention") {
            attention = row.p50;
        }
    }
    EXPECT_NEAR(step, 115e3, 1);
    EXPECT_NEAR(attention, 50e3, 1);
}

TEST(Compare, a_slower_brick_is_named_with_its_step_and_category_and_nothing_else_is) {
    const Comparison comparison = compare_runs(side(5, 1, 2), side(5, 1.1, 3), {}, {});
    EXPECT_EQ(compare_row_of(comparison, CompareSubject::brick, "attention").verdict, Verdict::slow);
    EXPECT_NEAR(*compare_row_of(comparison, CompareSubject::brick, "attention").change.estimate.value, 0.1, 0.01);
    EXPECT_EQ(compare_row_of(comparison, CompareSubject::step).verdict, Verdict::slow);
    EXPECT_EQ(compare_row_of(comparison, CompareSubject::category, "attention").verdict, Verdict::slow);
    for (const char* other : {"rms_norm", "gate_projection", "lm_head"}) {
        EXPECT_EQ(compare_row_of(comparison, CompareSubject::brick, other).verdict, Verdict::same) << other;
    }
    EXPECT_EQ(outcome_of(comparison), Outcome::pass);
}

TEST(Compare, the_change_of_a_step_adds_up_over_bricks_and_the_unattributed_row) {
    const Comparison comparison = compare_runs(side(3, 1, 2), side(4, 1.1, 3), {}, {});
    ASSERT_EQ(comparison.attributions.size(), 1u);
    const Attribution& attribution = comparison.attributions[0];
    double base = 0;
    double changed = 0;
    double change = 0;
    for (const Contribution& part : attribution.parts) {
        base += part.base_ns;
        changed += part.changed_ns;
        change += part.change_ns;
    }
    EXPECT_TRUE(attribution.adds_up);
    EXPECT_NEAR(base, attribution.base_ns, 1e-6);
    EXPECT_NEAR(changed, attribution.changed_ns, 1e-6);
    EXPECT_NEAR(change, attribution.change_ns, 1e-6);
    EXPECT_EQ(attribution.parts.front().name, "attention");
    EXPECT_NEAR(attribution.parts.front().change_ns, 5e3, 200);
    EXPECT_EQ(attribution.parts.back().name, "unattributed");
    EXPECT_NEAR(attribution.parts.back().base_ns, 5e3, 50);
}

TEST(Compare, F13_commit_time_command_and_clock_do_not_keep_runs_apart_but_the_machine_and_model_do) {
    std::vector<NamedRun> base = side(3, 1, 2);
    std::vector<NamedRun> changed = side(3, 1, 3);
    for (NamedRun& run : base) {
        run.figures.identity = {{"commit", "a"}, {"command", "x"}, {"clock.cpu_mhz", "3000"}};
    }
    for (NamedRun& run : changed) {
        run.figures.identity = {{"commit", "b"}, {"command", "y"}, {"clock.cpu_mhz", "2100"}};
        run.figures.start_realtime_ns += 1'000'000'000'000;
    }
    const Comparison comparison = compare_runs(base, changed, {}, {});
    EXPECT_TRUE(comparison.comparable);
    EXPECT_TRUE(comparison.differences.empty());
    ASSERT_EQ(comparison.changed[0].conditions.size(), 1u) << "the clock is shown, though";
    EXPECT_EQ(comparison.changed[0].conditions[0].second, "2100");

    changed[1].figures.key = {{"cpu", "another cpu"}};
    changed[1].figures.description = {{"model", "another"}};
    const Comparison apart = compare_runs(base, changed, {gate("decode.step.p50=+50%")}, {});
    EXPECT_FALSE(apart.comparable);
    EXPECT_EQ(outcome_of(apart), Outcome::unknown);
    ASSERT_EQ(apart.differences.size(), 2u);
    EXPECT_EQ(apart.differences[0].field, "cpu");
    EXPECT_EQ(apart.differences[0].changed, "some cpu | another cpu") << "one odd run is enough";
    EXPECT_EQ(apart.differences[1].field, "model");
    EXPECT_TRUE(apart.rows.empty());
    EXPECT_EQ(apart.gates[0].outcome, GateOutcome::undecided);
    CompareOptions options;
    options.ignored_fields = {"cpu", "model"};
    EXPECT_TRUE(compare_runs(base, changed, {}, options).comparable);
}

TEST(Compare, F14_two_runs_a_side_never_pass_a_gate_and_never_exit_with_0) {
    const Comparison wide_open = compare_runs(side(2, 1, 2), side(2, 1, 3), {gate("decode.step.p50=+900%")}, {});
    EXPECT_EQ(wide_open.gates[0].outcome, GateOutcome::undecided);
    EXPECT_EQ(outcome_of(wide_open), Outcome::unknown);
    EXPECT_EQ(outcome_of(compare_runs(side(2, 1, 2), side(5, 2, 3), {}, {})), Outcome::unknown);
    for (const CompareRow& row : wide_open.rows) {
        EXPECT_EQ(row.verdict, Verdict::undecided);
    }
}

TEST(Compare, T16_a_gate_passes_fails_and_stays_undecided) {
    const std::vector<NamedRun> base = side(5, 1, 2);
    const std::vector<NamedRun> changed = side(5, 1.1, 3); // the step by 4.3 %
    const auto outcome = [&](const std::string& text) {
        return compare_runs(base, changed, {gate(text)}, {}).gates[0].outcome;
    };
    EXPECT_EQ(outcome("decode.step.p50=+10%"), GateOutcome::passed);
    EXPECT_EQ(outcome("decode.step.p50=+1%"), GateOutcome::failed);
    EXPECT_EQ(outcome("step.p50=+4.35%"), GateOutcome::undecided);
    EXPECT_EQ(outcome("brick:attention.p50=+5%"), GateOutcome::failed);
    EXPECT_EQ(outcome("brick:head.mean=+5%"), GateOutcome::passed) << "an alias of lm_head";
    EXPECT_EQ(outcome("category:ffn.p50=+5%"), GateOutcome::passed);
    EXPECT_EQ(outcome("brick:no_such.p50=+5%"), GateOutcome::undecided);
    EXPECT_EQ(outcome("decode.step.p99=+50%"), GateOutcome::undecided) << "40 steps have no p99";
    EXPECT_EQ(outcome("fingerprint"), GateOutcome::undecided) << "nothing was compared";
    EXPECT_EQ(outcome_of(compare_runs(base, changed, {gate("step.p50=+10%"), gate("step.p50=+1%")}, {})),
              Outcome::fail);
    EXPECT_EQ(outcome_of(compare_runs(base, changed, {gate("step.p50=+10%"), gate("step.p99=+1%")}, {})),
              Outcome::unknown);
    EXPECT_EQ(outcome_of(compare_runs(base, changed, {gate("step.p50=+10%")}, {})), Outcome::pass);
}

TEST(Compare, T16_a_run_that_lost_records_passes_no_gate_on_a_brick_but_its_steps_stand) {
    std::vector<NamedRun> base = side(5, 1, 2);
    Tape lossy = planted(1, 0.5);
    lossy.counters_.drops = {{"ring full", 7}, {"tensor not checked", 100}};
    std::vector<NamedRun> changed = side(5, 0.5, 3);
    changed[2] = run_of(lossy, 5);
    EXPECT_EQ(changed[2].figures.lost, 7u);
    EXPECT_EQ(changed[1].figures.lost, 0u);
    for (const bool in_base : {false, true}) {
        if (in_base) {
            std::swap(base[2].figures.lost, changed[2].figures.lost);
        }
        const Comparison comparison = compare_runs(
            base, changed, {gate("brick:attention.p50=+5%"), gate("category:ffn.p50=+5%"), gate("step.p50=+5%")}, {});
        EXPECT_EQ(comparison.gates[0].outcome, GateOutcome::undecided);
        EXPECT_EQ(comparison.gates[1].outcome, GateOutcome::undecided);
        EXPECT_EQ(comparison.gates[2].outcome, GateOutcome::passed);
        EXPECT_EQ(compare_row_of(comparison, CompareSubject::step).verdict, Verdict::fast);
        for (const CompareRow& row : comparison.rows) {
            if (row.subject != CompareSubject::step) {
                EXPECT_EQ(row.verdict, Verdict::undecided) << row.name;
            }
        }
        EXPECT_NE(comparison.notes.back().find("7 records were lost"), std::string::npos);
    }
    changed[2] = run_of(planted(1, 0.5), 5);
    EXPECT_EQ(compare_runs(side(5, 1, 2), changed, {gate("brick:attention.p50=+5%")}, {}).gates[0].outcome,
              GateOutcome::passed);
}

/// Of 40 decode steps on a device each runs attention for 30 us on the queue and replays a graph that holds another
/// 100 us of it; every fourth replay is sampled.
Tape eager_and_captured() {
    constexpr std::uint32_t host = 1, queue = 0x80000001, replays = 0x80000040;
    Tape source;
    source.track(host);
    recording::TrackInfo info;
    info.id = queue;
    info.kind = recording::TrackKind::device_queue;
    info.source = "cuda_event";
    source.device_track(info);
    info.id = replays;
    info.kind = recording::TrackKind::captured_graph;
    info.graph_key = 64;
    source.device_track(info);
    recording::GraphInfo graph;
    graph.key = 64;
    graph.track = replays;
    graph.sites.push_back({Name(Brick::attention).id, 0, 0, 1, true, false});
    source.graphs_.push_back(graph);
    for (std::uint64_t step = 0; step < 40; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * 1000 * us;
        const bool sampled = step % 4 == 3;
        source.step_begin(host, step, Phase::decode, t);
        source.launch(host, 64, sampled ? launch_instrumented : 0, queue, t + us, t + 3 * us);
        source.device_scope(queue, Brick::attention, step, -1, t + 500 * us, t + 530 * us);
        if (sampled) {
            source.device_scope(replays, Brick::attention, step, -1, t + 20 * us, t + 120 * us);
        }
        source.step_end(host, Phase::decode, t, t + 1000 * us);
    }
    return source;
}

TEST(Compare, ranks_of_one_step_are_one_run_and_decide_no_gate) {
    const auto ranks = [](double attention, std::uint64_t seed) {
        std::vector<NamedRun> runs = side(8, attention, seed);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            runs[i].figures.rank = std::to_string(i);
            runs[i].figures.phases[static_cast<std::size_t>(Phase::decode)].steps = 1;
        }
        return runs;
    };
    const std::vector<Gate> gates = {gate("brick:attention.mean=+5%"), gate("step.mean=+50%")};
    std::vector<NamedRun> changed = ranks(1.5, 3);
    const Comparison comparison = compare_runs(ranks(1, 2), changed, gates, {});
    EXPECT_TRUE(comparison.one_step);
    EXPECT_EQ(compare_row_of(comparison, CompareSubject::brick, "attention").verdict, Verdict::slow);
    for (const GateResult& result : comparison.gates) {
        EXPECT_EQ(result.outcome, GateOutcome::undecided) << result.sentence;
    }
    EXPECT_EQ(outcome_of(comparison), Outcome::unknown);
    changed[1].figures.rank = "0"; // two of one rank are two runs
    std::vector<NamedRun> base = ranks(1, 2);
    base[1].figures.phases[static_cast<std::size_t>(Phase::decode)].steps = 2;
    EXPECT_FALSE(compare_runs(base, changed, gates, {}).one_step);
}

TEST(Compare, a_brick_that_runs_both_eagerly_and_in_captured_graphs_has_the_time_of_both_in_one_row) {
    const NamedRun run = run_of(eager_and_captured());
    std::size_t rows = 0;
    for (const RunRow& row : run.figures.rows) {
        if (row.id.subject != CompareSubject::brick || row.id.name != "attention") {
            continue;
        }
        ++rows;
        EXPECT_NEAR(row.mean, 130e3, 1);
        EXPECT_NEAR(row.central, 130e3, 1);
        EXPECT_TRUE(row.per_replay);
        EXPECT_TRUE(std::isnan(row.p50));
    }
    EXPECT_EQ(rows, 1u);
}

/// Puts a brick's row into a run, beside those that it has.
void add_brick(NamedRun& run, const std::string& name, bool device, double ns, bool sampled = false) {
    RunRow row;
    row.id = {CompareSubject::brick, Phase::decode, device, name, 0};
    row.p50 = row.p90 = row.p99 = row.mean = row.central = ns;
    row.per_replay = sampled;
    std::vector<RunRow>& rows = run.figures.rows;
    rows.insert(
        std::upper_bound(rows.begin(), rows.end(), row, [](const RunRow& a, const RunRow& b) { return a.id < b.id; }),
        row);
}

TEST(Compare, T16_a_gate_on_a_name_of_host_and_device_judges_both) {
    std::vector<NamedRun> base = side(5, 1, 2), faster = side(5, 1, 3), slower = side(5, 1.2, 3);
    for (std::size_t run = 0; run < 5; ++run) {
        const double wobble = 1 + 1e-3 * static_cast<double>(run);
        for (std::vector<NamedRun>* runs : {&base, &slower}) {
            add_brick((*runs)[run], "attention", true, 2e6 * wobble);
        }
    }
    const std::vector<Gate> limit{gate("brick:attention.p50=+5%")};
    const GateResult host = compare_runs(base, slower, limit, {}).gates[0];
    EXPECT_EQ(host.outcome, GateOutcome::failed) << host.sentence;
    EXPECT_NE(host.sentence.find("on the host: changed by +19"), std::string::npos) << host.sentence;
    EXPECT_NE(host.sentence.find("on the device: changed by"), std::string::npos) << host.sentence;
    EXPECT_EQ(compare_runs(base, faster, limit, {}).gates[0].outcome, GateOutcome::undecided)
        << "it no longer runs on the device";
    add_brick(faster[0], "attention", true, 2e6);
    EXPECT_EQ(compare_runs(base, faster, limit, {}).gates[0].outcome, GateOutcome::undecided) << "one run has it";
}

TEST(Compare, a_brick_that_one_side_does_not_have_stands_in_the_table_whatever_the_runs_of_a_side) {
    std::vector<NamedRun> changed = side(3, 1, 3);
    for (NamedRun& run : changed) {
        add_brick(run, "sync_barrier", false, 30e3);
    }
    const CompareRow row =
        compare_row_of(compare_runs(side(6, 1, 2), changed, {}, {}), CompareSubject::brick, "sync_barrier");
    EXPECT_NE(row.reason, too_small);
}

TEST(Compare, bricks_of_other_steps_leave_nothing_unattributed) {
    std::vector<NamedRun> base = side(3, 1, 2), changed = side(3, 1, 3);
    for (std::vector<NamedRun>* runs : {&base, &changed}) {
        for (NamedRun& run : *runs) {
            add_brick(run, "all_reduce", false, 400e3, true);
        }
    }
    const Comparison comparison = compare_runs(base, changed, {}, {});
    ASSERT_EQ(comparison.attributions.size(), 1u);
    EXPECT_FALSE(comparison.attributions[0].adds_up);
    for (const Contribution& part : comparison.attributions[0].parts) {
        EXPECT_NE(part.name, "unattributed");
    }
    ASSERT_FALSE(comparison.notes.empty());
    EXPECT_NE(comparison.notes.back().find("do not add up"), std::string::npos) << comparison.notes.back();
}

TEST(Compare, words_that_are_no_gate_are_refused_with_examples) {
    for (const char* text : {"",
                             "=",
                             "step",
                             "step.p50",
                             "step.p50=5%",
                             "step.p50=+5",
                             "step.p50=+x%",
                             "step.p50=+-5%",
                             "step.p50=-100%",
                             "step.p50=+nan%",
                             "step.p51=+5%",
                             "step=+5%",
                             "brick:.p50=+5%",
                             "layer:x.p50=+5%",
                             "layer:.p50=+5%",
                             "category:nonsense.p50=+5%",
                             "tile:3.p50=+5%",
                             "decode.p50=+5%",
                             "prefill.decode.step.p50=+5%",
                             "fingerprints"}) {
        const Result<Gate> parsed = parse_gate(text);
        EXPECT_FALSE(parsed.ok()) << text;
        if (!parsed.ok()) {
            EXPECT_NE(parsed.error().message.find("for example"), std::string::npos) << text;
        }
    }
    EXPECT_EQ(gate("prefill.layer:12.mean=-3%").layer, 12u);
    EXPECT_NEAR(gate("prefill.layer:12.mean=-3%").limit, -0.03, 1e-12);
}

TEST(Compare, history_is_in_the_order_of_time_and_leaves_strangers_out) {
    std::vector<NamedRun> runs = side(4, 1, 2);
    runs[0].figures.start_realtime_ns = 100;
    runs[1].figures.start_realtime_ns = 50;
    runs[2].figures.start_realtime_ns = 75;
    runs[2].figures.key = {{"cpu", "another"}};
    runs[3].figures.start_realtime_ns = 200;
    const History history = history_of_runs(runs, {});
    ASSERT_EQ(history.runs.size(), 3u);
    EXPECT_EQ(history.runs[0].start_realtime_ns, 50);
    EXPECT_EQ(history.runs[2].start_realtime_ns, 200);
    ASSERT_EQ(history.notes.size(), 1u);
    EXPECT_NE(history.notes[0].find("cpu"), std::string::npos);
    ASSERT_FALSE(history.rows.empty());
    EXPECT_EQ(history.rows[0].subject, CompareSubject::step);
    EXPECT_EQ(history.rows[0].runs_ns.size(), 3u);
}

} // namespace
} // namespace plumb::analysis

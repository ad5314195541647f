// SPDX-License-Identifier: Apache-2.0
// Every check on a recording in which it holds, on its twin in which it fails, and where it cannot be judged.
#include "answers/check/check.hpp"

#include <gtest/gtest.h>

#include "analysis/planted_report_testing.hpp"
#include "analysis/replay_builder.hpp"
#include "plumb/backend.hpp"
#include "recording/drop_reasons.hpp"

namespace plumb {
namespace {

using namespace analysis;

using planted::Tape;
using planted::us;

constexpr std::uint32_t host = 1, queue = 0x80000001;

/// One prefill step, then seven decode steps: eight tokens, as a generation of eight leaves them.
struct Plant {
    int heads_in_step_3 = 1;
    std::uint64_t tokens = 1;
    std::int64_t covered = 950; // of each 1,000 us
    bool head_on_sampled_queue = false;
    std::uint64_t step_without_tokens = 0; // 0: none
};

void plant(Tape& source, const Plant& how = {}) {
    source.track(host);
    if (how.head_on_sampled_queue) {
        recording::TrackInfo info;
        info.id = queue;
        info.kind = recording::TrackKind::device_queue;
        info.source = "cuda_event";
        info.sampled_every = 4;
        source.device_track(info);
    }
    for (std::uint64_t i = 0; i < 8; ++i) {
        const Phase phase = i == 0 ? Phase::prefill : Phase::decode;
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(host, i, phase, t);
        if (i == 0 || i != how.step_without_tokens) {
            source.step_value(host, i == 0 ? StepValue::prefill_tokens : StepValue::decode_tokens,
                              i == 0 ? 64 : how.tokens);
        }
        source.scope(host, Brick::attention, t, t + (how.covered - 50) * us);
        for (int head = 0; head < (i == 3 ? how.heads_in_step_3 : 1) && !how.head_on_sampled_queue; ++head) {
            const std::int64_t begin = t + (how.covered - 50 + 10 * head) * us;
            source.scope(host, Brick::lm_head, begin, begin + (head == 0 && how.heads_in_step_3 < 2 ? 50 : 10) * us);
        }
        if (how.head_on_sampled_queue && i % 4 == 0) {
            source.device_scope(queue, Brick::lm_head, i, -1, t + 100 * us, t + 150 * us);
        }
        source.step_end(host, phase, t, t + 1'000 * us);
    }
}

CheckReport check(Tape& source, const Invariants& invariants) {
    Checked run;
    run.path = "a.plumb";
    run.report = report_of(source);
    run.records_missing = recording::lost_records(source.counters_);
    const auto calls = count_calls(source, invariants.phase, invariants.calls);
    EXPECT_TRUE(calls.ok());
    run.calls = *calls;
    const auto replays = build_replays(source);
    EXPECT_TRUE(replays.ok());
    run.replays = *replays;
    CheckReport report;
    report.rows = check_one(run, invariants);
    report.verdict = verdict_of(report.rows);
    return report;
}

CheckRow check_calls(const Plant& how, const std::string& words, Phase phase = Phase::decode) {
    Tape source;
    plant(source, how);
    Invariants invariants;
    invariants.phase = phase;
    invariants.calls = {*parse_expected_calls(words)};
    return check(source, invariants).rows.at(0);
}

TEST(Check, T17_a_count_per_step_holds_exactly_however_the_run_ends) {
    // Eight tokens come of one prefill and seven decode steps: a count per generated token would be off by one here.
    const CheckRow row = check_calls({}, "lm_head=1/step");
    EXPECT_EQ(row.verdict, Outcome::pass) << row.finding;
    EXPECT_DOUBLE_EQ(*row.found.value, 1);
    EXPECT_EQ(row.finding, "in each of 7 decode steps");
    EXPECT_EQ(check_calls({}, "lm_head=1/step", Phase::prefill).finding, "in each of 1 prefill steps");
}

TEST(Check, T17_one_call_too_few_or_too_many_in_one_step_is_named) {
    const CheckRow few = check_calls({0}, "lm_head=1/step");
    EXPECT_EQ(few.verdict, Outcome::fail);
    EXPECT_EQ(few.finding, "1 of 7 decode steps differ: step 3 has 0 calls, not 1; the steps have 0 to 1");
    const CheckRow many = check_calls({2}, "lm_head=1/step");
    EXPECT_EQ(many.verdict, Outcome::fail);
    EXPECT_EQ(many.finding, "1 of 7 decode steps differ: step 3 has 2 calls, not 1; the steps have 1 to 2");
}

TEST(Check, T16_a_wrong_count_fails) {
    EXPECT_EQ(check_calls({}, "lm_head=2/step").verdict, Outcome::fail);
    EXPECT_EQ(check_calls({}, "lm_head=0/step").verdict, Outcome::fail);
    EXPECT_EQ(check_calls({}, "sampling=1/step").verdict, Outcome::fail); // it has no row at all
    EXPECT_EQ(check_calls({}, "sampling=0/step").verdict, Outcome::pass);
}

TEST(Check, counts_per_token_scale_with_the_tokens_of_each_step) {
    EXPECT_EQ(check_calls({}, "lm_head=1/token").verdict, Outcome::pass);
    EXPECT_EQ(check_calls({1, 4}, "lm_head=1/token").verdict, Outcome::fail);
    EXPECT_EQ(check_calls({1, 4}, "lm_head=1/step").verdict, Outcome::pass);
}

TEST(Check, counts_per_token_cannot_be_judged_where_steps_carry_no_tokens) {
    const CheckRow none = check_calls({1, 0}, "lm_head=1/token");
    EXPECT_EQ(none.verdict, Outcome::unknown);
    EXPECT_NE(none.found.reason.find("7 of 7 steps carry no tokens"), std::string::npos) << none.found.reason;
    Plant some;
    some.step_without_tokens = 3;
    EXPECT_EQ(check_calls(some, "lm_head=1/token").verdict, Outcome::unknown);
    EXPECT_EQ(check_calls(some, "lm_head=1/step").verdict, Outcome::pass);
    EXPECT_EQ(check_calls(some, "lm_head=2/token").verdict, Outcome::fail) << "those with tokens break it";
}

TEST(Check, calls_that_may_be_lost_cannot_be_judged_but_calls_too_many_can) {
    for (const int heads : {0, 2}) {
        Tape source;
        plant(source, {heads});
        source.counters_.drops = {{"ring full", 1}};
        Invariants invariants;
        invariants.calls = {*parse_expected_calls("lm_head=1/step")};
        const CheckRow row = check(source, invariants).rows.at(0);
        EXPECT_EQ(row.verdict, heads == 0 ? Outcome::unknown : Outcome::fail) << row.finding;
        EXPECT_EQ(row.found.value.has_value(), heads != 0);
    }
}

TEST(Check, what_was_found_is_no_pass_where_records_are_missing) {
    Tape source;
    plant(source);
    source.counters_.drops = {{"ring full", 1}};
    Invariants invariants;
    invariants.calls = {*parse_expected_calls("lm_head=1/step"), *parse_expected_calls("sampling=0/step")};
    invariants.coverage = 0.5;
    const CheckReport report = check(source, invariants);
    for (const CheckRow& row : report.rows) {
        EXPECT_EQ(row.verdict, Outcome::unknown) << row.finding;
        EXPECT_TRUE(row.found.reason.ends_with("; but records are missing, so this cannot be judged")) << row.finding;
    }
    source.counters_.drops = {{"marks of a request without its begin", 1}};
    EXPECT_EQ(check(source, invariants).verdict, Outcome::pass) << "what is missing is no call";
}

TEST(Check, runs_whose_steps_take_no_time_have_no_variation) {
    Invariants invariants;
    invariants.variation = 0.05;
    const CheckRow row = check_variation(std::vector<Figure>(3, Figure{0, {}}), invariants);
    EXPECT_EQ(row.verdict, Outcome::unknown);
    EXPECT_EQ(row.found.reason, "the steps of all runs took no time");
}

TEST(Check, a_phase_without_steps_cannot_be_judged) {
    const CheckRow row = check_calls({}, "lm_head=1/step", Phase::mixed);
    EXPECT_EQ(row.verdict, Outcome::unknown);
    EXPECT_EQ(row.found.reason, "the recording has no complete mixed step");
}

TEST(Check, a_queue_that_is_timed_in_some_steps_is_judged_in_those) {
    Plant how;
    how.head_on_sampled_queue = true;
    const CheckRow row = check_calls(how, "lm_head=1/step");
    EXPECT_EQ(row.verdict, Outcome::pass);
    EXPECT_EQ(row.finding, "in each of 1 decode steps (in 6 others its calls are not known)");
}

/// Eight steps of one replay each; the graph holds two norms and a head.
void plant_graphs(Tape& source, bool described) {
    source.track(host);
    recording::GraphInfo graph;
    graph.key = 64;
    graph.captures = 2;
    graph.node_checks = 1;
    if (described) {
        graph.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false},
                       {Name(Brick::rms_norm).id, 2, 0, 1, true, false},
                       {Name(Brick::lm_head).id, 0, 0, 1, true, false}};
    }
    source.graphs_.push_back(graph);
    for (std::uint64_t i = 0; i < 8; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(host, i, Phase::decode, t);
        source.launch(host, 64, 0, queue, t + 10 * us, t + 20 * us);
        if (i == 5) {
            source.launch(host, 64, 0, queue, t + 30 * us, t + 40 * us);
        }
        source.step_end(host, Phase::decode, t, t + 1'000 * us);
    }
}

TEST(Check, calls_inside_captured_graphs_are_replays_times_sites) {
    Tape source;
    plant_graphs(source, true);
    Invariants invariants;
    invariants.calls = {*parse_expected_calls("rms_norm=2/step"), *parse_expected_calls("head=1/step")};
    const CheckReport report = check(source, invariants);
    for (const CheckRow& row : report.rows) {
        EXPECT_EQ(row.verdict, Outcome::fail);
    }
    EXPECT_EQ(report.rows[0].finding, "1 of 8 decode steps differ: step 5 has 4 calls, not 2; the steps have 2 to 4");
    Tape unknown;
    plant_graphs(unknown, false);
    EXPECT_EQ(check(unknown, invariants).verdict, Outcome::unknown);
}

TEST(Check, T16_coverage_below_the_limit_fails_and_names_its_denominator) {
    Invariants invariants;
    invariants.coverage = 0.9;
    Tape good, bad;
    plant(good);
    plant(bad, {1, 1, 890});
    EXPECT_EQ(check(good, invariants).verdict, Outcome::pass);
    const CheckReport failed = check(bad, invariants);
    EXPECT_EQ(failed.verdict, Outcome::fail);
    EXPECT_NEAR(*failed.rows[0].found.value, 0.89, 1e-9);
    EXPECT_EQ(failed.rows[0].finding,
              "leaf bricks cover 89 % of the busy time of 7 decode steps; 11 % lie in no brick");
    Tape none;
    none.track(host);
    EXPECT_EQ(check(none, invariants).verdict, Outcome::unknown);
}

TEST(Check, coverage_of_a_device_that_is_timed_in_some_steps_is_that_of_its_queues) {
    Invariants invariants;
    invariants.coverage = 0.9;
    Plant how;
    how.head_on_sampled_queue = true;
    how.covered = 60; // the host does next to nothing in bricks
    Tape source;
    plant(source, how);
    const CheckReport report = check(source, invariants);
    EXPECT_EQ(report.verdict, Outcome::pass) << report.rows[0].finding;
    EXPECT_EQ(report.rows[0].finding,
              "leaf bricks cover at least 100 % of the time that device queues are busy, in 1 timed decode steps");
    EXPECT_EQ(*report.rows[0].found.value, 1);
}

TEST(Check, T16_losses_beyond_the_limit_fail_and_are_named) {
    Invariants invariants;
    invariants.drops = 2;
    invariants.pending = 0;
    Tape clean;
    plant(clean);
    EXPECT_EQ(check(clean, invariants).verdict, Outcome::pass);
    Tape lossy;
    plant(lossy);
    lossy.counters_.drops = {{"ring full", 3}};
    const CheckReport dropped = check(lossy, invariants);
    EXPECT_EQ(dropped.rows[0].verdict, Outcome::fail);
    EXPECT_EQ(dropped.rows[0].finding, "3 (ring full: 3)");
    EXPECT_EQ(dropped.rows[1].verdict, Outcome::pass);
    invariants.drops = 3;
    EXPECT_EQ(check(lossy, invariants).verdict, Outcome::pass);
}

TEST(Check, T16_scopes_without_a_time_fail_the_check_of_what_is_pending) {
    Invariants invariants;
    invariants.drops = 0;
    invariants.pending = 4;
    Tape source;
    plant(source);
    source.counters_.unresolved = 5;
    const CheckReport report = check(source, invariants);
    EXPECT_EQ(report.rows[0].verdict, Outcome::pass) << report.rows[0].finding; // nothing was dropped
    EXPECT_EQ(report.rows[1].verdict, Outcome::fail);
    EXPECT_DOUBLE_EQ(*report.rows[1].found.value, 5);
    invariants.pending = 5;
    EXPECT_EQ(check(source, invariants).verdict, Outcome::pass);
}

TEST(Check, T16_a_graph_that_lost_kernels_fails_the_node_check) {
    Invariants invariants;
    invariants.node_check = true;
    Tape same, lost, baked, once, none;
    plant_graphs(same, true);
    EXPECT_EQ(check(same, invariants).verdict, Outcome::pass);
    plant_graphs(lost, true);
    lost.graphs_[0].node_changes = {{"rope_kernel", 28, 0}};
    const CheckReport report = check(lost, invariants);
    EXPECT_EQ(report.verdict, Outcome::fail);
    EXPECT_EQ(report.rows[0].finding, "graph 64: rope_kernel 28 -> 0");
    plant_graphs(baked, true);
    baked.graphs_[0].baked_in = {"kernel rope, parameter 2"};
    EXPECT_EQ(check(baked, invariants).verdict, Outcome::fail);
    plant_graphs(once, true);
    once.graphs_[0].node_checks = 0;
    EXPECT_EQ(check(once, invariants).verdict, Outcome::unknown);
    plant(none);
    EXPECT_EQ(check(none, invariants).rows[0].found.reason, "no graph was captured");
}

TEST(Check, T16_runs_that_vary_too_much_fail_and_too_few_are_no_answer) {
    Invariants invariants;
    invariants.variation = 0.05;
    const auto figures = [](std::vector<double> values) {
        std::vector<Figure> all;
        for (const double value : values) {
            all.push_back({value, {}});
        }
        return all;
    };
    const CheckRow good = check_variation(figures({100, 102, 98}), invariants);
    EXPECT_EQ(good.verdict, Outcome::pass);
    EXPECT_NEAR(*good.found.value, 0.02, 1e-12);
    EXPECT_EQ(check_variation(figures({100, 110, 90}), invariants).verdict, Outcome::fail);
    EXPECT_EQ(check_variation(figures({100, 100}), invariants).verdict, Outcome::unknown);
    EXPECT_EQ(check_variation({{100, {}}, {100, {}}, {std::nullopt, "none"}}, invariants).finding, "none");
    Tape source;
    plant(source);
    EXPECT_DOUBLE_EQ(*mean_period(report_of(source), Phase::decode).value, 1e6);
    EXPECT_FALSE(mean_period(report_of(source), Phase::mixed).value);
}

TEST(Check, T16_checking_nothing_is_no_success) {
    EXPECT_FALSE(validate({}).ok());
    EXPECT_EQ(verdict_of({}), Outcome::unknown);
    Invariants nonsense;
    nonsense.coverage = 90;
    EXPECT_FALSE(validate(nonsense).ok());
    nonsense.coverage = 0.9;
    EXPECT_TRUE(validate(nonsense).ok());
    nonsense.variation = 0;
    EXPECT_FALSE(validate(nonsense).ok());
    nonsense.variation.reset();
    nonsense.calls.resize(65);
    EXPECT_FALSE(validate(nonsense).ok());
}

TEST(Check, a_failure_outweighs_what_is_unknown_and_that_outweighs_success) {
    EXPECT_EQ(worse(Outcome::unknown, Outcome::fail), Outcome::fail);
    EXPECT_EQ(worse(Outcome::pass, Outcome::unknown), Outcome::unknown);
    EXPECT_EQ(worse(Outcome::pass, Outcome::pass), Outcome::pass);
}

TEST(Check, words_of_a_count_are_read_exactly_or_refused) {
    EXPECT_EQ(parse_expected_calls("a=b=12/token")->brick, "a=b");
    EXPECT_EQ(parse_expected_calls("a=b=12/token")->count, 12u);
    EXPECT_TRUE(parse_expected_calls("a=b=12/token")->per_token);
    for (const char* words :
         {"", "lm_head", "lm_head=1", "lm_head=/step", "lm_head=1/", "lm_head=1/layer", "lm_head=-1/step",
          "lm_head=1.5/step", "lm_head=1 /step", "=1/step", "lm_head=99999999999999999999/step"}) {
        EXPECT_FALSE(parse_expected_calls(words).ok()) << words;
    }
}

} // namespace
} // namespace plumb

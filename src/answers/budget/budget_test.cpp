// SPDX-License-Identifier: Apache-2.0
// Budgets against a recording whose truth is known: in each 1,000 us step a qkv projection of 300 us, a head of 200 us and
// a block of 100 us that holds a norm of 60 us.
#include "answers/budget/budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/planted_report_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;
using planted::us;

Report run_of(std::uint64_t tokens_per_step, std::int64_t load_before = 0) {
    Tape source;
    source.track(1);
    source.names_ = {{300, Category::other, "block"}};
    source.step_begin(1, 0, Phase::prefill, load_before);
    source.step_value(1, StepValue::prefill_tokens, 64);
    source.step_end(1, Phase::prefill, load_before, load_before + 5'000 * us);
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::int64_t t = load_before + 5'000 * us + static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(1, i + 1, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, tokens_per_step);
        source.scope(1, Brick::qkv_projection, t, t + 300 * us);
        source.scope(1, Brick::rms_norm, t + 320 * us, t + 380 * us);
        source.scope(1, Name(300), t + 300 * us, t + 400 * us);
        source.scope(1, Brick::lm_head, t + 400 * us, t + 600 * us);
        source.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    return report_of(source);
}

BudgetReport budget(const Report& report, double ns_per_token, const std::vector<std::string>& limits = {}) {
    BudgetOptions options;
    options.ns_per_token = ns_per_token;
    for (const std::string& words : limits) {
        const auto limit = parse_brick_limit(words);
        EXPECT_TRUE(limit.ok());
        options.bricks.push_back(*limit);
    }
    return budget_of(report, options);
}

const BudgetRow& row(const BudgetReport& report, const std::string& name) {
    for (const BudgetRow& candidate : report.rows) {
        if (candidate.name == name) {
            return candidate;
        }
    }
    ADD_FAILURE() << "no row " << name;
    static const BudgetRow empty;
    return empty;
}

TEST(Budget, a_run_is_within_its_budget_up_to_the_last_nanosecond_and_over_it_beyond) {
    const Report run = run_of(1);
    EXPECT_EQ(budget(run, 1'000'000).verdict, Outcome::pass);
    EXPECT_EQ(budget(run, 999'999).verdict, Outcome::fail);
    EXPECT_DOUBLE_EQ(*budget(run, 999'000).room_ns.value, -1'000);
}

TEST(Budget, T13_a_budget_grows_with_the_tokens_of_a_step) {
    const Report run = run_of(4);
    const BudgetReport wide = budget(run, 250'000, {"lm_head=50us"});
    EXPECT_DOUBLE_EQ(*wide.tokens_per_step.value, 4);
    EXPECT_DOUBLE_EQ(*wide.budget_ns.value, 1'000'000);
    EXPECT_EQ(wide.period_verdict, Outcome::pass);
    EXPECT_DOUBLE_EQ(*row(wide, "lm_head").allowed_ns.value, 200'000);
    EXPECT_EQ(row(wide, "lm_head").verdict, Outcome::pass);
    EXPECT_DOUBLE_EQ(*row(wide, "lm_head").token_ns.value, 50'000);
    EXPECT_EQ(budget(run, 249'000).verdict, Outcome::fail);
    EXPECT_EQ(budget(run, 250'000, {"lm_head=49us"}).verdict, Outcome::fail);
    EXPECT_EQ(budget(run, 250'000, {"lm_head=49us/step"}).verdict, Outcome::fail);
    EXPECT_EQ(budget(run, 250'000, {"lm_head=200us/step"}).verdict, Outcome::pass);
}

TEST(Budget, T13_neither_loading_nor_prefill_is_in_the_budget_of_decode) {
    const BudgetReport decode = budget(run_of(1, 100'000 * us), 1'000'000);
    EXPECT_EQ(decode.steps, 10u);
    EXPECT_DOUBLE_EQ(*decode.period_ns.value, 1'000'000);
    EXPECT_EQ(decode.verdict, Outcome::pass);
}

TEST(Budget, shares_of_leaves_and_of_the_account_add_up_to_the_period) {
    const BudgetReport report = budget(run_of(1), 500'000);
    double share = 0;
    for (const BudgetRow& part : report.rows) {
        share += part.parent ? 0 : *part.budget_share.value;
    }
    EXPECT_NEAR(share, 2, 1e-11); // the period is twice the budget
    EXPECT_DOUBLE_EQ(*row(report, "qkv_projection").budget_share.value, 0.6);
    EXPECT_DOUBLE_EQ(*row(report, "unattributed").step_ns.value, 440'000);
    EXPECT_DOUBLE_EQ(*row(report, "qkv_projection").allowed_ns.value, 150'000);
    EXPECT_DOUBLE_EQ(*row(report, "qkv_projection").room_ns.value, -150'000);
}

TEST(Budget, rows_add_up_to_the_period_though_bricks_slept) {
    Tape source;
    source.track(1);
    for (std::int64_t i = 0; i < 10; ++i) {
        const std::int64_t t = i * 2'000 * us, off = i * 500 * us;
        source.cpu_time(1, t, t - off);
        source.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        source.scope(1, Brick::attention, t, t + 1'500 * us);
        source.cpu_time(1, t + 1'500 * us, t + 1'000 * us - off);
        source.scope(1, Brick::lm_head, t + 1'500 * us, t + 1'600 * us);
        source.step_end(1, Phase::decode, t, t + 2'000 * us);
    }
    const BudgetReport report = budget(report_of(source), 2'000'000);
    double sum = 0;
    for (const BudgetRow& part : report.rows) {
        sum += *part.step_ns.value;
    }
    EXPECT_DOUBLE_EQ(*row(report, "attention").step_ns.value, 1'500'000);
    EXPECT_NEAR(*row(report, "idle").step_ns.value, 500'000, 1);
    EXPECT_NEAR(*row(report, "idle in bricks").step_ns.value, -500'000, 1);
    EXPECT_NEAR(sum, *report.period_ns.value, 1e-3);
}

TEST(Budget, rows_add_up_to_the_period_though_bricks_lie_between_its_steps) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
        const Phase phase = i % 4 == 3 ? Phase::prefill : Phase::decode;
        source.step_begin(1, i, phase, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        source.scope(1, Brick::attention, t, t + 300 * us);
        source.step_end(1, phase, t, t + 310 * us);
        source.scope(1, Brick::sampling, t + 320 * us, t + 420 * us);
        t += 450 * us;
    }
    const Report run = report_of(source);
    const BudgetReport report = budget(run, 500'000);
    double sum = 0;
    for (const BudgetRow& part : report.rows) {
        sum += *part.step_ns.value;
    }
    EXPECT_NEAR(sum, *report.period_ns.value, 1e-3);
    // The first step has nothing before it.
    EXPECT_NEAR(*row(report, "bricks outside its steps").step_ns.value, 100'000.0 * 14 / 15, 1e-3);
    EXPECT_DOUBLE_EQ(run.phases[0].wall.bricks_outside_ns, 500'000);
    EXPECT_TRUE(row(report, "bricks outside its steps").account);
    for (const BudgetRow& part : budget(run_of(1), 500'000).rows) {
        EXPECT_NE(part.name, "bricks outside its steps");
    }
}

double sum_of_unmarked(const BudgetReport& report) {
    double sum = 0;
    for (const BudgetRow& part : report.rows) {
        sum += part.parent || part.lap ? 0 : *part.step_ns.value;
    }
    return sum;
}

TEST(Budget, rows_add_up_to_the_period_though_bricks_run_on_while_another_phase_does) {
    Tape source;
    source.track(1);
    source.track(2);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us, end = t + 1'000 * us;
        const Phase phase = i % 2 == 0 ? Phase::decode : Phase::prefill;
        source.step_begin(1, i, phase, t);
        source.step_value(1, phase == Phase::decode ? StepValue::decode_tokens : StepValue::prefill_tokens, 1);
        source.scope(1, Brick::attention, t, t + 900 * us);
        source.step_end(1, phase, t, end);
        if (phase == Phase::decode) { // a worker is late
            source.context(2, i);
            source.scope(2, Brick::sampling, end + 100 * us, end + 600 * us);
            source.context_end(2);
        }
    }
    const Report run = report_of(source);
    const BudgetReport decode = budget(run, 2e6);
    EXPECT_DOUBLE_EQ(*row(decode, "sampling").step_ns.value, 500'000);
    EXPECT_DOUBLE_EQ(*row(decode, "its bricks in other periods").step_ns.value, -500'000);
    EXPECT_TRUE(row(decode, "its bricks in other periods").account);
    EXPECT_NEAR(sum_of_unmarked(decode), *decode.period_ns.value, 1e-3);
    BudgetOptions of_prefill;
    of_prefill.phase = Phase::prefill;
    of_prefill.ns_per_token = 2e6;
    const BudgetReport prefill = budget_of(run, of_prefill);
    EXPECT_DOUBLE_EQ(*row(prefill, "bricks outside its steps").step_ns.value, 500'000);
    EXPECT_NEAR(sum_of_unmarked(prefill), *prefill.period_ns.value, 1e-3);
    for (const BudgetRow& part : prefill.rows) {
        EXPECT_NE(part.name, "its bricks in other periods");
    }
}

TEST(Budget, rows_add_up_to_the_period_though_a_brick_holds_others_in_some_calls_alone) {
    Tape source;
    source.track(1);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(1, i, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        if (i % 2 != 0) {
            source.scope(1, Brick::kv_append, t + 100 * us, t + 200 * us);
        }
        source.scope(1, Brick::attention, t, t + 800 * us);
        source.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    const BudgetReport report = budget(report_of(source), 2e6);
    EXPECT_TRUE(row(report, "attention").parent);
    EXPECT_DOUBLE_EQ(*row(report, "attention").step_ns.value, 800'000);
    EXPECT_DOUBLE_EQ(*row(report, "leaf calls in marked rows").step_ns.value, 400'000);
    EXPECT_NEAR(sum_of_unmarked(report), *report.period_ns.value, 1e-3);
}

TEST(Budget, a_limit_is_held_against_scopes_and_laps_of_a_brick_together) {
    Tape source;
    source.track(1);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(1, i, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        source.scope(1, Brick::attention, t, t + 300 * us);
        source.lap(1, Brick::attention, t + 400 * us, t + 700 * us);
        source.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    const Report run = report_of(source);
    const BudgetReport report = budget(run, 2e6, {"attention=400us"});
    EXPECT_EQ(report.verdict, Outcome::fail);
    const BudgetRow& attention = row(report, "attention");
    EXPECT_DOUBLE_EQ(*attention.step_ns.value, 600'000);
    EXPECT_DOUBLE_EQ(*attention.room_ns.value, -200'000);
    EXPECT_TRUE(attention.lap);
    EXPECT_EQ(std::count_if(report.rows.begin(), report.rows.end(),
                            [](const BudgetRow& each) { return each.name == "attention"; }),
              1);
    EXPECT_NEAR(sum_of_unmarked(report), *report.period_ns.value, 1e-3);
    EXPECT_EQ(budget(run, 2e6, {"attention=600us"}).verdict, Outcome::pass);
}

TEST(Budget, rows_of_a_device_that_is_timed_in_some_steps_are_told_from_those_of_the_host) {
    Tape source;
    source.track(1);
    recording::TrackInfo info;
    info.id = 0x80000001;
    info.kind = recording::TrackKind::device_queue;
    info.sampled_every = 4;
    source.device_track(info);
    for (std::uint64_t i = 0; i < 16; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(1, i, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        if (i % 4 == 0) {
            source.device_scope(info.id, Brick::lm_head, i, -1, t + 100 * us, t + 900 * us);
        }
        source.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    const BudgetReport report = budget(report_of(source), 1'000'000);
    EXPECT_DOUBLE_EQ(*row(report, "lm_head").step_ns.value, 800'000);
    EXPECT_DOUBLE_EQ(*row(report, "host: unattributed").step_ns.value + *row(report, "host: idle").step_ns.value,
                     1'000'000);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("do not add up"), std::string::npos) << report.notes[0];
    EXPECT_TRUE(budget(run_of(1), 1'000'000).notes.empty());
}

TEST(Budget, F8_a_parent_is_marked_and_its_own_time_stands_apart) {
    const BudgetReport report = budget(run_of(1), 1'000'000, {"block=100us"});
    EXPECT_TRUE(row(report, "block").parent);
    EXPECT_DOUBLE_EQ(*row(report, "block").step_ns.value, 100'000);
    EXPECT_DOUBLE_EQ(*row(report, "block").self_ns.value, 40'000);
    EXPECT_EQ(row(report, "block").verdict, Outcome::pass);
}

TEST(Budget, a_brick_over_its_limit_fails_though_the_step_is_within) {
    const BudgetReport report = budget(run_of(1), 2'000'000, {"head=150us", "qkv=300us"});
    EXPECT_EQ(report.period_verdict, Outcome::pass);
    EXPECT_EQ(row(report, "lm_head").verdict, Outcome::fail);
    EXPECT_DOUBLE_EQ(*row(report, "lm_head").room_ns.value, -50'000);
    EXPECT_EQ(row(report, "qkv_projection").verdict, Outcome::pass);
    EXPECT_FALSE(row(report, "rms_norm").limited);
    EXPECT_EQ(report.verdict, Outcome::fail);
}

TEST(Budget, what_cannot_be_judged_is_unknown_and_says_why) {
    const BudgetReport missing = budget(run_of(1), 2'000'000, {"attention=1us"});
    EXPECT_EQ(missing.verdict, Outcome::unknown);
    EXPECT_EQ(row(missing, "attention").step_ns.reason, "no brick of this name in the decode steps");
    const BudgetReport no_tokens = budget(run_of(0), 2'000'000, {"lm_head=1us/step"});
    EXPECT_EQ(no_tokens.period_verdict, Outcome::unknown);
    EXPECT_FALSE(no_tokens.budget_ns.value);
    EXPECT_EQ(row(no_tokens, "lm_head").verdict, Outcome::fail); // a limit per step needs no tokens
    EXPECT_FALSE(row(no_tokens, "qkv_projection").budget_share.value);
    const BudgetReport nothing = budget(Report{}, 2'000'000, {"lm_head=1us"});
    EXPECT_EQ(nothing.verdict, Outcome::unknown);
    EXPECT_EQ(nothing.period_ns.reason, "the recording has no complete decode step");
}

TEST(Budget, cannot_be_judged_where_some_steps_carry_no_tokens) {
    Tape source;
    source.track(1);
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        source.step_begin(1, i, Phase::decode, t);
        if (i % 2 == 0) {
            source.step_value(1, StepValue::decode_tokens, 1);
        }
        source.scope(1, Brick::lm_head, t, t + 600 * us);
        source.step_end(1, Phase::decode, t, t + 1'000 * us);
    }
    const Report run = report_of(source);
    const std::string why = "5 of 10 steps carry no tokens (plumb::tokens(n) gives them)";
    EXPECT_EQ(run.phases[0].tokens_per_second.reason, why);
    const BudgetReport report = budget(run, 1'500'000, {"lm_head=700us/step"});
    EXPECT_EQ(report.period_verdict, Outcome::unknown);
    EXPECT_EQ(report.tokens_per_step.reason, why);
    EXPECT_EQ(row(report, "lm_head").verdict, Outcome::pass); // a limit per step needs no tokens
}

TEST(Budget, sites_that_no_sample_timed_can_break_a_limit_but_not_keep_it) {
    Report run = run_of(1);
    for (Row& brick : run.bricks) {
        brick.sites = brick.key.name == "lm_head" ? 4 : 0;
        brick.sites_timed = brick.key.name == "lm_head" ? 3 : 0;
    }
    EXPECT_EQ(row(budget(run, 1e6, {"lm_head=1ms"}), "lm_head").verdict, Outcome::unknown);
    EXPECT_EQ(row(budget(run, 1e6, {"lm_head=199us"}), "lm_head").verdict, Outcome::fail);
}

TEST(Budget, losses_are_said_beside_the_rows_they_may_lower) {
    Report run = run_of(1);
    EXPECT_TRUE(budget(run, 1e6).notes.empty());
    run.losses = {{"ring full", 7}};
    ASSERT_EQ(budget(run, 1e6).notes.size(), 1u);
    EXPECT_EQ(budget(run, 1e6).notes[0].rfind("7 records were lost", 0), 0u);
}

TEST(Budget, words_of_a_limit_are_read_exactly_or_refused) {
    const auto limit = parse_brick_limit("my=brick=0.25ms/step");
    ASSERT_TRUE(limit.ok());
    EXPECT_EQ(limit->brick, "my=brick");
    EXPECT_DOUBLE_EQ(limit->ns, 250'000);
    EXPECT_TRUE(limit->per_step);
    EXPECT_DOUBLE_EQ(parse_brick_limit("a=1s/token")->ns, 1e9);
    EXPECT_FALSE(parse_brick_limit("a=1s/token")->per_step);
    for (const char* words : {"", "lm_head", "=4us", "lm_head=", "lm_head=400", "lm_head=us", "lm_head=-1us",
                              "lm_head=0us", "lm_head=4 us", "lm_head=4us/", "lm_head=4us/call", "lm_head=nanus",
                              "lm_head=infus", "lm_head=1e300s", "lm_head=4us/step/step"}) {
        EXPECT_FALSE(parse_brick_limit(words).ok()) << words;
    }
}

} // namespace
} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// What findings say, and when they say nothing. That they find what was planted: findings_planted_test.cpp.
#include "answers/findings/findings.hpp"

#include <gtest/gtest.h>

#include "answers/findings/planted_engine_testing.hpp"
#include "answers/planted_answer_testing.hpp"
#include "planted/planted_run.hpp"

namespace plumb {

const answers::Entry& findings_answer();

namespace {

using findings::planted_engine::EngineMode;
using findings::planted_engine::PlantedFault;
using findings::planted_engine::VirtualEngine;
using support::json;

answers::Said said(EngineMode mode, const std::vector<PlantedFault>& faults, std::uint64_t seed = 7) {
    return answers::said_of(findings_answer(), VirtualEngine(seed, mode).run(faults).tape);
}

json first_of(const answers::Said& said) { return said.document["runs"][0]["findings"][0]; }

TEST(Findings, a_finding_has_a_claim_evidence_a_bound_how_sure_it_is_and_what_would_refute_it) {
    const answers::Said found = said(EngineMode::eager, {{FindingKind::host_bound, 0.2, 0}});
    const json first = first_of(found);
    EXPECT_EQ(first["kind"], "host_bound");
    EXPECT_EQ(first["phase"], "decode");
    EXPECT_EQ(first["subject"], "prepare");
    EXPECT_EQ(first["sure"], "sure");
    EXPECT_GT(first["at_most_ns"].get<double>(), 0);
    EXPECT_NEAR(first["share"].get<double>(), 0.2 / 1.2, 0.02);
    EXPECT_EQ(first["evidence"][0]["command"], "plumb wall");
    EXPECT_NE(first["evidence"][0]["what"].get<std::string>().find("prepare"), std::string::npos);
    EXPECT_NE(first["refuted_by"].get<std::string>().find("skips prepare"), std::string::npos);
    EXPECT_EQ(found.text.rfind("1  host_bound  decode: cuda:0 waits ", 0), 0u) << found.text;
    EXPECT_NE(found.text.find("\n   refuted by a run that skips prepare"), std::string::npos) << found.text;
}

TEST(Findings, a_clean_run_has_none_and_says_what_could_not_be_looked_for) {
    const answers::Said found = said(EngineMode::graph, {});
    EXPECT_TRUE(found.document["runs"][0]["findings"].empty());
    EXPECT_EQ(found.text.rfind("no finding: ", 0), 0u) << found.text;
    const json missing = found.document["runs"][0]["not_looked_for"];
    ASSERT_FALSE(missing.empty());
    EXPECT_EQ(missing[0]["kind"], "host_bound");
    EXPECT_NE(missing[0]["reason"].get<std::string>().find("captured graphs ran"), std::string::npos) << missing;
}

TEST(Findings, own_cost_has_no_bound_where_the_report_has_none) {
    auto run = VirtualEngine(7, EngineMode::host).run({{FindingKind::own_cost, 0.2, 0}});
    const auto first = [&run] {
        return answers::said_of(findings_answer(), run.tape).document["runs"][0]["findings"].at(0);
    };
    ASSERT_EQ(first()["kind"], "own_cost");
    EXPECT_LT(first()["share"], 0.5);
    run.tape.counters_.drain_cpu_ns = 0;
    EXPECT_EQ(first()["share"], 1) << "what the thread that writes took is not known";
    run.tape.counters_.drops = {{"ring full", 5}};
    const json document = answers::said_of(findings_answer(), run.tape).document["runs"][0];
    EXPECT_EQ(document["findings"].dump().find("own_cost"), std::string::npos) << document;
    EXPECT_NE(document["not_looked_for"].dump().find("records of this run are missing"), std::string::npos) << document;
}

TEST(Findings, the_most_worthwhile_stands_first) {
    const std::vector<PlantedFault> faults = {{FindingKind::host_bound, 0.05, 0}, {FindingKind::odd_layer, 0.15, 3}};
    const answers::Said found = said(EngineMode::eager, faults);
    const json all = found.document["runs"][0]["findings"];
    ASSERT_EQ(all.size(), 2u) << found.text;
    EXPECT_EQ(all[0]["kind"], "odd_layer");
    EXPECT_EQ(all[0]["layer"], 3);
    EXPECT_EQ(all[1]["kind"], "host_bound");
    EXPECT_GT(all[0]["weight"].get<double>(), all[1]["weight"].get<double>());
}

/// Layer 5 of 8 takes 500 us more, 20 of them in a brick.
TEST(Findings, an_odd_layer_is_not_blamed_on_the_brick_that_is_the_least_of_it) {
    using planted::us;
    planted::Tape tape;
    tape.track(1);
    std::int64_t now = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t step_begin = now;
        tape.step_begin(1, i, Phase::decode, now);
        for (std::uint16_t layer = 0; layer < 8; ++layer) {
            const std::int64_t begin = now, length = (layer == 5 ? 120 : 100) * us;
            tape.layer_begin(1, layer, begin);
            tape.scope(1, Brick::attention, begin, begin + length);
            now = begin + length + (layer == 5 ? 480 * us : 0);
            tape.layer_end(1, layer, begin, now);
        }
        tape.step_end(1, Phase::decode, step_begin, now);
    }
    const answers::Said said = answers::said_of(findings_answer(), tape);
    for (const json& one : said.document["runs"][0]["findings"]) {
        if (one["kind"] == "odd_layer") {
            EXPECT_EQ(one["subject"], "");
            EXPECT_EQ(one["claim"], "the layer as a whole takes 6.00 times as long in layer 5 as in the others.");
            EXPECT_EQ(one["evidence"].size(), 6u) << "of the brick too";
            return;
        }
    }
    ADD_FAILURE() << said.text;
}

/// Of 80 equal steps of 2 ms the first two take 20 ms.
TEST(Findings, a_slow_warm_up_names_the_steps_that_were_slow_and_not_the_calm_ones_behind_them) {
    using planted::us;
    planted::Tape tape;
    tape.track(1);
    std::int64_t now = 0;
    for (std::uint64_t i = 0; i < 80; ++i) {
        const std::int64_t length = (i < 2 ? 20'000 : 2'000) * us;
        tape.step_begin(1, i, Phase::decode, now);
        tape.step_value(1, StepValue::decode_tokens, 1);
        tape.scope(1, Brick::attention, now, now + length);
        tape.step_end(1, Phase::decode, now, now + length);
        now += length;
    }
    const json first = first_of(answers::said_of(findings_answer(), tape));
    EXPECT_EQ(first["kind"], "slow_warm_up");
    EXPECT_EQ(first["claim"], "The first 2 steps lose 36.0 ms against the later ones, as long as 18.0 of those.");
}

/// Steps of 1 ms; the third one sleeps 60 ms. CPU time is read behind the end of each step, in the next one.
TEST(Findings, a_step_that_sleeps_is_no_slow_warm_up) {
    using planted::us;
    for (const std::int64_t behind : {0, 20}) {
        planted::Tape tape;
        tape.track(1);
        std::int64_t now = 0, cpu = 0;
        for (std::uint64_t i = 0; i < 60; ++i) {
            const std::int64_t sleep = i == 2 ? 60'000 * us : 0, end = now + 1'000 * us + sleep;
            tape.step_begin(1, i, Phase::decode, now);
            tape.step_end(1, Phase::decode, now, end);
            cpu += 1'000 * us;
            tape.cpu_time(1, end + behind, cpu);
            now = end;
        }
        const json found = answers::said_of(findings_answer(), tape).document["runs"][0]["findings"];
        for (const json& one : found) {
            EXPECT_NE(one["kind"], "slow_warm_up") << one["claim"];
        }
        EXPECT_FALSE(found.empty()) << "it is told as time off the CPU";
    }
}

/// The same stall in a run of few steps is less sure.
TEST(Findings, few_steps_make_a_finding_less_sure) {
    const auto stalled = [](int steps) {
        planted::Tape tape;
        tape.track(1);
        for (int i = 0; i < steps; ++i) {
            const std::int64_t t = i * 1'000'000;
            tape.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
            tape.cpu_time(1, t, t - i * 200'000);
            tape.scope(1, Brick::attention, t, t + 900'000);
            tape.cpu_time(1, t + 900'000, t + 900'000 - (i + 1) * 200'000);
            tape.step_end(1, Phase::decode, t, t + 1'000'000);
        }
        return first_of(answers::said_of(findings_answer(), std::move(tape)));
    };
    const json many = stalled(40), some = stalled(15), few = stalled(4);
    EXPECT_EQ(many["kind"], "off_cpu");
    EXPECT_EQ(many["subject"], "attention");
    EXPECT_NEAR(many["share"].get<double>(), 0.2, 0.01);
    EXPECT_EQ(many["sure"], "sure");
    EXPECT_EQ(some["sure"], "likely");
    EXPECT_EQ(few["sure"], "possible");
    EXPECT_NE(few["because"].get<std::string>().find("only 4 steps tell"), std::string::npos) << few;
}

/// Steps of 1 ms, each off the CPU for 200 us, in so many bricks or behind them; and what the kernel counted.
json waits(int bricks, bool between, std::int64_t queued_in_100_ms) {
    constexpr int steps = 250;
    const Brick names[] = {Brick::attention, Brick::gate_projection, Brick::up_projection};
    planted::Tape tape;
    tape.track(1);
    std::int64_t off = 0;
    for (int i = 0; i < steps; ++i) {
        std::int64_t t = i * 1'000'000;
        const std::int64_t begin = t;
        tape.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
        tape.cpu_time(1, t, t - off);
        for (int k = 0; k < bricks; ++k, t += 300'000) {
            off += between ? 0 : 200'000 / bricks;
            tape.scope(1, names[k], t, t + 300'000);
            tape.cpu_time(1, t + 300'000, t + 300'000 - off);
        }
        off += between ? 200'000 : 0;
        tape.cpu_time(1, begin + 1'000'000, begin + 1'000'000 - off);
        tape.step_end(1, Phase::decode, begin, begin + 1'000'000);
    }
    for (std::int64_t i = 0; i < 3; ++i) {
        recording::OffCpuSample& sample = tape.off_cpu_.emplace_back();
        sample.monotonic_ns = i * 100'000'000;
        sample.threads = {{1,
                           {static_cast<std::uint64_t>(i * (100'000'000 - queued_in_100_ms)) + 1,
                            static_cast<std::uint64_t>(i * queued_in_100_ms), base::not_counted}}};
    }
    return first_of(answers::said_of(findings_answer(), std::move(tape)));
}

TEST(Findings, a_wait_for_a_cpu_is_bounded_by_what_wall_says_is_idle) {
    const json found = waits(1, false, 60'000'000); // 600 us of a step that is off the CPU for 200
    EXPECT_EQ(found["kind"], "off_cpu");
    EXPECT_NEAR(found["at_most_ns"].get<double>(), 200'000, 100) << found;
}

TEST(Findings, a_wait_for_a_cpu_is_sure_only_where_nine_tenths_of_the_phase_are_sampled) {
    const json found = waits(1, false, 15'000'000); // 150 of 200 us, in 200 of 250 steps
    EXPECT_NE(found["claim"].get<std::string>().find("waits 150.0 us per step for a CPU"), std::string::npos) << found;
    EXPECT_EQ(found["sure"], "likely");
    EXPECT_NE(found["because"].get<std::string>().find("in 80.0 % of the time"), std::string::npos) << found;
}

TEST(Findings, a_wait_has_a_subject_only_where_one_scope_holds_most_of_it) {
    EXPECT_EQ(waits(1, false, 20'000'000)["subject"], "attention");
    EXPECT_EQ(waits(3, false, 20'000'000)["subject"], "");
    EXPECT_EQ(waits(1, true, 20'000'000)["subject"], "");
}

TEST(Findings, a_wait_has_no_subject_where_it_is_not_known_when_it_was) {
    planted::Tape tape;
    tape.track(1);
    std::int64_t off = 0;
    for (std::int64_t i = 0; i < 50; ++i) {
        const std::int64_t t = i * 1'000'000;
        tape.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, t);
        tape.cpu_time(1, t, t - off);
        tape.scope(1, Brick::attention, t, t + 300'000);
        tape.scope(1, Brick::all_reduce, t + 300'000, t + 500'000); // which slept
        tape.scope(1, Brick::attention, t + 500'000, t + 800'000);
        tape.scope(1, Brick::all_reduce, t + 800'000, t + 1'000'000);
        off += 200'000;
        tape.cpu_time(1, t + 1'000'000, t + 1'000'000 - off);
        tape.step_end(1, Phase::decode, t, t + 1'000'000);
    }
    const json found = first_of(answers::said_of(findings_answer(), std::move(tape)));
    EXPECT_EQ(found["kind"], "off_cpu");
    EXPECT_EQ(found["subject"], "") << found;
    EXPECT_NEAR(found["at_most_ns"].get<double>(), 200'000, 100);
    EXPECT_EQ(found["sure"], "sure") << "for how long is known";
    for (const json& evidence : found["evidence"]) {
        EXPECT_EQ(evidence["what"].get<std::string>().find("off the CPU in "), std::string::npos) << evidence;
    }
}

TEST(Findings, of_several_recordings_each_has_its_own_under_its_name) {
    const planted::TemporaryFile one("findings-one"), other("findings-other");
    ASSERT_TRUE(VirtualEngine(7, EngineMode::host).run({}).tape.save(one.path()).ok());
    ASSERT_TRUE(VirtualEngine(8, EngineMode::host)
                    .run({{FindingKind::far_from_roofline, 0.2, 128}})
                    .tape.save(other.path())
                    .ok());
    const Result<Answer> both = ask("findings", {one.path(), other.path()});
    ASSERT_TRUE(both.ok()) << both.error().message;
    const json runs = support::parsed(both->json())["runs"];
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_TRUE(runs[0]["findings"].empty());
    EXPECT_EQ(runs[1]["findings"][0]["kind"], "far_from_roofline");
    EXPECT_NE(runs[1]["recording"].get<std::string>().find("findings-other.plumb"), std::string::npos);
    EXPECT_EQ(runs[1]["recording"].get<std::string>().find('/'), std::string::npos) << "folders are nobody's business";
    const Result<Answer> alone = ask("findings", {one.path()});
    EXPECT_FALSE(support::parsed(alone->json())["runs"][0].contains("recording"));
    EXPECT_NE(ask("findings", {one.path(), "/nowhere.plumb"}).error().message.find("/nowhere.plumb"),
              std::string::npos);
}

TEST(Findings, of_several_recordings_one_without_steps_says_so_and_not_that_nothing_was_found) {
    const planted::TemporaryFile one("findings-one"), empty("findings-empty");
    ASSERT_TRUE(VirtualEngine(7, EngineMode::host).run({}).tape.save(one.path()).ok());
    planted::Tape tape;
    tape.track(1);
    tape.scope(1, Brick::attention, 0, 1'000);
    ASSERT_TRUE(tape.save(empty.path()).ok());
    const Result<Answer> both = ask("findings", {one.path(), empty.path()});
    ASSERT_TRUE(both.ok()) << both.error().message;
    const json runs = support::parsed(both->json())["runs"];
    EXPECT_EQ(runs[0]["looked"], true);
    EXPECT_EQ(runs[1]["looked"], false);
    const std::string text = both->text();
    EXPECT_EQ(text.find("no finding", text.find("findings-empty")), std::string::npos) << text;
    EXPECT_NE(text.find("PLUMB_STEP", text.find("findings-empty")), std::string::npos) << text;
}

TEST(Findings, a_recording_without_steps_is_an_error_that_says_what_to_do) {
    planted::Tape tape;
    tape.track(1);
    tape.scope(1, Brick::attention, 0, 1'000);
    EXPECT_NE(answers::said_of(findings_answer(), std::move(tape)).text.find("put PLUMB_STEP around"),
              std::string::npos);
}

} // namespace
} // namespace plumb

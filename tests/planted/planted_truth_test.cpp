// SPDX-License-Identifier: Apache-2.0
// Every command on every planted run: each names its own flaw and is silent about the others'.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "answers/budget/budget.hpp"
#include "answers/check/check.hpp"
#include "answers/layers/layers.hpp"
#include "answers/path/path.hpp"
#include "answers/wall/wall.hpp"
#include "planted/planted_run.hpp"

namespace plumb::planted {
namespace {

constexpr std::int64_t step_us = 20 + layers * layer_us + head_us;

std::map<std::string, Flaw> all_flaws() {
    std::map<std::string, Flaw> flaws;
    flaws["clean"] = {};
    flaws["slow layer"].slow_layer = 5;
    flaws["missing brick"].step_without_head = 12;
    flaws["slow brick"].slower_head_us = 30;
    flaws["outside"].outside_us = 150;
    flaws["beside"].beside_us = 40;
    flaws["drops"].dropped = 7;
    flaws["layer without a brick"].layer_without_up = 3;
    return flaws;
}

/// What `look` says of each planted run, by the name of its flaw; an empty answer is none.
template <class Look>
void expect_only(const std::map<std::string, std::string>& expected, Look&& look) {
    for (const auto& [name, flaw] : all_flaws()) {
        const PlantedRun run(flaw);
        const auto found = expected.find(name);
        EXPECT_EQ(look(run.path()), found == expected.end() ? "" : found->second) << name;
    }
}

TEST(PlantedTruth, layers_names_the_slow_layer_and_nothing_else) {
    expect_only({{"slow layer", "attention 5 "}}, [](const std::string& path) {
        LayerOptions options;
        options.phase = Phase::decode;
        const auto report = read_layers({path}, options);
        EXPECT_TRUE(report.ok());
        std::string named;
        for (const OddLayer& odd : report->odd) {
            named += odd.name + " " + std::to_string(odd.layer) + " ";
        }
        return named;
    });
}

Invariants healthy() {
    Invariants invariants;
    invariants.calls = {*parse_expected_calls("lm_head=1/step"), *parse_expected_calls("attention=8/step")};
    invariants.coverage = 0.9;
    invariants.drops = 0;
    invariants.pending = 0;
    return invariants;
}

TEST(PlantedTruth, check_names_the_missing_brick_its_step_the_uncovered_time_and_the_drops) {
    const std::map<std::string, std::string> expected = {
        {"missing brick", "lm_head=1/step; "}, {"outside", "coverage >= 0.9; "}, {"drops", "drops <= 0; "}};
    expect_only(expected, [](const std::string& path) {
        const auto report = check_recordings({path}, healthy());
        EXPECT_TRUE(report.ok());
        std::string failed;
        for (const CheckRow& row : report->rows) {
            failed += row.verdict == Outcome::fail ? row.check + "; " : "";
        }
        EXPECT_EQ(report->verdict == Outcome::fail, !failed.empty());
        return failed;
    });
    Flaw flaw;
    flaw.step_without_head = 12;
    const PlantedRun run(flaw);
    const auto report = check_recordings({run.path()}, healthy());
    ASSERT_TRUE(report.ok());
    EXPECT_NE(report->rows.at(0).finding.find("step 12"), std::string::npos) << report->rows.at(0).finding;
}

TEST(PlantedTruth, path_names_the_layer_that_lacks_a_brick_and_nothing_else) {
    expect_only(
        {{"layer without a brick", "Layer 3 has no up_projection, unlike 7 of 8 layers. "},
         {"beside",
          "Nothing says what waited for these threads, so the gain of what they did is not known, and its slack "
          "may be less: helper. "},
         {"drops",
          "7 records of this run were lost or have no time, so something may be missing here; plumb report names them. "}},
        [](const std::string& path) {
            const auto report = path_recording(path);
            EXPECT_TRUE(report.ok());
            EXPECT_TRUE(report->ping_pong.empty());
            std::string named;
            for (const std::string& note : report->notes) {
                named += note + " ";
            }
            return named;
        });
}

TEST(PlantedTruth, M3_layers_wall_and_path_say_that_records_were_dropped) {
    Flaw flaw;
    for (const std::uint64_t dropped : {0u, 7u}) {
        flaw.dropped = dropped;
        const PlantedRun run(flaw);
        const auto layers_notes = read_layers({run.path()}, {})->notes;
        const auto wall_notes = read_wall({run.path()}, {})->notes;
        const auto path_notes = path_recording(run.path())->notes;
        for (const auto* notes : {&layers_notes, &wall_notes, &path_notes}) {
            const bool told = std::any_of(notes->begin(), notes->end(), [](const std::string& note) {
                return note.find("7 records of this run were lost") == 0;
            });
            EXPECT_EQ(told, dropped != 0);
        }
    }
}

TEST(PlantedTruth, budget_names_the_brick_that_breaks_its_limit) {
    const std::map<std::string, std::string> expected = {{"slow brick", "lm_head "}};
    expect_only(expected, [](const std::string& path) {
        BudgetOptions options;
        options.ns_per_token = 600 * us; // a step of 900 us has two tokens
        options.bricks = {*parse_brick_limit("lm_head=45us"), *parse_brick_limit("rms_norm=80us/step")};
        const Result<BudgetReport> report = budget_of(*report_recording(path), options);
        EXPECT_TRUE(report.ok());
        EXPECT_EQ(report->period_verdict, Outcome::pass);
        std::string broken;
        for (const BudgetRow& row : report->rows) {
            broken += row.verdict == Outcome::fail ? row.name + " " : "";
        }
        return broken;
    });
}

TEST(PlantedTruth, the_report_accounts_for_what_is_outside_and_beside_to_the_nanosecond) {
    for (const auto& [name, flaw] : all_flaws()) {
        const PlantedRun run(flaw);
        ReportOptions options;
        options.phase = Phase::decode;
        const auto report = report_recording(run.path(), options);
        ASSERT_TRUE(report.ok());
        ASSERT_EQ(report->phases.size(), 1u);
        const PhaseSummary& decode = report->phases[0];
        ASSERT_EQ(decode.steps, static_cast<std::uint64_t>(decode_steps));
        const double steps = decode_steps;
        const std::int64_t longer = flaw.outside_us + flaw.slower_head_us + (flaw.slow_layer < 0 ? 0 : 30);
        EXPECT_EQ(decode.wall.period_ns, steps * static_cast<double>((step_us + longer) * us)) << name;
        const std::int64_t nobodys = flaw.outside_us + (flaw.layer_without_up < 0 ? 0 : 30);
        EXPECT_EQ(decode.wall.unattributed_ns, steps * static_cast<double>(nobodys * us)) << name;
        EXPECT_EQ(decode.wall.overlap_ns, steps * static_cast<double>(flaw.beside_us * us)) << name;
        EXPECT_EQ(decode.wall.idle_ns, 0) << name;
        ASSERT_EQ(report->losses.size(), flaw.dropped == 0 ? 0u : 1u) << name;
        if (flaw.dropped != 0) {
            EXPECT_EQ(report->losses[0].count, flaw.dropped);
        }
    }
}

} // namespace
} // namespace plumb::planted

// SPDX-License-Identifier: Apache-2.0
// What a comparison takes from a run with more steps than it keeps numbers of.
#include "analysis/compare_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/compare.hpp"
#include "analysis/compare_choice.hpp"
#include "analysis/compare_gate.hpp"
#include "planted/tape.hpp"

namespace plumb::analysis {
namespace {

using planted::us;

/// Decode steps by turns of 1 ms and of 2 ms, the longer ones with 800 us of sampling; all with 600 us of attention.
/// `percent` makes all of it longer.
NamedRun by_turns(std::uint64_t steps, std::uint64_t id, std::int64_t percent = 0) {
    planted::Tape tape;
    tape.track(1);
    tape.metadata_.recording_id[0] = id;
    const auto lasting = [&](std::int64_t length) {
        return length * us * (10'000 + 100 * percent + static_cast<std::int64_t>(id)) / 10'000 / 2 * 2;
    };
    std::int64_t t = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
        const bool longer = step % 2 == 1;
        const std::int64_t end = t + lasting(longer ? 2000 : 1000);
        tape.step_begin(1, step, Phase::decode, t);
        tape.step_value(1, StepValue::decode_tokens, 1);
        tape.scope(1, Brick::attention, t, t + lasting(600));
        if (longer) {
            tape.scope(1, Brick::sampling, t + lasting(700), t + lasting(1500));
        }
        tape.step_end(1, Phase::decode, t, end);
        t = end;
        if (step % 512 == 0) {
            tape.deliver(1);
        }
    }
    Result<RunFigures> figures = gather_run(tape);
    EXPECT_TRUE(figures.ok());
    return {"run " + std::to_string(id), figures.ok() ? *std::move(figures) : RunFigures{}};
}

const RunRow& run_row_of(const NamedRun& run, CompareSubject subject, const std::string& name = "") {
    for (const RunRow& row : run.figures.rows) {
        if (row.id.subject == subject && row.id.name == name) {
            return row;
        }
    }
    ADD_FAILURE() << "no row " << name;
    static const RunRow none;
    return none;
}

TEST(CompareRun, steps_by_turns_compare_as_the_same_however_many_there_are) {
    std::vector<NamedRun> base;
    std::vector<NamedRun> changed;
    for (std::uint64_t id = 1; id <= 5; id += 2) {
        base.push_back(by_turns(compare_max_steps, id));
        changed.push_back(by_turns(compare_max_steps + 2, id + 1));
    }
    const Comparison comparison = compare_runs(base, changed, {*parse_gate("brick:sampling.p50=+5%")}, {});
    std::size_t judged = 0;
    for (const CompareRow& row : comparison.rows) {
        EXPECT_EQ(row.verdict, Verdict::same) << row.name << row.reason;
        judged += row.name == "sampling" ? 1 : 0;
        EXPECT_EQ(row.statistic,
                  row.name == "sampling" || row.name == "output" ? CompareStatistic::mean : CompareStatistic::p50)
            << row.name;
    }
    EXPECT_EQ(judged, 1u);
    EXPECT_NE(comparison.gates[0].sentence.find("which steps were chosen would decide p50"), std::string::npos)
        << comparison.gates[0].sentence;
    ASSERT_EQ(comparison.attributions.size(), 1u);
    double change = 0;
    for (const Contribution& part : comparison.attributions[0].parts) {
        EXPECT_NEAR(part.change_ns, 0, 2e3) << part.name;
        change += part.change_ns;
    }
    EXPECT_NEAR(change, comparison.attributions[0].change_ns, 1e-6);
}

TEST(CompareRun, means_are_of_every_step_and_a_note_says_of_how_many_the_percentiles_are) {
    const NamedRun run = by_turns(2 * compare_max_steps + 1, 0);
    EXPECT_NEAR(run_row_of(run, CompareSubject::step).mean, 1.5e6, 1e3);
    EXPECT_EQ(run_row_of(run, CompareSubject::step).p50, 1e6) << "4097 of 8193 steps are the shorter ones";
    EXPECT_NEAR(run_row_of(run, CompareSubject::brick, "sampling").mean, 400e3, 1e2);
    EXPECT_TRUE(std::isnan(run_row_of(run, CompareSubject::brick, "sampling").p50));
    EXPECT_EQ(run_row_of(run, CompareSubject::brick, "sampling").p90, 800e3);
    EXPECT_EQ(run_row_of(run, CompareSubject::brick, "attention").p50, 600e3);
    ASSERT_EQ(run.figures.notes.size(), 1u);
    EXPECT_NE(run.figures.notes[0].find("of 4096 of the 8193 decode steps, chosen at random"), std::string::npos)
        << run.figures.notes[0];
    EXPECT_TRUE(by_turns(compare_max_steps, 0).figures.notes.empty());
}

TEST(CompareChoice, is_of_every_kind_of_step_alike_and_the_same_each_time) {
    std::vector<std::size_t> all(20'000);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<std::size_t> chosen = chosen_of(all, 4000, 1);
    ASSERT_EQ(chosen.size(), 4000u);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    EXPECT_EQ(chosen, chosen_of(all, 4000, 1));
    EXPECT_NE(chosen, chosen_of(all, 4000, 2));
    EXPECT_EQ(chosen_of(all, all.size(), 1), all);
    for (const std::size_t period : {2, 3, 5, 8}) {
        for (std::size_t rest = 0; rest < period; ++rest) {
            const auto found =
                std::count_if(chosen.begin(), chosen.end(), [&](std::size_t step) { return step % period == rest; });
            EXPECT_NEAR(static_cast<double>(found) * static_cast<double>(period) / 4000, 1, 0.15)
                << period << " " << rest;
        }
    }
}

TEST(CompareChoice, has_no_percentile_that_another_choice_would_move_far) {
    std::vector<double> kinds(2000, 1);
    kinds.resize(4000, 2);
    EXPECT_EQ(chosen_percentile(kinds, 0.5, 4000), 1.5) << "of all there is no other choice";
    EXPECT_TRUE(std::isnan(chosen_percentile(kinds, 0.5, 4002)));
    EXPECT_EQ(chosen_percentile(kinds, 0.9, 40'000), 2);
    std::vector<double> even(4000);
    std::iota(even.begin(), even.end(), 4000);
    EXPECT_NEAR(chosen_percentile(even, 0.5, 40'000), 5999.5, 1e-9);
}

} // namespace
} // namespace plumb::analysis

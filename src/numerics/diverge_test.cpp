// SPDX-License-Identifier: Apache-2.0
#include "numerics/diverge.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "numerics/planted_checks_testing.hpp"
#include "numerics/verdict.hpp"

namespace {

using namespace plumb;
using namespace plumb::numerics;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

DivergeReport compared(PlantedRun& a, PlantedRun& b, const DivergeOptions& options = {}) {
    Result<DivergeReport> report = diverge(a, b, options);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    return report.ok() ? *report : DivergeReport{};
}

bool noted(const DivergeReport& report, const std::string& part) {
    for (const std::string& note : report.notes) {
        if (note.find(part) != std::string::npos) {
            return true;
        }
    }
    return false;
}

recording::TensorCheck& find(PlantedRun& run, std::uint64_t step, const char* brick, int layer, TensorRole role,
                             std::uint32_t occurrence = 0) {
    for (recording::TensorCheck& check : run.checks) {
        if (check.step_plus_one == step + 1 && run.name_of(check.name) == brick &&
            check.layer_plus_one == static_cast<std::uint32_t>(layer + 1) && check.role == role &&
            check.occurrence == occurrence) {
            return check;
        }
    }
    ADD_FAILURE() << "no such check";
    return run.checks.front();
}

void remove(PlantedRun& run, std::uint64_t step, const char* brick, int layer) {
    const recording::TensorCheck* found = &find(run, step, brick, layer, TensorRole::output);
    run.checks.erase(run.checks.begin() + (found - run.checks.data()));
}

TEST(Diverge, two_equal_runs_are_the_same_bit_for_bit) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    for (const bool exact : {false, true}) {
        DivergeOptions options;
        options.exact = exact;
        const DivergeReport report = compared(a, b, options);
        EXPECT_TRUE(report.same());
        EXPECT_EQ(report.compared, a.checks.size());
        EXPECT_EQ(report.identical, a.checks.size());
        EXPECT_FALSE(report.worst);
        EXPECT_TRUE(report.layers.empty());
    }
}

TEST(Diverge, a_fault_in_each_layer_and_step_is_named_first_with_inputs_that_agree) {
    PlantedModel clean;
    clean.noise = 1e-6;
    PlantedRun a = clean.recorded();
    for (int layer = 0; layer < planted_layers; ++layer) {
        for (const std::int64_t position : {0, 20, 34}) {
            PlantedModel faulty = clean;
            faulty.noise_seed = 2;
            faulty.fault_layer = layer;
            faulty.fault_position = position;
            PlantedRun b = faulty.recorded();
            const DivergeReport report = compared(a, b);
            ASSERT_TRUE(report.first);
            EXPECT_FALSE(report.same());
            const TensorPlace& place = report.first->tensor.place;
            EXPECT_EQ(place.brick, "attention");
            EXPECT_EQ(place.layer, static_cast<std::uint32_t>(layer));
            EXPECT_EQ(place.role, TensorRole::output);
            EXPECT_EQ(place.step, position == 0 ? 0u : position == 20 ? 1u : 4u);
            EXPECT_EQ(report.first->inputs, InputState::agree);
            ASSERT_EQ(report.first->input_tensors.size(), 1u);
            EXPECT_LT(report.first->input_tensors[0].distance.estimate, 1e-5);
            ASSERT_EQ(report.layers.size(), static_cast<std::size_t>(planted_layers));
            for (int at = 0; at < planted_layers; ++at) {
                const TensorPair& tensor = report.layers[static_cast<std::size_t>(at)].tensor;
                EXPECT_EQ(tensor.place.brick, "residual_add");
                EXPECT_EQ(tensor.place.occurrence, 1u); // the last one of the layer
                EXPECT_EQ(tensor.difference, at < layer ? Difference::none : Difference::value) << at;
            }
        }
    }
}

TEST(Diverge, names_pair_by_their_text_since_ids_differ_between_processes) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b(700);
    PlantedModel{}.run(b);
    EXPECT_TRUE(compared(a, b).same());
}

TEST(Diverge, prefill_that_was_cut_differently_is_joined_and_agrees) {
    PlantedModel whole;
    whole.chunk = 32;
    PlantedRun a = whole.recorded();
    for (const std::size_t chunk : {4u, 8u, 12u, 5u}) {
        PlantedModel cut;
        cut.chunk = chunk;
        cut.noise = 1e-6;
        PlantedRun b = cut.recorded();
        for (const bool swapped : {false, true}) {
            const DivergeReport report = swapped ? compared(b, a) : compared(a, b);
            EXPECT_TRUE(report.same()) << chunk;
            // The logits of a chunk's last row lie where the other run has no border.
            EXPECT_EQ(report.chunking, (32 + chunk - 1) / chunk - 1);
            EXPECT_TRUE(noted(report, "depends on how the prompt was cut"));
        }
    }
}

TEST(Diverge, chunks_of_which_neither_divides_the_other_meet_at_their_common_borders) {
    PlantedModel six, eight;
    six.chunk = 6;
    eight.chunk = 8;
    PlantedRun a = six.recorded(48);
    PlantedRun b = eight.recorded(48);
    const DivergeReport report = compared(a, b);
    EXPECT_TRUE(report.same());
    // Two spans of 24 rows for each tensor of the layers, and the logits at 24 and 48; four decode steps of all.
    EXPECT_EQ(report.compared, 2u * 24 + 2 + 4 * 25);
}

/// A prompt of 32, and four decode steps, of which only the logits were checked.
PlantedRun logits_alone(std::size_t chunk) {
    PlantedModel model;
    model.chunk = chunk;
    PlantedRun run = model.recorded();
    run.tells_steps = true;
    run.checks.erase(std::remove_if(run.checks.begin(), run.checks.end(),
                                    [](const recording::TensorCheck& check) { return check.layer_plus_one != 0; }),
                     run.checks.end());
    return run;
}

TEST(Diverge, where_only_last_rows_were_checked_steps_say_how_far_prefill_reaches) {
    PlantedRun a = logits_alone(32);
    PlantedRun b = logits_alone(8);
    for (const bool swapped : {false, true}) {
        const DivergeReport report = swapped ? compared(b, a) : compared(a, b);
        EXPECT_TRUE(report.same());
        EXPECT_EQ(report.compared, 5u);
        EXPECT_EQ(report.identical, 5u);
        EXPECT_EQ(report.chunking, 3u);
    }
    b.checks.erase(b.checks.begin() + 3); // the logits of the prompt
    EXPECT_EQ(compared(a, b).only_in_a.tensors + compared(a, b).only_in_a.steps, 1u);
}

TEST(Diverge, logits_that_were_given_no_position_are_of_the_last_rows_of_their_step) {
    const auto without_position = [](std::size_t chunk, double scale) {
        PlantedRun run = logits_alone(chunk);
        for (recording::TensorCheck& check : run.checks) {
            Values values = PlantedModel{}.rows("lm_head", planted_layers, 0, check.position, 1, false);
            for (double& value : values) {
                value *= scale;
            }
            if (check.phase == Phase::prefill) { // as a step with kv_length and tokens alone leaves them
                check.position -= static_cast<std::int64_t>(chunk) - 1;
                check.first_index = static_cast<std::uint64_t>(check.position) * planted_columns;
            }
            check.fingerprint = planted_fingerprint(values, check.first_index);
        }
        return run;
    };
    PlantedRun a = without_position(32, 1);
    PlantedRun b = without_position(8, 1);
    PlantedRun wrong = without_position(8, 1.001);
    for (const bool swapped : {false, true}) {
        const DivergeReport report = swapped ? compared(b, a) : compared(a, b);
        EXPECT_TRUE(report.same());
        EXPECT_EQ(report.identical, 4u);
        EXPECT_EQ(report.chunking, 3u);
        EXPECT_TRUE(noted(report, "1 tensor whose elements are numbered otherwise in the other run"));
        const DivergeReport apart = swapped ? compared(wrong, a) : compared(a, wrong);
        EXPECT_EQ(apart.divergent, 5u);
        ASSERT_TRUE(apart.first);
        EXPECT_EQ(apart.first->tensor.place.position, 31);
        EXPECT_EQ(apart.first->tensor.difference, Difference::value);
    }
    EXPECT_EQ(compared(b, b).identical, 8u);
}

/// Prefill of 32 positions as replays of one graph, which was captured at position 64, see it.
PlantedRun captured(std::size_t chunk, double scale, DType dtype = DType::f32) {
    PlantedRun run;
    for (std::size_t at = 0; at < 32; at += chunk) {
        run.step(Phase::prefill, static_cast<std::int64_t>(at), chunk);
        Values values = planted_values(1, 32 * planted_columns);
        values = Values(values.begin() + static_cast<std::ptrdiff_t>(at * planted_columns),
                        values.begin() + static_cast<std::ptrdiff_t>((at + chunk) * planted_columns));
        for (double& value : values) {
            value *= scale;
        }
        recording::TensorCheck& check = run.add("attention", 0, values, chunk, TensorRole::output, dtype);
        check.first_index = 64 * planted_columns;
        check.fingerprint = planted_fingerprint(values, check.first_index);
        check.in_graph = true;
    }
    return run;
}

TEST(Diverge, a_captured_prefill_is_numbered_otherwise_and_compared_by_what_does_not_depend_on_that) {
    PlantedRun eager;
    eager.step(Phase::prefill, 0, 32);
    eager.add("attention", 0, planted_values(1, 32 * planted_columns), 32);
    for (const std::size_t chunk : {32u, 8u}) {
        PlantedRun graph = captured(chunk, 1);
        const DivergeReport report = compared(eager, graph);
        EXPECT_TRUE(report.same()) << chunk;
        EXPECT_EQ(report.identical, 0u);
        EXPECT_TRUE(noted(report, "numbered otherwise"));
        PlantedRun again = captured(chunk, 1);
        EXPECT_TRUE(compared(graph, again).same());
        PlantedRun wrong = captured(chunk, 1.01);
        const DivergeReport apart = compared(eager, wrong);
        ASSERT_TRUE(apart.first) << chunk;
        EXPECT_EQ(apart.first->tensor.difference, Difference::value);
        EXPECT_NEAR(apart.first->tensor.distance.low, 0.01, 1e-3);
        EXPECT_EQ(apart.first->tensor.distance.estimate, apart.first->tensor.distance.low);
    }
    PlantedRun a = captured(32, 1, DType::i32);
    a.checks[0].first_index = 0;
    PlantedRun b = captured(32, 1.01, DType::i32);
    EXPECT_EQ(compared(a, b).first->tensor.difference, Difference::bits);
}

TEST(Diverge, an_index_within_pieces_that_are_numbered_otherwise_is_within_the_whole) {
    PlantedRun run = captured(8, 1);
    Values values = planted_values(1, 8 * planted_columns);
    values[5] = nan;
    run.checks[2].fingerprint = planted_fingerprint(values, run.checks[2].first_index);
    BrickTable bricks;
    const Result<CheckedRun> loaded = load_run(run, bricks);
    ASSERT_TRUE(loaded.ok());
    const WholeTensor whole = whole_of(*loaded, {0, 1, 2, 3});
    EXPECT_TRUE(whole.joins);
    EXPECT_FALSE(whole.numbered);
    EXPECT_EQ(facts_of(whole.check).first_nonfinite, 16 * planted_columns + 5);
}

TEST(Diverge, the_worst_is_one_that_diverges_also_where_its_distance_is_not_known) {
    PlantedModel noisy;
    noisy.noise = 1e-6;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = noisy.recorded();
    for (PlantedRun* run : {&a, &b}) {
        Values huge = planted_values(run == &a ? 1 : 2, planted_columns);
        for (double& value : huge) {
            value *= 1e200; // whose square overflows
        }
        find(*run, 3, "attention", 1, TensorRole::output).fingerprint = planted_fingerprint(huge);
    }
    const DivergeReport report = compared(a, b);
    EXPECT_EQ(report.divergent, 1u);
    ASSERT_TRUE(report.worst);
    EXPECT_EQ(report.worst->difference, Difference::value);
    EXPECT_EQ(report.worst->place.step, 3u);
}

TEST(Diverge, a_fault_is_found_across_chunks_of_another_size) {
    PlantedModel clean, faulty;
    clean.chunk = 32;
    faulty.chunk = 8;
    faulty.fault_layer = 2;
    faulty.fault_position = 13;
    PlantedRun a = clean.recorded();
    PlantedRun b = faulty.recorded();
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.place.brick, "attention");
    EXPECT_EQ(report.first->tensor.place.layer, 2u);
    EXPECT_EQ(report.first->tensor.place.rows, 32u);
    EXPECT_EQ(report.first->inputs, InputState::agree);
}

TEST(Diverge, steps_pair_by_position_so_that_a_step_that_only_one_run_has_shifts_nothing) {
    PlantedModel model;
    PlantedRun a = model.recorded();
    PlantedRun b = model.recorded();
    b.checks.erase(std::remove_if(b.checks.begin(), b.checks.end(),
                                  [](const recording::TensorCheck& check) { return check.step_plus_one == 4; }),
                   b.checks.end());
    for (recording::TensorCheck& check : b.checks) {
        check.step_plus_one -= check.step_plus_one > 4 ? 1 : 0;
    }
    const DivergeReport report = compared(a, b);
    EXPECT_EQ(report.divergent, 0u);
    EXPECT_EQ(report.only_in_a.steps, 1u);
    EXPECT_EQ(report.only_in_a.step_tensors, 25u);
    EXPECT_EQ(report.only_in_a.tensors, 0u);
    EXPECT_FALSE(report.same());
}

TEST(Diverge, steps_without_positions_pair_by_their_number_within_the_phase) {
    PlantedModel model;
    model.positions = false;
    PlantedRun a = model.recorded();
    PlantedRun b = model.recorded();
    const DivergeReport report = compared(a, b);
    EXPECT_TRUE(report.same());
    EXPECT_EQ(report.compared, a.checks.size());
    EXPECT_TRUE(noted(report, "positions are not known"));
}

TEST(Diverge, T9_a_second_generation_in_one_run_is_compared_for_itself) {
    PlantedRun a, b;
    PlantedModel clean, faulty;
    faulty.fault_layer = 1;
    for (int generation = 0; generation < 3; ++generation) {
        clean.run(a);
        (generation == 1 ? faulty : clean).run(b); // the last one is right again
    }
    const DivergeReport report = compared(a, b);
    EXPECT_EQ(report.compared, a.checks.size());
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.place.step, 6u);
    EXPECT_EQ(report.first->tensor.place.layer, 1u);
    remove(b, 2, "attention", 2);
    const DivergeReport lacking = compared(a, b);
    ASSERT_EQ(lacking.missing.size(), 1u);
    EXPECT_EQ(lacking.missing[0].place.step, 2u); // not that of a later generation
}

TEST(Diverge, T9_a_fault_in_the_first_of_two_occurrences_is_not_hidden_by_the_second) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    find(b, 2, "rms_norm", 1, TensorRole::output, 0).fingerprint =
        planted_fingerprint(planted_values(1, planted_columns));
    const DivergeReport report = compared(a, b);
    EXPECT_EQ(report.divergent, 1u);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.place.occurrence, 0u);
    EXPECT_EQ(report.first->tensor.place.step, 2u);
}

TEST(Diverge, T9_rounding_raises_no_alarm_and_the_last_element_is_seen) {
    PlantedModel noisy;
    noisy.noise = 1e-6;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun rounded = noisy.recorded();
    EXPECT_TRUE(compared(a, rounded).same());
    PlantedRun b = PlantedModel{}.recorded();
    Values values = PlantedModel{}.rows("attention", 3, 0, 35, 1, false);
    values.back() += 0.5;
    find(b, 5, "attention", 3, TensorRole::output).fingerprint = planted_fingerprint(values);
    EXPECT_EQ(compared(a, b).divergent, 1u);
}

TEST(Diverge, T9_missing_and_extra_tensors_are_failures_with_their_count) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    remove(b, 3, "attention", 2);
    for (const bool swapped : {false, true}) {
        const DivergeReport report = swapped ? compared(b, a) : compared(a, b);
        EXPECT_FALSE(report.same());
        EXPECT_EQ(report.divergent, 0u);
        const MissingCount& count = swapped ? report.only_in_b : report.only_in_a;
        EXPECT_EQ(count.tensors, 1u);
        EXPECT_EQ(count.steps, 0u);
        ASSERT_EQ(report.missing.size(), 1u);
        EXPECT_EQ(report.missing[0].only_in_a, !swapped);
        EXPECT_EQ(report.missing[0].place.brick, "attention");
        EXPECT_EQ(report.missing[0].place.layer, 2u);
    }
}

TEST(Diverge, T9_steps_beyond_the_end_of_the_shorter_run_are_missing_and_said_once) {
    PlantedRun a = PlantedModel{}.recorded(32, 9);
    PlantedRun b = PlantedModel{}.recorded(32, 4);
    const DivergeReport report = compared(a, b);
    EXPECT_FALSE(report.same());
    EXPECT_EQ(report.only_in_a.steps, 5u);
    EXPECT_EQ(report.only_in_a.step_tensors, 5u * 25);
    EXPECT_EQ(report.only_in_a.tensors, 0u);
    EXPECT_EQ(report.missing.size(), 5u);
}

TEST(Diverge, T9_an_empty_tensor_never_matches_not_even_another_empty_one) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    find(b, 2, "attention", 1, TensorRole::output).fingerprint = planted_fingerprint({});
    EXPECT_EQ(compared(a, b).first->tensor.difference, Difference::empty);
    find(a, 2, "attention", 1, TensorRole::output).fingerprint = planted_fingerprint({});
    const DivergeReport report = compared(a, b);
    EXPECT_FALSE(report.same());
    EXPECT_EQ(report.first->tensor.difference, Difference::empty);
}

TEST(Diverge, T9_a_recording_without_checks_fails_and_two_of_them_are_an_error_that_says_how_to_record) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun none;
    EXPECT_FALSE(compared(a, none).same());
    EXPECT_FALSE(compared(none, a).same());
    EXPECT_TRUE(noted(compared(none, a), "recording A holds no checks"));
    const PlantedRun empty;
    const recording::RecordedRun unreadable = empty;
    unreadable.facts->counters.drops = {{"checks of tensors without a result", 3}, {"records", 5}};
    EXPECT_TRUE(noted(*diverge(a, unreadable, {}),
                      "recording B holds no checks of tensors, 3 lost: checks of tensors without a result; record"));
    const Result<DivergeReport> both = diverge(none, none, {});
    ASSERT_FALSE(both.ok());
    EXPECT_EQ(both.error().code, ErrorCode::not_found);
    EXPECT_NE(both.error().message.find("PLUMB=\"on,tensors=all\""), std::string::npos);
}

TEST(Diverge, T9_a_run_that_kept_no_fingerprint_of_what_it_looked_at_is_told_from_one_that_looked_at_nothing) {
    PlantedRun a = PlantedModel{}.recorded();
    const PlantedRun empty;
    const recording::RecordedRun looked = empty, not_one = empty;
    looked.facts->descriptions = {{"checked", "456 tensors, all finite"}};
    not_one.facts->descriptions = {{"checked", "0 tensors"}};
    const Result<DivergeReport> report = diverge(a, looked, {});
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->same());
    EXPECT_TRUE(noted(*report, "recording B holds no fingerprints of the tensors it looked at"));
    EXPECT_FALSE(noted(*report, "holds no checks"));
    EXPECT_TRUE(noted(*diverge(not_one, a, {}), "recording A holds no checks"));
    const Result<DivergeReport> both = diverge(looked, looked, {});
    ASSERT_FALSE(both.ok());
    EXPECT_EQ(both.error().message.rfind("neither recording holds fingerprints", 0), 0U);
}

TEST(Diverge, a_sequence_that_one_run_lacks_is_noted_while_another_is_common) {
    PlantedModel first, second;
    second.sequence = 1;
    second.fault_layer = 0;
    PlantedRun a = first.recorded();
    PlantedRun b = first.recorded();
    second.run(b);
    const DivergeReport report = compared(a, b);
    EXPECT_TRUE(report.same());
    EXPECT_TRUE(noted(report, "1 sequence only in B"));
    EXPECT_GT(report.other_sequences, 0u);
    PlantedRun c = second.recorded();
    const DivergeReport nothing = compared(a, c);
    EXPECT_FALSE(nothing.same());
    EXPECT_EQ(nothing.compared, 0u);
    EXPECT_EQ(nothing.only_in_a.steps, 6u);
}

TEST(Diverge, T15_a_nan_is_the_worst_and_first_however_far_apart_others_are) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    Values values = PlantedModel{}.rows("attention", 1, 0, 32, 1, false);
    values[5] = nan;
    find(b, 2, "attention", 1, TensorRole::output).fingerprint = planted_fingerprint(values);
    Values far = planted_values(5, planted_columns);
    for (double& value : far) {
        value *= 1e6;
    }
    find(b, 3, "attention", 1, TensorRole::output).fingerprint = planted_fingerprint(far);
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first && report.worst);
    EXPECT_EQ(report.first->tensor.difference, Difference::nonfinite);
    EXPECT_EQ(report.first->tensor.b.nans, 1u);
    EXPECT_EQ(report.first->tensor.b.first_nonfinite, 5u);
    EXPECT_EQ(report.worst->difference, Difference::nonfinite);
    EXPECT_EQ(report.worst->place.step, 2u);
}

TEST(Diverge, T15_the_tolerance_that_is_given_is_the_one_that_is_used) {
    PlantedModel noisy;
    noisy.noise = 1e-3;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = noisy.recorded();
    const DivergeReport strict = compared(a, b);
    EXPECT_FALSE(strict.same());
    EXPECT_EQ(strict.tolerance, 1e-4);
    EXPECT_EQ(strict.tolerance_of, DType::f32);
    DivergeOptions loose;
    loose.tolerance = 0.01;
    const DivergeReport report = compared(a, b, loose);
    EXPECT_TRUE(report.same());
    EXPECT_EQ(report.tolerance, 0.01);
    EXPECT_FALSE(report.tolerance_of);
    for (const double wrong : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
        loose.tolerance = wrong;
        EXPECT_FALSE(diverge(a, b, loose).ok());
    }
}

TEST(Diverge, T15_expecting_exactness_finds_what_every_tolerance_lets_through) {
    PlantedModel noisy;
    noisy.noise = 1e-7;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = noisy.recorded();
    EXPECT_TRUE(compared(a, b).same());
    DivergeOptions exact;
    exact.exact = true;
    const DivergeReport report = compared(a, b, exact);
    EXPECT_FALSE(report.same());
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.difference, Difference::bits);
    // Joined from pieces whose borders are inside a row of the definition, too: 5 rows of 48.
    PlantedModel cut = noisy;
    cut.chunk = 5;
    PlantedRun c = cut.recorded();
    EXPECT_FALSE(compared(a, c, exact).same());
    EXPECT_TRUE(compared(a, c).same());
}

TEST(Diverge, the_coarsest_element_type_of_both_runs_sets_the_tolerance_of_all) {
    PlantedModel noisy;
    noisy.noise = 5e-3;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = noisy.recorded();
    EXPECT_FALSE(compared(a, b).same());
    b.add("embedding", -1, planted_values(1, 8), 1, TensorRole::input, DType::bf16);
    a.add("embedding", -1, planted_values(1, 8), 1, TensorRole::input, DType::bf16);
    const DivergeReport report = compared(a, b);
    EXPECT_TRUE(report.same());
    EXPECT_EQ(report.tolerance, 2e-2);
    EXPECT_EQ(report.tolerance_of, DType::bf16);
}

TEST(Diverge, integers_agree_exactly_or_not_at_all) {
    PlantedModel model;
    model.dtype = DType::i32;
    PlantedModel noisy = model;
    noisy.noise = 1e-9;
    PlantedRun a = model.recorded();
    PlantedRun b = noisy.recorded();
    DivergeOptions loose;
    loose.tolerance = 1;
    EXPECT_EQ(compared(a, b, loose).first->tensor.difference, Difference::bits);
}

TEST(Diverge, an_input_that_differs_while_the_output_before_it_agrees_was_changed_in_between) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedModel faulty;
    faulty.fault_layer = 2;
    PlantedRun b = faulty.recorded();
    find(b, 0, "attention", 2, TensorRole::input).fingerprint =
        planted_fingerprint(planted_values(3, 16 * planted_columns));
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.place.role, TensorRole::input);
    EXPECT_EQ(report.first->inputs, InputState::disagree);
    ASSERT_TRUE(report.first->preceded_by);
    EXPECT_EQ(report.first->preceded_by->brick, "rms_norm");
    EXPECT_EQ(report.first->preceded_by->layer, 2u);
}

TEST(Diverge, T16_inputs_that_were_not_recorded_are_never_said_to_agree) {
    PlantedModel faulty;
    faulty.fault_layer = 2;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = faulty.recorded();
    for (PlantedRun* run : {&a, &b}) {
        run->checks.erase(
            std::remove_if(run->checks.begin(), run->checks.end(),
                           [](const recording::TensorCheck& check) { return check.role == TensorRole::input; }),
            run->checks.end());
    }
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->inputs, InputState::not_recorded);
    EXPECT_TRUE(report.first->input_tensors.empty());
}

TEST(Diverge, T16_inputs_of_another_call_of_the_same_brick_say_nothing_about_this_one) {
    PlantedRun a, b;
    for (PlantedRun* run : {&a, &b}) {
        run->step(Phase::decode, 5);
        for (std::uint64_t call = 0; call < 3; ++call) {
            run->add("norm", 0, planted_values(call, 64), 1, TensorRole::input);
            run->add("norm", 0, planted_values(call + (run == &b && call == 2 ? 100 : 10), 64), 1);
            run->add("norm", 0, planted_values(call + (run == &b && call == 2 ? 200 : 20), 64), 1);
        }
    }
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.place.occurrence, 4u);
    ASSERT_EQ(report.first->input_tensors.size(), 1u);
    EXPECT_EQ(report.first->input_tensors[0].place.occurrence, 2u);
    // The second output of that call went through the same inputs.
    find(b, 0, "norm", 0, TensorRole::output, 4) = find(a, 0, "norm", 0, TensorRole::output, 4);
    const DivergeReport second = compared(a, b);
    EXPECT_EQ(second.first->tensor.place.occurrence, 5u);
    ASSERT_EQ(second.first->input_tensors.size(), 1u);
    EXPECT_EQ(second.first->input_tensors[0].place.occurrence, 2u);
}

TEST(Diverge, logits_whose_largest_moves_are_counted_with_their_margins) {
    PlantedModel noisy;
    noisy.noise = 1e-6;
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = noisy.recorded();
    recording::TensorCheck& head = find(b, 5, "lm_head", -1, TensorRole::output);
    head.argmax = 9;
    head.margin = 1e-6;
    const DivergeReport report = compared(a, b);
    EXPECT_TRUE(report.same()); // the last step: nothing was computed from that token
    ASSERT_EQ(report.flip_count, 1u);
    EXPECT_EQ(report.flips[0].token_a, 7u);
    EXPECT_EQ(report.flips[0].token_b, 9u);
    EXPECT_EQ(report.flips[0].margin_a, 0.5);
    EXPECT_EQ(report.flips[0].margin_b, 1e-6);
}

/// All of a step computed from another token.
void recompute(PlantedRun& run, std::uint64_t step) {
    for (recording::TensorCheck& check : run.checks) {
        if (check.step_plus_one == step + 1) {
            check.fingerprint =
                planted_fingerprint(planted_values(check.order + 1000, check.fingerprint.count), check.first_index);
        }
    }
}

TEST(Diverge, what_follows_another_token_is_put_down_to_the_token) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    recompute(b, 4);
    EXPECT_EQ(compared(a, b).first->tensor.difference, Difference::value);
    find(b, 3, "lm_head", -1, TensorRole::output).argmax = 9;
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_FALSE(report.same());
    EXPECT_EQ(report.first->tensor.difference, Difference::token);
    EXPECT_EQ(report.first->tensor.place.brick, "lm_head");
    EXPECT_EQ(report.first->tensor.place.step, 3u);
    EXPECT_EQ(report.first->token_a, 7u);
    EXPECT_EQ(report.first->token_b, 9u);
}

TEST(Diverge, T9_a_near_tie_hides_no_fault_of_the_same_step_or_of_a_later_one) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedModel faulty; // its step agrees up to the attention of layer 2: it was given the same token
    faulty.fault_layer = 2;
    faulty.fault_position = 34;
    PlantedRun b = faulty.recorded();
    find(b, 3, "lm_head", -1, TensorRole::output).argmax = 9;
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->tensor.difference, Difference::value);
    EXPECT_EQ(report.first->tensor.place.brick, "attention");
    EXPECT_EQ(report.first->tensor.place.step, 4u);
    EXPECT_EQ(report.flip_count, 1u);
    // All of step 5 is wrong, but the step after the near tie agreed.
    PlantedRun later = PlantedModel{}.recorded();
    find(later, 3, "lm_head", -1, TensorRole::output).argmax = 9;
    recompute(later, 5);
    EXPECT_EQ(compared(a, later).first->tensor.place.step, 5u);
    EXPECT_EQ(compared(a, later).first->tensor.difference, Difference::value);
    // A prompt is given, whatever the logits within it say.
    PlantedRun prompt = PlantedModel{}.recorded();
    find(prompt, 0, "lm_head", -1, TensorRole::output).argmax = 9;
    recompute(prompt, 1);
    EXPECT_EQ(compared(a, prompt).first->tensor.difference, Difference::value);
}

TEST(Diverge, T8_positions_and_shapes_that_no_run_has_end_in_a_report) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    for (PlantedRun* run : {&a, &b}) {
        for (recording::TensorCheck& check : run->checks) {
            check.shape.clear();
        }
        run->checks[0].position = std::numeric_limits<std::int64_t>::max();
        run->checks[1].position = std::numeric_limits<std::int64_t>::min();
        run->checks[2].position = std::numeric_limits<std::int64_t>::max() - 1;
        run->checks[2].shape = {std::numeric_limits<std::uint64_t>::max(), 2};
    }
    EXPECT_GT(compared(a, b).compared, 0u);
    BrickTable bricks;
    const Result<CheckedRun> run = load_run(a, bricks);
    ASSERT_TRUE(run.ok());
    for (int at = 0; at < 3; ++at) {
        EXPECT_EQ(run->checks[static_cast<std::size_t>(at)].check.position, -1);
    }
}

TEST(Diverge, T8_pieces_without_a_shape_do_not_join) {
    CheckedRun run;
    for (std::uint64_t piece = 0; piece < 2; ++piece) {
        RunCheck check;
        check.check.first_index = piece * 32;
        check.check.fingerprint = planted_fingerprint(planted_values(piece, 32), piece * 32);
        run.checks.push_back(check);
    }
    run.checks[1].check.shape = {1, 32};
    EXPECT_FALSE(whole_of(run, {0, 1}).joins);
    run.checks[0].check.shape = {1, 32};
    EXPECT_TRUE(whole_of(run, {0, 1}).joins);
}

TEST(Diverge, T16_inputs_are_found_also_where_another_request_ran_in_between) {
    PlantedRun a, b;
    for (PlantedRun* run : {&a, &b}) {
        run->step(Phase::decode, 5, 1, 0);
        run->add("norm", 0, planted_values(1, 64), 1, TensorRole::input);
        run->step(Phase::decode, 9, 1, 1);
        run->add("norm", 0, planted_values(2, 64), 1, TensorRole::input);
        recording::TensorCheck& output = run->add("norm", 0, planted_values(run == &a ? 3 : 4, 64), 1);
        output.step_plus_one = 1; // that of the first request
        output.sequence = 0;
        output.position = 5;
    }
    const DivergeReport report = compared(a, b);
    ASSERT_TRUE(report.first);
    EXPECT_EQ(report.first->inputs, InputState::agree);
    ASSERT_EQ(report.first->input_tensors.size(), 1u);
    EXPECT_EQ(report.first->input_tensors[0].place.sequence, 0u);
}

TEST(Diverge, checks_of_nonfinite_alone_are_compared_by_their_largest_value_and_marked) {
    PlantedRun a = PlantedModel{}.recorded();
    PlantedRun b = PlantedModel{}.recorded();
    for (PlantedRun* run : {&a, &b}) {
        recording::TensorCheck& check = find(*run, 3, "attention", 1, TensorRole::output);
        check.level = recording::CheckLevel::nonfinite;
        check.fingerprint = Fingerprint{};
        check.fingerprint.count = planted_columns;
        check.fingerprint.max = run == &a ? 2.0 : 3.0;
    }
    const DivergeReport report = compared(a, b);
    EXPECT_EQ(report.divergent, 1u);
    EXPECT_TRUE(noted(report, "only the largest values were compared"));
}

TEST(Diverge, more_checks_than_fit_are_an_error_that_says_what_to_do) {
    PlantedRun run = PlantedModel{}.recorded();
    BrickTable bricks;
    const Result<CheckedRun> loaded = load_run(run, bricks, 10);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(loaded.error().message.find("every="), std::string::npos);
    const Result<CheckedRun> large = load_run(run, bricks, most_checks, 10000);
    ASSERT_FALSE(large.ok());
    EXPECT_EQ(large.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(large.error().message.find("every="), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
#include "answers/health/health.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numerics/planted_checks_testing.hpp"

namespace {

using namespace plumb;
using namespace plumb::numerics;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

HealthReport examined(PlantedRun& run, PlantedRun* twin = nullptr) {
    const recording::RecordedRun beside = twin != nullptr ? *twin : recording::RecordedRun();
    Result<HealthReport> report = health(run, twin != nullptr ? &beside : nullptr, "");
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    return report.ok() ? *report : HealthReport{};
}

bool found(const HealthReport& report, const std::string& begin) {
    for (const std::string& finding : report.findings) {
        if (finding.rfind(begin, 0) == 0) {
            return true;
        }
    }
    return false;
}

/// One decode step; `scale` of the residual stream by layer.
PlantedRun scaled(const std::vector<double>& scale, DType dtype = DType::f32) {
    PlantedRun run;
    run.step(Phase::decode, 9);
    for (std::size_t layer = 0; layer < scale.size(); ++layer) {
        Values values = planted_values(layer + 1, 4096);
        for (double& value : values) {
            value *= scale[layer];
        }
        run.add("residual_add", static_cast<int>(layer), planted_values(77, 4096), 1, TensorRole::output, dtype);
        run.add("residual_add", static_cast<int>(layer), values, 1, TensorRole::output, dtype);
        run.add("rms_norm", static_cast<int>(layer), planted_values(78, 4096), 1, TensorRole::output, dtype);
    }
    return run;
}

void spoil(PlantedRun& run, const char* brick, int layer, TensorRole role, double with, std::size_t at = 5) {
    for (recording::TensorCheck& check : run.checks) {
        if (run.name_of(check.name) == brick && check.layer_plus_one == static_cast<std::uint32_t>(layer + 1) &&
            check.role == role) {
            Values values = planted_values(1, check.fingerprint.count);
            values[at] = with;
            check.fingerprint = planted_fingerprint(values, check.first_index);
            return;
        }
    }
    ADD_FAILURE() << "no such check";
}

TEST(Health, growth_is_over_the_layer_before_and_no_other) {
    PlantedRun run;
    run.step(Phase::decode, 9);
    for (const int layer : {0, 20, 21}) { // as tensors=all+layers=0/20-21 leaves them
        Values values = planted_values(1, 4096);
        for (double& value : values) {
            value *= layer == 0 ? 1 : 500;
        }
        run.add("residual_add", layer, values, 1, TensorRole::output, DType::f32);
    }
    const HealthReport report = examined(run);
    ASSERT_EQ(report.layers.size(), 3u);
    EXPECT_FALSE(report.layers[1].growth.value);
    EXPECT_EQ(report.layers[1].growth.reason, "the layer before was not checked");
    EXPECT_NEAR(report.layers[2].growth.value.value_or(nan), 1, 0.01);
    EXPECT_TRUE(report.findings.empty()) << report.findings[0];
}

TEST(Health, rms_and_growth_are_those_of_the_last_residual_of_each_layer) {
    PlantedRun run = scaled({1, 3, 6});
    const HealthReport report = examined(run);
    ASSERT_EQ(report.layers.size(), 3u);
    EXPECT_TRUE(report.finite());
    for (std::size_t layer = 0; layer < 3; ++layer) {
        const double scale[] = {1, 3, 6};
        const LayerHealth& row = report.layers[layer];
        EXPECT_EQ(row.brick, "residual_add");
        EXPECT_NEAR(row.rms.value.value_or(nan), scale[layer], 0.05 * scale[layer]);
        EXPECT_NEAR(row.l2.value.value_or(nan), 64 * scale[layer], 64 * 0.05 * scale[layer]);
    }
    EXPECT_EQ(report.layers[0].growth.reason, "the first layer");
    EXPECT_NEAR(report.layers[1].growth.value.value_or(nan), 3, 0.2);
    EXPECT_NEAR(report.residual_growth.value.value_or(nan), 6, 0.4);
    EXPECT_TRUE(report.findings.empty());
}

TEST(Health, exploding_vanishing_and_zero_layers_are_found) {
    PlantedRun exploding = scaled({1, 150, 150});
    EXPECT_TRUE(found(examined(exploding), "exploding: layer 1, rms of residual_add is 1"));
    PlantedRun vanishing = scaled({1, 1, 0.002});
    EXPECT_TRUE(found(examined(vanishing), "vanishing: layer 2"));
    PlantedRun zero = scaled({1, 0, 0});
    EXPECT_TRUE(found(examined(zero), "zero: layer 1, residual_add is all zero in 1 of 1 outputs"));
    PlantedRun sound = scaled({1, 50, 30});
    EXPECT_TRUE(examined(sound).findings.empty());
}

TEST(Health, T15_squares_that_overflow_or_vanish_give_no_figure_and_no_finding) {
    for (const double scale : {1e200, 1e-200}) {
        PlantedRun run = scaled({1, scale, scale, 1}, DType::f64);
        const HealthReport report = examined(run, &run);
        EXPECT_TRUE(report.findings.empty()) << report.findings.front();
        for (const std::size_t layer : {1u, 2u}) {
            const LayerHealth& row = report.layers[layer];
            EXPECT_EQ(row.rms.reason, scale > 1 ? "beyond the range of a double" : "squares vanish");
            EXPECT_EQ(row.l2.reason, row.rms.reason);
            EXPECT_FALSE(row.growth.value);
            EXPECT_GT(row.largest, 0);
        }
        EXPECT_EQ(report.layers[3].growth.reason, "the layer before has no rms");
        EXPECT_NEAR(report.residual_growth.value.value_or(nan), 1, 0.1);
    }
    PlantedRun many = scaled({1e152, 1e152}, DType::f64); // whose squares fit, and not their sum
    for (int step = 0; step < 40; ++step) {
        many.step(Phase::decode, 10 + step);
        Values values = planted_values(1, 4096);
        for (double& value : values) {
            value *= 1e152;
        }
        many.add("residual_add", 0, values, 1, TensorRole::output, DType::f64);
    }
    const HealthReport report = examined(many, &many);
    EXPECT_EQ(report.layers[0].rms.reason, "beyond the range of a double");
    EXPECT_EQ(report.layers[0].relative_error.reason, "beyond the range of a double");
    EXPECT_TRUE(report.layers[1].rms.value);
}

TEST(Health, a_twin_whose_elements_are_numbered_otherwise_gives_no_error) {
    PlantedRun run, twin;
    for (PlantedRun* of : {&run, &twin}) {
        of->step(Phase::prefill, 8, 4);
        of->add("residual_add", 0, planted_values(1, 4096), 4);
    }
    twin.checks[0].first_index = 0;
    twin.checks[0].fingerprint = planted_fingerprint(planted_values(1, 4096));
    EXPECT_EQ(examined(run, &twin).layers[0].relative_error.reason, "not comparable with the twin's");
}

TEST(Health, saturation_is_against_the_range_of_each_tensors_own_type) {
    PlantedRun half = scaled({1, 1}, DType::f16);
    spoil(half, "rms_norm", 1, TensorRole::output, 40000);
    const HealthReport report = examined(half);
    EXPECT_TRUE(found(report, "saturated: layer 1, rms_norm reaches 61.1 % of its type's range"));
    EXPECT_NEAR(report.layers[1].saturation.value.value_or(nan), 40000.0 / 65504, 1e-9);
    EXPECT_EQ(report.layers[1].largest, 40000);
    EXPECT_EQ(report.layers[1].largest_brick, "rms_norm");
    PlantedRun single = scaled({1, 1}, DType::f32);
    spoil(single, "rms_norm", 1, TensorRole::output, 40000);
    EXPECT_TRUE(examined(single).findings.empty());
    EXPECT_EQ(range_of(DType::i8), infinite);
}

TEST(Health, T16_the_first_tensor_that_is_not_finite_is_named_with_what_went_in) {
    for (const double bad : {nan, infinite, -infinite}) {
        PlantedRun run = PlantedModel{}.recorded();
        spoil(run, "attention", 2, TensorRole::output, bad);
        spoil(run, "residual_add", 3, TensorRole::output, nan);
        const HealthReport report = examined(run);
        EXPECT_FALSE(report.finite());
        EXPECT_EQ(report.nonfinite, 2u);
        ASSERT_TRUE(report.first_nonfinite);
        EXPECT_EQ(report.first_nonfinite->place.brick, "attention");
        EXPECT_EQ(report.first_nonfinite->place.layer, 2u);
        EXPECT_EQ(report.first_nonfinite->facts.first_nonfinite, 5u);
        EXPECT_EQ(report.first_nonfinite->inputs, InputState::agree);
        ASSERT_EQ(report.first_nonfinite->input_tensors.size(), 1u);
    }
    PlantedRun sound = PlantedModel{}.recorded();
    EXPECT_TRUE(examined(sound).finite());
    EXPECT_FALSE(examined(sound).first_nonfinite);
}

TEST(Health, an_index_is_within_the_tensor_also_in_a_later_piece_of_a_prefill) {
    PlantedRun run;
    run.step(Phase::prefill, 100, 2);
    Values values = planted_values(1, 2 * planted_columns);
    values[60] = nan;
    run.add("attention", 0, values, 2);
    EXPECT_EQ(run.checks[0].fingerprint.first_nonfinite, 100 * planted_columns + 60);
    EXPECT_EQ(examined(run).first_nonfinite->facts.first_nonfinite, 60u);
}

TEST(Health, inputs_that_are_not_finite_or_not_recorded_are_said_so) {
    PlantedRun input = PlantedModel{}.recorded();
    spoil(input, "attention", 2, TensorRole::input, nan);
    spoil(input, "attention", 2, TensorRole::output, nan);
    EXPECT_EQ(examined(input).first_nonfinite->place.role, TensorRole::input);
    EXPECT_EQ(examined(input).first_nonfinite->inputs, InputState::disagree);
    PlantedRun none = PlantedModel{}.recorded();
    spoil(none, "residual_add", 2, TensorRole::output, nan);
    EXPECT_EQ(examined(none).first_nonfinite->inputs, InputState::not_recorded);
}

TEST(Health, error_cosine_and_noise_against_the_twin_are_those_that_were_planted) {
    PlantedModel twin, run;
    run.noise = 0.01;
    PlantedRun reference = twin.recorded(32, 16);
    PlantedRun tested = run.recorded(32, 16);
    const HealthReport report = examined(tested, &reference);
    EXPECT_EQ(report.compared, tested.checks.size());
    for (std::size_t layer = 0; layer < 4; ++layer) {
        const LayerHealth& row = report.layers[layer];
        EXPECT_NEAR(row.relative_error.value.value_or(nan), 0.01, 0.003);
        EXPECT_NEAR(row.signal_to_noise_db.value.value_or(nan), 40, 2.5);
        EXPECT_GT(row.cosine.value.value_or(nan), 0.999);
    }
    const HealthReport itself = examined(reference, &reference);
    EXPECT_EQ(itself.layers[0].signal_to_noise_db.reason, "identical");
    EXPECT_EQ(itself.layers[0].relative_error.value, 0);
}

TEST(Health, T15_a_layer_with_a_nan_has_no_signal_to_noise_ratio_and_is_the_worst) {
    PlantedModel twin, run;
    run.noise = 0.3;
    PlantedRun reference = twin.recorded();
    PlantedRun tested = run.recorded();
    PlantedModel near;
    near.noise = 1e-9;
    PlantedRun better = near.recorded();
    for (recording::TensorCheck& check : tested.checks) { // layer 2 would be the best
        check = check.layer_plus_one == 3 ? better.checks[check.order] : check;
    }
    recording::TensorCheck* last = nullptr;
    for (recording::TensorCheck& check : tested.checks) {
        if (check.layer_plus_one == 3 && tested.name_of(check.name) == "residual_add" && check.occurrence == 1) {
            last = &check;
        }
    }
    ASSERT_NE(last, nullptr);
    Values values = PlantedModel{}.rows("residual_add", 2, 1, last->position, 1, false);
    values[3] = nan;
    last->fingerprint = planted_fingerprint(values);
    for (const bool both : {false, true}) { // the same NaN in the twin makes it no better
        if (both) {
            reference.checks[last->order].fingerprint = last->fingerprint;
        }
        const HealthReport report = examined(tested, &reference);
        EXPECT_FALSE(report.finite());
        EXPECT_EQ(report.twin_nonfinite, both ? 1u : 0u);
        EXPECT_FALSE(report.layers[2].signal_to_noise_db.value);
        EXPECT_EQ(report.layers[2].signal_to_noise_db.reason, "not finite");
        EXPECT_EQ(report.layers[2].rms.reason, "not finite");
        ASSERT_GT(report.worst.size(), 1u);
        EXPECT_EQ(report.worst[0].difference, Difference::nonfinite);
        EXPECT_EQ(report.worst[0].place.layer, 2u);
        EXPECT_GE(report.worst[1].distance.low, report.worst[2].distance.low);
    }
}

TEST(Health, T15_a_twin_that_is_given_is_used_and_one_without_counterparts_is_an_error) {
    PlantedRun run = PlantedModel{}.recorded();
    EXPECT_EQ(examined(run).layers[0].cosine.reason, "no twin was given");
    EXPECT_EQ(examined(run, &run).layers[0].cosine.value, 1);
    PlantedRun none;
    const recording::RecordedRun without = none;
    EXPECT_FALSE(health(run, &without, "").ok());
    PlantedRun other;
    other.step(Phase::decode, 0);
    other.add("something", 0, planted_values(1, 8), 1);
    const recording::RecordedRun beside = other;
    const Result<HealthReport> apart = health(run, &beside, "");
    ASSERT_FALSE(apart.ok());
    EXPECT_NE(apart.error().message.find("no tensor in common"), std::string::npos);
}

TEST(Health, T16_a_run_without_checks_is_only_sound_where_it_said_that_it_looked) {
    PlantedRun none;
    const Result<HealthReport> nothing = health(none, nullptr, "");
    ASSERT_FALSE(nothing.ok());
    EXPECT_NE(nothing.error().message.find("PLUMB=\"on,tensors=all\""), std::string::npos);
    const Result<HealthReport> looked = health(none, nullptr, "12 tensors, all finite");
    ASSERT_TRUE(looked.ok());
    EXPECT_TRUE(looked->finite());
    const recording::RecordedRun twin = none;
    EXPECT_FALSE(health(none, &twin, "12 tensors, all finite").ok());
}

TEST(Health, T15_checks_of_nonfinite_alone_keep_no_sums_and_none_are_invented) {
    PlantedRun run;
    run.step(Phase::decode, 3);
    recording::TensorCheck& input = run.add("attention", 0, planted_values(1, 16), 1);
    input.level = recording::CheckLevel::nonfinite;
    input.fingerprint = Fingerprint{};
    input.fingerprint.count = 16;
    input.fingerprint.max = 12;
    const HealthReport report = examined(run);
    EXPECT_EQ(report.layers[0].rms.reason, "tensors=nonfinite keeps no sums");
    EXPECT_EQ(report.layers[0].largest, 12);
    EXPECT_TRUE(report.findings.empty());
}

TEST(Health, tensors_that_only_one_side_has_are_noted_for_each_side) {
    PlantedRun run = PlantedModel{}.recorded();
    PlantedRun twin = PlantedModel{}.recorded();
    run.checks.erase(run.checks.begin() + 5, run.checks.begin() + 7);
    twin.checks.erase(twin.checks.begin() + 30);
    const HealthReport report = examined(run, &twin);
    ASSERT_EQ(report.notes.size(), 2u);
    EXPECT_EQ(report.notes[0], "1 tensor has no counterpart in the twin: not compared; see plumb diverge");
    EXPECT_EQ(report.notes[1], "2 tensors of the twin have no counterpart in the recording: not compared; see plumb "
                               "diverge");
}

TEST(Health, T16_a_count_beyond_the_checks_makes_a_run_not_finite_and_says_that_entries_are_gone) {
    for (const bool of_twin : {false, true}) {
        HealthReport report;
        add_count(report, 0, of_twin);
        EXPECT_TRUE(report.finite());
        EXPECT_TRUE(report.notes.empty());
        add_count(report, 3, of_twin);
        EXPECT_FALSE(report.finite());
        ASSERT_EQ(report.notes.size(), 1u);
        EXPECT_NE(report.notes[0].find("counted 3 tensors with NaN or Inf, of which its recording holds 0"),
                  std::string::npos);
        add_count(report, 2, of_twin); // fewer than are known
        EXPECT_EQ(of_twin ? report.twin_nonfinite : report.nonfinite, 3u);
        add_count(report, 6000, of_twin);
        EXPECT_NE(report.notes.back().find("or came after the 4096 that tensors=nonfinite keeps"), std::string::npos);
    }
}

} // namespace

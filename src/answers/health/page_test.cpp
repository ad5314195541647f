// SPDX-License-Identifier: Apache-2.0
// Whether a run is sound as text and JSON.
#include "answers/health/health.hpp"
#include "answers/tensor_testing.hpp"

namespace plumb::answers {
namespace {

HealthReport sample_health() {
    HealthReport report;
    report.path = "a.plumb";
    report.twin = "twin.plumb";
    report.tensors = 1234;
    report.steps = 12;
    report.nonfinite = 3;
    report.looked_at = "1234 tensors";
    FirstNonfinite first;
    first.place = pair_of("attention", 5, TensorRole::output, Difference::none, 0).place;
    first.facts.count = 4096;
    first.facts.nans = 3;
    first.facts.first_nonfinite = 17;
    first.inputs = InputState::agree;
    TensorFacts input;
    input.largest = 1234;
    first.input_tensors = {{pair_of("attention", 5, TensorRole::input, Difference::none, 0).place, input}};
    report.first_nonfinite = first;
    LayerHealth sound;
    sound.layer = 0;
    sound.tensors = 24;
    sound.brick = "residual_add";
    sound.rms = measured(1.5);
    sound.l2 = measured(96);
    sound.growth = missing("the first layer");
    sound.largest = 33000;
    sound.largest_brick = sound.saturated_brick = "activation";
    sound.saturation = measured(0.504);
    sound.twin = true;
    sound.relative_error = measured(0.001);
    sound.cosine = measured(0.9999995);
    sound.signal_to_noise_db = measured(60);
    LayerHealth lost = sound;
    lost.layer = 1;
    lost.nonfinite = 3;
    for (Figure LayerHealth::*figure : {&LayerHealth::rms, &LayerHealth::l2, &LayerHealth::relative_error,
                                        &LayerHealth::cosine, &LayerHealth::signal_to_noise_db}) {
        lost.*figure = missing("not finite");
    }
    report.layers = {sound, lost};
    report.residual_growth = missing("the first or last layer has no rms");
    report.findings = {"saturated: layer 0, activation reaches 50.4 % of its type's range"};
    report.compared = 1200;
    report.twin_nonfinite = 1;
    report.worst = {pair_of("attention", 1, TensorRole::output, Difference::nonfinite, infinite)};
    report.worst[0].a.nans = 3;
    report.worst[0].a.first_nonfinite = 17;
    report.notes = {"a note"};
    return report;
}

TEST(HealthText, the_line_of_the_answer_names_the_first_tensor_that_is_not_finite_and_its_inputs) {
    const std::string text = render_text(sample_health());
    EXPECT_EQ(text.rfind("FIRST step 3 layer 5 brick attention  (decode, ", 0), 0u) << text;
    EXPECT_TRUE(contains(text, "3 NaN, 0 Inf, first at index 17 of 4,096\n"));
    EXPECT_TRUE(contains(text, "inputs are finite: the operation itself\n"));
    EXPECT_TRUE(contains(text, "input 0: largest |x| 1.23e+03\n"));
    EXPECT_TRUE(contains(text, "\nNOT FINITE  3 of 1,234 tensors\n"));
    EXPECT_TRUE(contains(text, "\nNOT FINITE  1 tensors of the twin\n"));
    EXPECT_TRUE(contains(text, "\nfinding  saturated: layer 0"));
    HealthReport sound;
    sound.looked_at = "99 tensors, all finite";
    EXPECT_EQ(render_text(sound), "FINITE  99 tensors, all finite\n");
}

TEST(HealthText, T15_a_layer_with_nan_shows_as_nan_and_never_as_a_number) {
    const std::string text = render_text(sample_health());
    const std::size_t begin = text.find("\n    1 ");
    ASSERT_NE(begin, std::string::npos) << text;
    const std::string row = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
    EXPECT_TRUE(contains(row, " NaN  ")) << row;
    EXPECT_FALSE(contains(row, "60.0")) << row;
    EXPECT_TRUE(contains(text,
                         "worst  step 3 layer 1 brick attention (decode, position 66, step 5 of the twin, output 0): "
                         "3 NaN, 0 Inf, first at index 17 of 4,096\n"))
        << text;
    HealthReport report = sample_health();
    std::swap(report.worst[0].a, report.worst[0].b);
    EXPECT_TRUE(contains(render_text(report), "output 0): in the twin 3 NaN, 0 Inf"));
}

TEST(HealthText, T16_tensors_that_were_counted_and_are_gone_are_never_called_finite) {
    HealthReport report;
    report.looked_at = "10 tensors, 3 with NaN or Inf";
    report.nonfinite = 3;
    EXPECT_EQ(render_text(report).rfind("NOT FINITE  3 tensors by the run's own count", 0), 0u) << render_text(report);
    EXPECT_EQ(parsed(render_json(report))["finite"], false);
    report = sample_health();
    report.tensors = 1;
    EXPECT_TRUE(contains(render_text(report), "NOT FINITE  3 tensors\n"));
}

TEST(NumericsJson, health_is_valid_under_the_schema_and_documented) {
    expect_valid<HealthReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_health()});
}

TEST(NumericsJson, T15_a_figure_that_is_not_finite_arrives_as_a_word_not_as_a_number) {
    const json health = parsed(render_json(sample_health()));
    EXPECT_EQ(health["layers"][1]["signal_to_noise_db"]["absent"], "not finite");
    EXPECT_EQ(health["finite"], false);
}

} // namespace
} // namespace plumb::answers

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "plumb/numerics.hpp"
#include "render/sample_report.hpp"
#include "render/schema_check.hpp"

namespace {

using namespace plumb;
using namespace plumb::render;

constexpr double infinite = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TensorPair pair_of(const char* brick, std::uint32_t layer, TensorRole role, Difference difference, double distance) {
    TensorPair pair;
    pair.place.step = 3;
    pair.place.step_b = 5;
    pair.place.phase = Phase::decode;
    pair.place.position = 66;
    pair.place.rows = 1;
    pair.place.layer = layer;
    pair.place.brick = brick;
    pair.place.role = role;
    pair.a.count = pair.b.count = 4096;
    pair.a.largest = pair.b.largest = 2.5;
    pair.difference = difference;
    pair.distance = {distance, distance * 0.9, distance * 1.1};
    return pair;
}

DivergeReport sample_diverge() {
    DivergeReport report;
    report.path_a = "a.plumb";
    report.path_b = "b.plumb";
    report.tensors_a = 1234;
    report.tensors_b = 1200;
    report.compared = 1100;
    report.identical = 900;
    report.divergent = 50;
    report.tolerance = 1e-4;
    report.tolerance_of = DType::f32;
    FirstDivergence first;
    first.tensor = pair_of("attention", 5, TensorRole::output, Difference::value, 0.12);
    first.inputs = InputState::agree;
    first.input_tensors = {pair_of("attention", 5, TensorRole::input, Difference::none, 3e-7)};
    first.preceded_by = pair_of("rope_embedding", 5, TensorRole::output, Difference::none, 0).place;
    first.token_a = 12;
    first.token_b = 99;
    report.first = first;
    report.worst = pair_of("down_projection", 7, TensorRole::output, Difference::nonfinite, infinite);
    report.worst->b.nans = 3;
    report.worst->b.first_nonfinite = 17;
    report.layers = {{4, pair_of("residual_add", 4, TensorRole::output, Difference::none, 1e-7)},
                     {5, pair_of("residual_add", 5, TensorRole::output, Difference::value, 1e-2)},
                     {6, pair_of("residual_add", 6, TensorRole::output, Difference::value, 0.1)}};
    report.flip_count = 1;
    report.flips = {{pair_of("lm_head", 0, TensorRole::output, Difference::none, 0).place, 12, 99, 0.5,
                     std::numeric_limits<double>::quiet_NaN()}};
    report.only_in_a = {2, 1, 40};
    report.only_in_b = {1, 0, 0};
    report.missing = {{true, pair_of("rms_norm", 1, TensorRole::output, Difference::none, 0).place},
                      {true, pair_of("", 0, TensorRole::output, Difference::none, 0).place}};
    report.chunking = 4;
    report.notes = {"a note"};
    return report;
}

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

TEST(DivergeText, the_line_of_the_answer_names_step_layer_and_brick_and_says_whose_fault_it_is) {
    const std::string text = render_text(sample_diverge());
    EXPECT_EQ(text.rfind("FIRST step 3 layer 5 brick attention  (decode, position 66, step 5 of B, output 0)\n", 0), 0u)
        << text;
    EXPECT_TRUE(contains(text, "relative distance 0.12 (0.108 to 0.132), tolerance 0.0001\n"));
    EXPECT_TRUE(contains(text, "inputs agree: the operation itself\n"));
    EXPECT_TRUE(contains(text, "input 0: relative distance 3e-07"));
    EXPECT_TRUE(contains(text, "counts  1,100 tensors compared, 900 bit for bit the same, 50 beyond the tolerance\n"));
    EXPECT_TRUE(contains(text, "tolerance  0.0001 (that of f32, the coarsest element type of both runs)\n"));
    EXPECT_TRUE(contains(text, "note  a note\n"));
}

TEST(DivergeText, inputs_that_disagree_or_are_not_recorded_are_said_so) {
    DivergeReport report = sample_diverge();
    report.first->inputs = InputState::disagree;
    EXPECT_TRUE(contains(render_text(report), "inputs disagree: handed down; the output checked last before it agrees "
                                              "(step 3 layer 5 brick rope_embedding)"));
    report.first->inputs = InputState::not_recorded;
    EXPECT_TRUE(contains(render_text(report), "inputs not recorded: "));
}

TEST(DivergeText, every_difference_is_described_in_its_own_words) {
    DivergeReport report = sample_diverge();
    TensorPair& tensor = report.first->tensor;
    tensor.difference = Difference::nonfinite;
    tensor.b.nans = 3;
    tensor.b.first_nonfinite = 17;
    EXPECT_TRUE(
        contains(render_text(report), "NaN or Inf differ: A has none; B has 3 NaN, 0 Inf, first at index 17 of 4,096"));
    tensor.difference = Difference::token;
    EXPECT_TRUE(contains(render_text(report), "the token with the largest is 12 in A and 99 in B"));
    EXPECT_FALSE(contains(render_text(report), "the operation itself"));
    tensor.difference = Difference::empty;
    EXPECT_TRUE(contains(render_text(report), "empty: A has 4,096 elements, B 4,096"));
    tensor.difference = Difference::shape;
    EXPECT_TRUE(contains(render_text(report), "shapes differ: A has 4,096 elements, B 4,096"));
    tensor.difference = Difference::bits;
    report.exact = true;
    EXPECT_TRUE(contains(render_text(report), "not bit for bit the same"));
    EXPECT_TRUE(contains(render_text(report), "tolerance  all bits (--expect exact)"));
}

TEST(DivergeText, amplification_is_a_plot_whose_bars_grow_with_the_distance) {
    const std::string text = render_text(sample_diverge());
    const auto bars_of = [&text](const std::string& distance) {
        const std::size_t begin = text.find("residual_add", text.find("decades"));
        const std::size_t row = text.find(" " + distance + " ", begin);
        const std::string line = row == std::string::npos ? "" : text.substr(row, text.find('\n', row) - row);
        std::size_t bars = 0;
        for (std::size_t at = line.find("\xE2\x96\x88"); at != std::string::npos;
             at = line.find("\xE2\x96\x88", at + 3)) {
            ++bars;
        }
        return bars;
    };
    EXPECT_GT(bars_of("1e-07"), 0u) << text;
    EXPECT_GT(bars_of("0.01"), bars_of("1e-07"));
    EXPECT_GT(bars_of("0.1"), bars_of("0.01"));
}

TEST(DivergeText, T9_what_is_missing_is_a_line_of_its_own_and_never_the_word_same) {
    const std::string text = render_text(sample_diverge());
    EXPECT_TRUE(contains(text, "\nMISSING 1 step of A (40 tensors) that B does not have\n")) << text;
    EXPECT_TRUE(contains(text, "\nMISSING 2 tensors of A that B lacks in a step that both have\n"));
    EXPECT_TRUE(contains(text, "\nMISSING 1 tensor of B that A lacks in a step that both have\n"));
    EXPECT_TRUE(contains(text, "only in A: step 3 layer 1 brick rms_norm"));
    DivergeReport nothing;
    nothing.tensors_a = 5;
    EXPECT_FALSE(contains(render_text(nothing), "SAME"));
    EXPECT_TRUE(contains(render_text(nothing), "MISSING everything"));
    DivergeReport same;
    same.compared = same.identical = 7;
    EXPECT_EQ(render_text(same).rfind("SAME  7 tensors compared, 7 bit for bit the same, 0 beyond the tolerance\n", 0),
              0u);
    same.only_in_b.tensors = 1;
    EXPECT_FALSE(contains(render_text(same), "SAME"));
}

TEST(DivergeText, flips_of_the_largest_logit_come_with_their_margins) {
    EXPECT_TRUE(contains(render_text(sample_diverge()),
                         "step 3 layer 0 brick lm_head: token 12 (margin 0.5) in A, 99 (margin NaN) in B"));
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
    EXPECT_TRUE(contains(text, "worst  step 3 layer 1 brick attention")) << text;
}

TEST(HealthText, T16_tensors_that_were_counted_and_are_gone_are_never_called_finite) {
    HealthReport report;
    report.looked_at = "10 tensors, 3 with NaN or Inf";
    report.nonfinite = 3;
    EXPECT_EQ(render_text(report).rfind("NOT FINITE  3 tensors by the run's own count", 0), 0u) << render_text(report);
    EXPECT_EQ(json::parse(render_json(report))["finite"], false);
    report = sample_health();
    report.tensors = 1;
    EXPECT_TRUE(contains(render_text(report), "NOT FINITE  3 tensors\n"));
}

TEST(NumericsJson, output_is_valid_under_the_schemas_and_documented) {
    const std::string document = file(PLUMB_TEST_SOURCE_DIR "/docs/report_schema.md");
    const auto examine = [&document](const char* schema_path, const std::vector<std::string>& outputs) {
        const json schema = json::parse(file(schema_path));
        for (const std::string& output : outputs) {
            EXPECT_EQ(SchemaCheck(schema).problem(json::parse(output)), "");
        }
        std::set<std::string> keys;
        collect_keys(json::parse(outputs.front()), keys);
        for (const std::string& key : keys) {
            EXPECT_NE(document.find("`" + key + "`"), std::string::npos) << key << " is not in docs/report_schema.md";
        }
        json bad = json::parse(outputs.front());
        bad["notes"] = nullptr;
        EXPECT_NE(SchemaCheck(schema).problem(bad), "");
    };
    examine(PLUMB_TEST_SOURCE_DIR "/tests/schema/plumb.diverge.1.json",
            {render_json(sample_diverge()), render_json(DivergeReport{})});
    examine(PLUMB_TEST_SOURCE_DIR "/tests/schema/plumb.health.1.json",
            {render_json(sample_health()), render_json(HealthReport{})});
}

TEST(NumericsJson, T15_what_is_not_finite_arrives_as_a_word_not_as_a_number) {
    const json diverge = json::parse(render_json(sample_diverge()));
    EXPECT_EQ(diverge["worst"]["distance"]["estimate"]["absent"], "Inf");
    EXPECT_EQ(diverge["flips"][0]["margin_b"]["absent"], "NaN");
    const json health = json::parse(render_json(sample_health()));
    EXPECT_EQ(health["layers"][1]["signal_to_noise_db"]["absent"], "not finite");
    EXPECT_EQ(health["finite"], false);
}

TEST(NumericsText, T8_hostile_names_stay_on_their_line) {
    DivergeReport report = sample_diverge();
    report.first->tensor.place.brick = "evil\n\x1b[31mSAME";
    EXPECT_FALSE(contains(render_text(report), "\x1b["));
    EXPECT_FALSE(contains(render_text(report), "\n\x1b"));
    EXPECT_EQ(json::parse(render_json(report))["first"]["place"]["brick"], "evil\n\x1b[31mSAME");
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Where two runs part as text and JSON.
#include "answers/diverge/diverge.hpp"
#include "answers/tensor_testing.hpp"

namespace plumb::answers {
namespace {

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

TEST(DivergeText, T15_a_distance_that_is_not_known_is_said_so_and_is_no_bar) {
    DivergeReport report = sample_diverge();
    report.first->tensor.distance = {infinite, 0, infinite};
    report.layers.resize(2);
    report.layers[1].tensor.distance = {infinite, 0, infinite};
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "relative distance not known (squares overflow or vanish), tolerance 0.0001\n")) << text;
    EXPECT_TRUE(contains(text, "n/a    *\n")) << text;
}

TEST(DivergeText, T15_a_tolerance_that_nobody_gave_and_no_tensor_has_is_none) {
    DivergeReport report = sample_diverge();
    report.tolerance_of.reset();
    report.tolerance = 0;
    EXPECT_TRUE(contains(render_text(report), "tolerance  none: no tensor is of a floating type\n"));
    report.tolerance_given = true;
    report.tolerance = 0.5;
    EXPECT_TRUE(contains(render_text(report), "tolerance  0.5 (as given)\n"));
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
    nothing.only_in_a.steps = 6; // B has these steps, and no tensor of any
    EXPECT_FALSE(contains(render_text(nothing), "6 steps"));
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

TEST(NumericsJson, diverge_is_valid_under_the_schema_and_documented) {
    expect_valid<DivergeReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_diverge()});
}

TEST(NumericsJson, T15_what_is_not_finite_arrives_as_a_word_not_as_a_number) {
    const json diverge = parsed(render_json(sample_diverge()));
    EXPECT_EQ(diverge["worst"]["distance"]["estimate"]["absent"], "Inf");
    EXPECT_EQ(diverge["flips"][0]["margin_b"]["absent"], "NaN");
}

TEST(NumericsText, T8_hostile_names_stay_on_their_line) {
    DivergeReport report = sample_diverge();
    report.first->tensor.place.brick = "evil\n\x1b[31mSAME";
    EXPECT_FALSE(contains(render_text(report), "\x1b["));
    EXPECT_FALSE(contains(render_text(report), "\n\x1b"));
    EXPECT_EQ(parsed(render_json(report))["first"]["place"]["brick"], "evil\n\x1b[31mSAME");
}

} // namespace
} // namespace plumb::answers

// SPDX-License-Identifier: Apache-2.0
// Layers as text and JSON.
#include "answers/layers/layers.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

LayerReport sample_layers() {
    LayerReport report;
    report.metric = LayerMetric::p50;
    LayerRow row;
    row.phase = Phase::decode;
    row.name = "attention";
    row.source = "cpu_tsc";
    for (std::uint32_t layer = 0; layer < 12; ++layer) {
        report.layers.push_back(layer);
        row.cells.push_back(
            {layer, layer == 4 ? missing("it does not occur in this layer") : measured(layer == 7 ? 150e3 : 100e3)});
    }
    row.cells[2].value = measured(80e3);
    row.median = measured(100e3);
    row.mad = measured(0);
    LayerRow none = row;
    none.name = "rope_embedding";
    for (LayerCell& cell : none.cells) {
        cell.value = missing("too few samples");
    }
    none.median = none.mad = missing("too few samples");
    report.rows = {row, none};
    report.odd = {{row, 7, 150e3, 100e3, 62.5}};
    report.notes = {"a note"};
    return report;
}

LayerReport layers_told_apart() {
    LayerReport report = sample_layers();
    report.rows[0].apart = "cpu_tsc, host";
    report.rows[1].name = "an_expert_of_the_mixture";
    report.rows[1].device = true;
    report.rows[1].apart = "cuda_event, replays";
    report.odd.clear();
    return report;
}

TEST(LayersText, words_that_tell_rows_apart_have_room) {
    const std::string text = render_text(layers_told_apart());
    EXPECT_TRUE(contains(text, "\nattention (cpu_tsc, host)                          100.00  ==.= ==@====\n")) << text;
    EXPECT_TRUE(contains(text, "\nan_expert_of_the_mixture (cuda_event, replays)        n/a  ")) << text;
}

TEST(LayersText, the_map_marks_cells_against_their_median_and_names_the_odd_one) {
    const std::string text = render_text(sample_layers());
    EXPECT_TRUE(contains(text, "attention                      100.00  ==.= ==@====\n")) << text;
    EXPECT_TRUE(contains(text, "decode, layer               median us  0         10\n"));
    EXPECT_TRUE(contains(
        text, "\nODD  decode layer 7 attention: 150.00 us, the other layers 100.00 us (1.50x, robust z 62.5)\n"));
    EXPECT_TRUE(contains(text, "\nn/a  rope_embedding: too few samples\n"));
    EXPECT_FALSE(contains(text, "no odd layer"));
    LayerReport clean = sample_layers();
    clean.odd.clear();
    EXPECT_TRUE(contains(render_text(clean), "\nno odd layer\n"));
}

TEST(LayersText, colour_stands_for_the_same_marks_only_where_it_is_asked_for) {
    EXPECT_FALSE(contains(render_text(sample_layers()), "\x1b"));
    const std::string colored_text = render_text(sample_layers(), {true, 100});
    EXPECT_TRUE(contains(colored_text, "\x1b[48;5;196m \x1b[0m")); // layer 7
    EXPECT_FALSE(contains(colored_text, "==.= "));
}

TEST(LayersText, many_layers_go_on_below_and_none_is_left_out) {
    LayerReport report = sample_layers();
    report.odd.clear();
    report.rows.resize(1);
    for (std::uint32_t layer = 12; layer < 100; ++layer) {
        report.layers.push_back(layer);
        report.rows[0].cells.push_back({layer, measured(100e3)});
    }
    const std::string text = render_text(report, {false, 80});
    std::size_t alike = 0;
    for (const char mark : text) {
        alike += mark == '=' ? 1 : 0;
    }
    EXPECT_EQ(alike, 97u + 1); // one in the legend
    EXPECT_TRUE(contains(text, "90"));
}

TEST(LayersJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<LayerReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_layers(), layers_told_apart()});
}

TEST(LayersJson, figures_arrive_whole) {
    const json layers = parsed(render_json(sample_layers()));
    EXPECT_EQ(layers["rows"][0]["cells"][7]["value"], 150e3);
    EXPECT_EQ(layers["odd"][0]["layer"], 7);
}

} // namespace
} // namespace plumb::answers

// SPDX-License-Identifier: Apache-2.0
// Layers of a planted run: the clean twin names nothing, the slow layer is named, and nothing else.
#include "answers/layers/layers.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/planted_report_testing.hpp"
#include "analysis/row_table.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;
using planted::us;

constexpr int layer_count = 28;

/// How long attention takes, in us, in a layer of a step.
using Attention = std::function<std::int64_t(int layer, int step)>;

/// Durations vary from call to call by up to 8 %, as those of real kernels do.
std::int64_t noise(int layer, int step, std::int64_t of) {
    const std::uint32_t mixed = static_cast<std::uint32_t>(layer * 7919 + step * 104729) * 2654435761u;
    return of * (static_cast<std::int64_t>(mixed >> 24) % 9) / 100;
}

Report run_of(const Attention& attention, int layers = layer_count, int norms_in_layer_3 = 2) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    for (int step = 0; step < 30; ++step) {
        const std::int64_t step_begin = t;
        source.step_begin(1, static_cast<std::uint64_t>(step), Phase::decode, t);
        for (int layer = 0; layer < layers; ++layer) {
            const auto index = static_cast<std::uint16_t>(layer);
            const std::int64_t begin = t;
            source.layer_begin(1, index, t);
            for (int norm = 0; norm < (layer == 3 ? norms_in_layer_3 : 2); ++norm) {
                const std::int64_t length = 10 * us + noise(layer, step, 10 * us);
                source.scope(1, Brick::rms_norm, t, t + length);
                t += length;
            }
            const std::int64_t length = attention(layer, step) * us + noise(layer, step, 100 * us);
            source.scope(1, Brick::attention, t, t + length);
            t += length;
            source.layer_end(1, index, begin, t);
        }
        source.step_end(1, Phase::decode, step_begin, t);
    }
    ReportOptions options;
    options.brick_layers = true;
    return report_of(source, options);
}

std::int64_t alike(int, int) { return 100; }
std::int64_t slow_17(int layer, int) { return layer == 17 ? 150 : 100; }

LayerReport layers(const Report& report, LayerMetric metric = LayerMetric::p50) {
    LayerOptions options;
    options.metric = metric;
    return layers_of(report, options);
}

TEST(Layers, a_slow_layer_is_named_with_its_brick_and_nothing_else_is) {
    for (const LayerMetric metric : {LayerMetric::p50, LayerMetric::mean, LayerMetric::sum, LayerMetric::self}) {
        const LayerReport report = layers(run_of(slow_17), metric);
        ASSERT_EQ(report.odd.size(), 1u) << page::word_of(metric);
        EXPECT_EQ(report.odd[0].name, "attention");
        EXPECT_EQ(report.odd[0].layer, 17u);
        EXPECT_GT(report.odd[0].robust_z, 5);
        EXPECT_NEAR(report.odd[0].value / report.odd[0].median, 1.48, 0.04);
    }
}

TEST(Layers, a_run_that_is_all_warm_up_is_called_that) {
    Report report = run_of(alike);
    report.layers.clear();
    report.brick_layers.clear();
    EXPECT_EQ(layers_of(report).notes.at(0),
              "No layer of a complete step was recorded; put PLUMB_LAYER around each layer.");
    report.phases[0].warmup_steps = report.phases[0].steps;
    report.phases[0].steps = 0;
    EXPECT_EQ(layers_of(report).notes.at(0), "All steps of this recording are warm-up; record a longer run.");
}

TEST(Layers, in_the_clean_twin_nothing_is_odd) {
    const Report run = run_of(alike);
    for (const LayerMetric metric : {LayerMetric::p50, LayerMetric::mean, LayerMetric::max, LayerMetric::sum,
                                     LayerMetric::self, LayerMetric::calls}) {
        EXPECT_TRUE(layers(run, metric).odd.empty()) << page::word_of(metric);
        EXPECT_TRUE(layers(run, metric).notes.empty()) << page::word_of(metric);
    }
}

/// 30 calls of each brick in a layer are enough for the median, and not for p90.
TEST(Layers, where_a_layer_has_too_few_calls_it_is_said_that_nothing_can_be) {
    const LayerReport report = layers(run_of(slow_17), LayerMetric::p90);
    EXPECT_TRUE(report.odd.empty());
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].rfind(
                  "Whether a layer is odd cannot be said: fewer than 5 layers have p90 (too few samples", 0),
              0u)
        << report.notes[0];
    EXPECT_NE(report.notes[0].find("the layer as a whole, attention"), std::string::npos) << report.notes[0];
    EXPECT_EQ(answers::render_text(report).find("no odd layer"), std::string::npos);
    EXPECT_NE(answers::render_text(layers(run_of(alike))).find("no odd layer"), std::string::npos);
}

TEST(Layers, a_fast_layer_is_odd_too) {
    const LayerReport report = layers(run_of([](int layer, int) { return layer == 0 ? 60 : 100; }));
    ASSERT_EQ(report.odd.size(), 1u);
    EXPECT_EQ(report.odd[0].layer, 0u);
    EXPECT_LT(report.odd[0].robust_z, -5);
}

TEST(Layers, five_slow_layers_do_not_hide_each_other) {
    const LayerReport report = layers(run_of([](int layer, int) { return layer % 6 == 5 ? 130 + 40 * layer : 100; }));
    ASSERT_EQ(report.odd.size(), 4u);
    EXPECT_EQ(report.odd[0].layer, 23u); // the largest difference first
    EXPECT_EQ(report.odd[3].layer, 5u);
}

TEST(Layers, a_second_kind_of_layer_is_a_note_and_no_oddity) {
    const LayerReport report = layers(run_of([](int layer, int) { return layer % 4 == 0 ? 300 : 100; }));
    EXPECT_TRUE(report.odd.empty());
    ASSERT_FALSE(report.notes.empty());
    EXPECT_EQ(report.notes[1],
              "attention differs in 7 of 28 decode layers: these are a second kind of layer, not odd ones.");
}

TEST(Layers, a_missing_call_shows_in_calls_and_only_there) {
    const Report run = run_of(alike, layer_count, 1);
    const LayerReport calls = layers(run, LayerMetric::calls);
    ASSERT_EQ(calls.odd.size(), 1u);
    EXPECT_EQ(calls.odd[0].name, "rms_norm");
    EXPECT_EQ(calls.odd[0].layer, 3u);
    EXPECT_DOUBLE_EQ(calls.odd[0].value, 1);
    EXPECT_DOUBLE_EQ(calls.odd[0].median, 2);
    EXPECT_TRUE(layers(run, LayerMetric::p50).odd.empty());
}

TEST(Layers, a_layer_whose_bricks_are_all_alike_is_named_for_itself) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    for (std::uint64_t step = 0; step < 30; ++step) {
        const std::int64_t step_begin = t;
        source.step_begin(1, step, Phase::decode, t);
        for (std::uint16_t layer = 0; layer < 8; ++layer) {
            source.layer_begin(1, layer, t);
            source.scope(1, Brick::attention, t, t + 100 * us);
            const std::int64_t end = t + (layer == 5 ? 180 : 110) * us;
            source.layer_end(1, layer, t, end);
            t = end;
        }
        source.step_end(1, Phase::decode, step_begin, t);
    }
    ReportOptions options;
    options.brick_layers = true;
    const LayerReport report = layers(report_of(source, options));
    ASSERT_EQ(report.odd.size(), 1u);
    EXPECT_EQ(report.odd[0].name, "");
    EXPECT_EQ(report.odd[0].layer, 5u);
}

/// Layer 5 of 8 takes 400 us more between its bricks, or between those of its parent; there, each norm takes `length` us,
/// and 20 us elsewhere.
Report slow_between_bricks(std::int64_t length, bool parent = false) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    for (std::uint64_t step = 0; step < 30; ++step) {
        const std::int64_t step_begin = t;
        source.step_begin(1, step, Phase::decode, t);
        for (std::uint16_t layer = 0; layer < 8; ++layer) {
            const std::int64_t begin = t;
            source.layer_begin(1, layer, t);
            source.scope(1, Brick::attention, t, t + 100 * us);
            t += 100 * us;
            for (int call = 0; call < 2; ++call) {
                const std::int64_t moved = (layer == 5 ? length : 20) * us;
                source.scope(1, Brick::rms_norm, t, t + moved);
                t += moved;
            }
            t += layer == 5 ? 400 * us : 0;
            if (parent) {
                source.scope(1, Brick::moe_experts, begin, t);
            }
            source.layer_end(1, layer, begin, t);
        }
        source.step_end(1, Phase::decode, step_begin, t);
    }
    ReportOptions options;
    options.brick_layers = true;
    return report_of(source, options);
}

std::string odd_names(const LayerReport& report) {
    std::string names;
    for (const OddLayer& odd : report.odd) {
        EXPECT_EQ(odd.layer, 5u);
        names += (odd.name.empty() ? "layer" : odd.name) + " ";
    }
    return names;
}

TEST(Layers, a_brick_hides_its_layer_only_where_it_explains_it) {
    for (const LayerMetric metric : {LayerMetric::p50, LayerMetric::mean, LayerMetric::sum}) {
        SCOPED_TRACE(page::word_of(metric));
        EXPECT_EQ(odd_names(layers(slow_between_bricks(10), metric)), "layer rms_norm ") << "it is faster";
        EXPECT_EQ(odd_names(layers(slow_between_bricks(60), metric)), "layer rms_norm ") << "80 of 480 us";
        EXPECT_EQ(odd_names(layers(slow_between_bricks(320), metric)), "rms_norm ") << "600 of 1000 us, in two calls";
    }
    EXPECT_EQ(odd_names(layers(slow_between_bricks(60), LayerMetric::calls)), "");
    EXPECT_EQ(odd_names(layers(slow_between_bricks(320, true))), "rms_norm ");
    EXPECT_EQ(odd_names(layers(slow_between_bricks(60, true))), "layer moe_experts rms_norm ");
    EXPECT_EQ(odd_names(layers(slow_between_bricks(320, true), LayerMetric::self)), "rms_norm moe_experts ")
        << "the time between bricks is the parent's own";
}

/// A roofline needs bytes or flops, however many calls there are.
TEST(Layers, a_sum_is_recommended_only_where_calls_are_too_few) {
    const Report run = run_of(alike);
    const std::vector<std::string> notes = layers(run, LayerMetric::roofline).notes;
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].find("--metric sum"), std::string::npos) << notes[0];
    EXPECT_NE(layers(run, LayerMetric::p90).notes.at(0).find("; --metric sum needs one call."), std::string::npos);
}

TEST(Layers, a_difference_below_the_floor_of_the_source_is_no_difference) {
    Report run = run_of(slow_17);
    run.own_cost.floor_ns = {60e3, {}};
    EXPECT_TRUE(layers(run).odd.empty());
    run.own_cost.floor_ns = {20e3, {}};
    EXPECT_EQ(layers(run).odd.size(), 1u);
}

TEST(Layers, few_layers_and_few_samples_give_no_verdict_and_say_so) {
    const LayerReport few = layers(run_of([](int layer, int) { return layer == 2 ? 500 : 100; }, 4));
    EXPECT_TRUE(few.odd.empty());
    ASSERT_EQ(few.notes.size(), 1u);
    const LayerReport p99 = layers(run_of(slow_17), LayerMetric::p99);
    EXPECT_TRUE(p99.odd.empty());
    EXPECT_NE(p99.rows[1].median.reason.find("too few samples"), std::string::npos);
    EXPECT_EQ(layers(Report{}).notes.size(), 1u);
}

/// Attention in 6 layers, on the host and on a queue that the same clock times; the host's is longer in layer 4.
LayerReport host_and_queue_of_one_clock() {
    constexpr std::uint32_t queue = 0x80000001;
    Tape source;
    source.track(1);
    source.tracks_.push_back({queue, recording::TrackKind::device_queue, 0, 0, "cpu queue", "cpu_tsc", 1});
    for (std::uint64_t step = 0; step < 30; ++step) {
        const std::int64_t step_begin = static_cast<std::int64_t>(step) * 1000 * us;
        source.step_begin(1, step, Phase::decode, step_begin);
        for (std::uint16_t layer = 0; layer < 6; ++layer) {
            const std::int64_t begin = step_begin + layer * 150 * us;
            source.layer_begin(1, layer, begin);
            source.scope(1, Brick::attention, begin, begin + (layer == 4 ? 120 : 40) * us);
            source.layer_end(1, layer, begin, begin + 130 * us);
            source.context(queue, step, layer);
            source.scope(queue, Brick::attention, begin + 121 * us, begin + 131 * us);
            source.context_end(queue);
        }
        source.step_end(1, Phase::decode, step_begin, step_begin + 990 * us);
    }
    ReportOptions options;
    options.brick_layers = true;
    return layers(report_of(source, options));
}

TEST(Layers, a_brick_of_the_host_and_of_a_queue_with_the_same_clock_is_two_rows) {
    const LayerReport report = host_and_queue_of_one_clock();
    ASSERT_EQ(report.rows.size(), 3u);
    EXPECT_EQ(report.rows[0].apart, "") << "the layers themselves are of the host alone";
    for (const LayerRow& row : {report.rows[1], report.rows[2]}) {
        EXPECT_EQ(row.name, "attention");
        EXPECT_EQ(row.apart, row.device ? "device" : "host");
        EXPECT_NEAR(*row.cells[4].value.value, row.device ? 10e3 : 120e3, 1e3);
        EXPECT_NEAR(*row.cells[1].value.value, row.device ? 10e3 : 40e3, 1e3);
    }
    EXPECT_NE(report.rows[1].device, report.rows[2].device);
    ASSERT_EQ(report.odd.size(), 1u);
    EXPECT_EQ(report.odd[0].layer, 4u);
    EXPECT_FALSE(report.odd[0].device);
    const std::string text = answers::render_text(report);
    EXPECT_NE(text.find("ODD  decode layer 4 attention (host): 120"), std::string::npos) << text;
    EXPECT_NE(text.find("\nattention (device)  "), std::string::npos) << text;
}

TEST(Layers, rows_beyond_the_limit_are_told_with_the_words_of_the_report) {
    Report report = run_of(alike);
    const std::string left_out =
        std::string(analysis::beyond_rows) + " of each kind are left out: 3 samples of layers.";
    report.notes = {"another", left_out};
    EXPECT_EQ(layers(report).notes, std::vector{left_out});
}

TEST(Layers, cells_hold_the_metric_asked_for) {
    const Report run = run_of(slow_17);
    const auto cell = [&](LayerMetric metric) {
        const LayerReport report = layers(run, metric);
        for (const LayerRow& row : report.rows) {
            if (row.name == "rms_norm") {
                return *row.cells[17].value.value;
            }
        }
        return 0.0;
    };
    EXPECT_DOUBLE_EQ(cell(LayerMetric::calls), 2);
    EXPECT_NEAR(cell(LayerMetric::sum), 2 * cell(LayerMetric::mean), 1);
    EXPECT_GE(cell(LayerMetric::max), cell(LayerMetric::mean));
    EXPECT_NEAR(cell(LayerMetric::self), cell(LayerMetric::sum), 1e-6);
    EXPECT_EQ(page::value_of<LayerMetric>("sum"), LayerMetric::sum);
    EXPECT_FALSE(page::value_of<LayerMetric>("median"));
}

} // namespace
} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_builder.hpp"

#include <gtest/gtest.h>

#include "analysis/planted_report_testing.hpp"
#include "read/read.hpp"

namespace plumb::analysis {
namespace {

using planted::ms;
using planted::Tape;
using planted::us;

struct StepShape {
    Phase phase = Phase::decode;
    std::uint64_t tokens = 1;
    std::int64_t begin = 0;
    std::int64_t length = ms;
};

// A step whose bricks fill it but for its first and last tenth.
void plant_step(Tape& source, std::uint64_t id, const StepShape& shape) {
    const std::int64_t t = shape.begin;
    source.step_begin(1, id, shape.phase, t);
    if (shape.tokens != 0) {
        source.step_value(1, shape.phase == Phase::prefill ? StepValue::prefill_tokens : StepValue::decode_tokens,
                          shape.tokens);
    }
    source.scope(1, Brick::rms_norm, t + shape.length / 10, t + shape.length / 5);
    source.scope(1, Brick::attention, t + shape.length / 5, t + 9 * shape.length / 10);
    source.step_end(1, shape.phase, t, t + shape.length);
}

TEST(ReportBuilder, a_planted_decode_gives_the_numbers_that_were_planted) {
    Tape source;
    source.track(1);
    source.descriptions_ = {{"model", "planted"}};
    for (std::uint64_t i = 0; i < 4; ++i) {
        plant_step(source, i, {Phase::decode, 2, static_cast<std::int64_t>(i) * ms, ms});
    }
    const Report report = report_of(source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 4u);
    EXPECT_EQ(decode->tokens, 8u);
    EXPECT_DOUBLE_EQ(decode->tokens_per_second.value.value(), 8 / 4e-3);
    EXPECT_DOUBLE_EQ(decode->wall.period_ns, 4e6);
    EXPECT_DOUBLE_EQ(decode->period.mean_ns, 1e6);
    EXPECT_DOUBLE_EQ(decode->wall.union_ns, 3.2e6);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_EQ(attention->key.category, Category::attention);
    EXPECT_DOUBLE_EQ(attention->calls_per_step, 1);
    EXPECT_DOUBLE_EQ(attention->time.mean_ns, 700'000);
    EXPECT_DOUBLE_EQ(attention->sum_per_step_ns, 700'000);
    EXPECT_EQ(attention->source, "cpu_tsc");
    EXPECT_EQ(report.description, source.descriptions_);
    EXPECT_EQ(report.scopes, 8u);
    EXPECT_EQ(report.unresolved, 0u);
    EXPECT_TRUE(report.losses.empty());
}

TEST(ReportBuilder, M4_a_clock_that_jumped_spoils_no_other_step_and_is_told_of) {
    // Steps of 100 ms for six seconds; after 3.35 s the counter goes on for an hour while the system's clock stands.
    constexpr std::int64_t hour = 3'600'000 * ms;
    Tape source;
    source.track(1);
    source.clock_pairs_.clear();
    for (std::int64_t i = 0; i <= 6; ++i) {
        source.clock_pairs_.push_back({0, Tape::at(i * 1000 * ms + (i < 4 ? 0 : hour)), i * 1000 * ms, 0, 50});
    }
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * 100 * ms;
        const StepShape shape{Phase::decode, 1, begin + (i <= 33 ? 0 : hour), i == 33 ? hour + 100 * ms : 100 * ms};
        plant_step(source, i, shape);
    }
    const recording::RecordedRun run = source;
    ReportReader reader(*run.facts);
    (void)reader.ask({});
    ASSERT_TRUE(read::read(run, {&reader}).ok());
    const Report report = reader.take(0);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 50u);
    EXPECT_NEAR(decode->period.mean_ns, 1e8, 10);
    EXPECT_NEAR(row_of(report.bricks, Phase::decode, "attention")->time.max_ns, 7e7, 10);
    EXPECT_EQ(report.losses.at(0).reason, "unresolved: stamped where their clock jumped");
    EXPECT_GT(report.losses.at(0).count, 0u);
    EXPECT_TRUE(reader.records_missing());
    ASSERT_FALSE(report.notes.empty());
    EXPECT_NE(report.notes[0].find("between 3.0 and 4.0 s"), std::string::npos) << report.notes[0];
}

TEST(ReportBuilder, F4_warm_up_is_apart_in_every_statistic) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    plant_step(source, 0, {Phase::prefill, 64, t, 5 * ms});
    t += 5 * ms;
    for (std::uint64_t i = 1; i <= 10; ++i) {
        const std::int64_t length = i <= 2 ? 10 * ms : ms; // the first two are cold
        plant_step(source, i, {Phase::decode, 1, t, length});
        t += length;
    }
    ReportOptions options;
    options.recording_warmup = false;
    options.warmup_steps = 2;
    const Report report = report_of(source, options);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->warmup_steps, 2u);
    EXPECT_EQ(decode->steps, 8u);
    EXPECT_EQ(decode->tokens, 8u);
    EXPECT_DOUBLE_EQ(decode->period.max_ns, 1e6);
    EXPECT_DOUBLE_EQ(decode->wall.period_ns, 8e6);
    EXPECT_DOUBLE_EQ(decode->tokens_per_second.value.value(), 1000);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_EQ(attention->time.count, 8u);
    EXPECT_DOUBLE_EQ(attention->time.max_ns, 700'000);
    EXPECT_EQ(phase_of(report, Phase::prefill)->steps, 1u);
    EXPECT_EQ(phase_of(report, Phase::prefill)->warmup_steps, 0u);
}

TEST(ReportBuilder, where_all_decode_steps_are_warm_up_figures_are_absent_with_that_reason) {
    Tape source;
    source.track(1);
    source.metadata_.warmup_steps = 8;
    plant_step(source, 0, {});
    const Report report = report_of(source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->warmup_steps, 1u);
    EXPECT_EQ(decode->steps, 0u);
    EXPECT_FALSE(decode->tokens_per_second.value.has_value());
    EXPECT_FALSE(decode->wall.coverage.value.has_value());
    EXPECT_EQ(decode->wall.coverage.reason, "all steps are warm-up");
    EXPECT_FALSE(has_row(report.bricks, Phase::decode, "attention"));
    EXPECT_EQ(report.scopes, 2u);
}

TEST(ReportBuilder, T3_tokens_come_from_steps_and_never_from_elements) {
    Tape source;
    source.track(1);
    source.work(1, Brick::attention, WorkQuantity::elements, 896 * 300);
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * ms;
        source.step_begin(1, i, Phase::decode, t);
        source.step_value(1, StepValue::decode_tokens, 1);
        source.scope(1, Brick::attention, t + 1000, t + ms / 2, flag_work);
        source.step_end(1, Phase::decode, t, t + ms);
    }
    const Report report = report_of(source);
    EXPECT_EQ(phase_of(report, Phase::decode)->tokens, 10u);
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::decode)->tokens_per_second.value.value(), 1000);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->elements_per_call.value.value(), 896 * 300);
}

TEST(ReportBuilder, T13_tokens_per_second_scale_with_the_tokens_of_a_step) {
    for (const std::uint64_t batch : {1u, 8u}) {
        Tape source;
        source.track(1);
        for (std::uint64_t i = 0; i < 5; ++i) {
            plant_step(source, i, {Phase::decode, batch, static_cast<std::int64_t>(i) * ms, ms});
        }
        EXPECT_DOUBLE_EQ(phase_of(report_of(source), Phase::decode)->tokens_per_second.value.value(),
                         1000.0 * static_cast<double>(batch));
    }
}

TEST(ReportBuilder, steps_that_run_at_the_same_time_as_those_of_another_phase_have_no_rate) {
    for (const bool at_once : {true, false}) {
        Tape source;
        source.track(1);
        source.track(2);
        for (std::uint64_t i = 0; i < 40; ++i) {
            const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
            const std::int64_t end = t + (at_once ? 950 : 450) * us;
            source.step_begin(1, 2 * i, Phase::prefill, t);
            source.step_value(1, StepValue::prefill_tokens, 1);
            source.step_end(1, Phase::prefill, t, end);
            source.step_begin(2, 2 * i + 1, Phase::decode, t + 500 * us);
            source.step_value(2, StepValue::decode_tokens, 1);
            source.step_end(2, Phase::decode, t + 500 * us, t + 960 * us);
        }
        const Report report = report_of(source);
        std::string notes;
        for (const std::string& note : report.notes) {
            notes += note + "\n";
        }
        for (const PhaseSummary& phase : report.phases) {
            EXPECT_EQ(phase.tokens_per_second.value.has_value(), !at_once) << phase_word(phase.phase);
            EXPECT_EQ(notes.find(std::string(phase_word(phase.phase)) + ": 40 times a step ran at the same time") !=
                          std::string::npos,
                      at_once)
                << notes;
        }
    }
}

TEST(ReportBuilder, steps_of_one_phase_that_run_at_the_same_time_are_told) {
    for (const bool at_once : {false, true}) {
        Tape source;
        source.track(1);
        source.track(2);
        for (std::uint64_t i = 0; i < 40; ++i) {
            const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
            const std::int64_t middle = t + (at_once ? 100 : 500) * us;
            source.step_begin(1, 2 * i, Phase::decode, t);
            source.step_end(1, Phase::decode, t, t + 450 * us);
            source.step_begin(2, 2 * i + 1, Phase::decode, middle);
            source.step_end(2, Phase::decode, middle, middle + 400 * us);
        }
        EXPECT_EQ(
            has_note(report_of(source), "decode: 40 of 80 steps ran at the same time as the one that ended before"),
            at_once);
    }
}

TEST(ReportBuilder, T13_loading_before_the_first_step_is_in_no_phase) {
    Tape source;
    source.track(1);
    source.scope(1, Brick::copy_h2d, 0, 500 * ms); // the model is read
    plant_step(source, 0, {Phase::prefill, 64, 500 * ms, 10 * ms});
    plant_step(source, 1, {Phase::decode, 1, 510 * ms, ms});
    const Report report = report_of(source);
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::prefill)->wall.period_ns, 10e6);
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::decode)->wall.period_ns, 1e6);
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::prefill)->tokens_per_second.value.value(), 6400);
    EXPECT_FALSE(has_row(report.bricks, Phase::prefill, "copy_h2d"));
    const Row* loading = row_of(report.bricks, Phase::none, "copy_h2d");
    EXPECT_FALSE(loading->wall_share.value.has_value());
    EXPECT_EQ(loading->wall_share.reason, "belongs to no complete step");
}

TEST(ReportBuilder, F8_self_and_total_are_columns_of_their_own_and_categories_sum_leaves_only) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.scope(1, Brick::attention_score, 100 * us, 300 * us);
    source.scope(1, Brick::attention_softmax, 300 * us, 400 * us);
    source.scope(1, Brick::attention, 100 * us, 500 * us);
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    const Row* parent = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_DOUBLE_EQ(parent->time.total_ns, 400e3);
    EXPECT_DOUBLE_EQ(parent->time.self_ns, 100e3);
    EXPECT_TRUE(parent->parent);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "attention_score")->parent);
    ASSERT_EQ(report.categories.size(), 1u);
    EXPECT_DOUBLE_EQ(report.categories[0].time.total_ns, 300e3); // not 700e3
    EXPECT_DOUBLE_EQ(report.tracks.at(0).total_ns, 400e3);
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::decode)->wall.sum_ns, 300e3);
}

TEST(ReportBuilder, F8_layer_0_has_a_row_of_its_own) {
    Tape source;
    source.track(0);
    source.step_begin(0, 0, Phase::decode, 0);
    source.scope(0, Brick::attention, 10 * us, 20 * us); // in no layer
    for (std::uint16_t layer = 0; layer < 2; ++layer) {
        const std::int64_t t = 100 * us + 100 * us * layer;
        source.layer_begin(0, layer, t);
        source.scope(0, Brick::attention, t + 10 * us, t + 30 * us);
        source.layer_end(0, layer, t, t + 50 * us);
    }
    source.step_end(0, Phase::decode, 0, ms);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    ASSERT_EQ(report.layers.size(), 2u);
    EXPECT_EQ(report.layers[0].key.layer, 0u);
    EXPECT_DOUBLE_EQ(report.layers[0].time.total_ns, 50e3);
    ASSERT_EQ(report.brick_layers.size(), 2u);
    EXPECT_EQ(report.brick_layers[0].key.layer, 0u);
    EXPECT_EQ(report.brick_layers[0].time.count, 1u);
    EXPECT_EQ(report.tracks.at(0).id, 0u);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->time.count, 3u);
}

TEST(ReportBuilder, every_layer_that_a_record_can_have_has_a_row) {
    constexpr std::uint16_t all[] = {0, 4095, 4096, 65534};
    Tape source;
    source.track(0);
    source.step_begin(0, 0, Phase::decode, 0);
    std::int64_t t = 0;
    for (const std::uint16_t layer : all) {
        source.layer_begin(0, layer, t);
        source.scope(0, Brick::attention, t + 10 * us, t + 30 * us);
        source.layer_end(0, layer, t, t + 50 * us);
        t += 100 * us;
    }
    source.step_end(0, Phase::decode, 0, ms);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    EXPECT_TRUE(report.losses.empty());
    ASSERT_EQ(report.layers.size(), std::size(all));
    ASSERT_EQ(report.brick_layers.size(), std::size(all));
    for (std::size_t i = 0; i < std::size(all); ++i) {
        EXPECT_EQ(report.layers[i].key.layer, all[i]);
        EXPECT_EQ(report.brick_layers[i].key.layer, all[i]);
    }
}

TEST(ReportBuilder, M6_layer_is_a_dimension_of_bricks) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    for (std::uint16_t layer = 0; layer < 3; ++layer) {
        source.layer_begin(1, layer, 100 * us * layer);
        source.scope(1, Brick::attention, 100 * us * layer, 100 * us * layer + 10 * us * (layer + 1));
        source.layer_end(1, layer, 100 * us * layer, 100 * us * layer + 50 * us);
    }
    source.step_end(1, Phase::decode, 0, ms);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    ASSERT_EQ(report.brick_layers.size(), 3u);
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
        EXPECT_EQ(report.brick_layers[layer].key.layer, layer);
        EXPECT_EQ(report.brick_layers[layer].key.name, "attention");
        EXPECT_DOUBLE_EQ(report.brick_layers[layer].time.total_ns, 10e3 * (layer + 1));
    }
}

TEST(ReportBuilder, F10_phases_and_bricks_do_not_share_totals) {
    Tape source;
    source.track(1);
    plant_step(source, 0, {Phase::prefill, 64, 0, 4 * ms});
    plant_step(source, 1, {Phase::decode, 1, 4 * ms, ms});
    plant_step(source, 2, {Phase::mixed, 1, 5 * ms, 2 * ms});
    const Report report = report_of(source);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::prefill, "attention")->time.total_ns, 2.8e6);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->time.total_ns, 0.7e6);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::mixed, "attention")->time.total_ns, 1.4e6);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "rms_norm")->time.total_ns, 0.1e6);
    ReportOptions only_decode;
    only_decode.phase = Phase::decode;
    const Report decode = report_of(source, only_decode);
    EXPECT_EQ(decode.phases.size(), 1u);
    EXPECT_EQ(decode.bricks.size(), 2u);
}

TEST(ReportBuilder, T6_interned_names_keep_their_category_and_rows_have_percentiles) {
    Tape source;
    source.track(1);
    source.names_ = {{300, Category::moe, "expert_17"}};
    for (std::uint64_t i = 0; i < 100; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * ms;
        source.step_begin(1, i, Phase::decode, t);
        source.scope(1, Name(std::uint16_t{300}), t, t + 100 * us);
        source.step_end(1, Phase::decode, t, t + ms);
    }
    const Report report = report_of(source);
    const Row* expert = row_of(report.bricks, Phase::decode, "expert_17");
    EXPECT_EQ(expert->key.category, Category::moe);
    EXPECT_NEAR(expert->time.p90_ns.value.value(), 100e3, 1e3);
    EXPECT_EQ(report.categories.at(0).key.category, Category::moe);
}

TEST(ReportBuilder, T12_a_tick_is_never_taken_for_a_nanosecond) {
    Tape source; // one tick is 2 ns
    source.track(1);
    plant_step(source, 0, {});
    const Report report = report_of(source);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->time.total_ns, 700e3);
    EXPECT_NEAR(report.clock.ticks_per_second, 5e8, 1);
    EXPECT_EQ(report.clock.pairs, 2u);
    EXPECT_EQ(report.clock.clock, "caller");
}

TEST(ReportBuilder, M2_unresolved_samples_are_counted_and_named) {
    Tape source;
    source.track(1);
    source.counters_.unresolved = 5;
    source.counters_.drops = {{"ring full", 3}};
    source.tracks_.push_back({9, recording::TrackKind::device_queue, 4, 0, "queue", "cuda_event"});
    plant_step(source, 0, {});
    source.scope(9, Brick::attention, 0, 100);
    const Report report = report_of(source);
    EXPECT_EQ(report.unresolved, 6u);
    EXPECT_EQ(loss_of(report, "clock could not be fitted"), 1u);
    EXPECT_EQ(loss_of(report, "the device never gave their time"), 5u);
    EXPECT_EQ(loss_of(report, "ring full"), 3u);
    EXPECT_TRUE(has_note(report, "Clock 4 cannot be fitted"));
    EXPECT_EQ(report.scopes, 2u);
}

TEST(ReportBuilder, M4_without_a_clock_fit_there_are_no_times_at_all) {
    Tape source;
    source.track(1);
    source.clock_pairs_.resize(1);
    plant_step(source, 0, {});
    const Report report = report_of(source);
    EXPECT_EQ(report.scopes, 0u);
    EXPECT_EQ(report.unresolved, 3u); // two bricks and the step
    EXPECT_TRUE(report.bricks.empty());
    EXPECT_TRUE(report.phases.empty());
    EXPECT_FALSE(report.clock.residual_ns.value.has_value());
    EXPECT_TRUE(has_note(report, "Clock 0 cannot be fitted"));
}

TEST(ReportBuilder, F1_what_was_not_given_is_absent_with_a_reason) {
    Tape source;
    source.track(1);
    plant_step(source, 0, {Phase::decode, 0, 0, ms}); // no tokens
    const Report report = report_of(source);
    const Row* row = row_of(report.bricks, Phase::decode, "attention");
    for (const Figure* figure : {&row->gigabytes_per_second, &row->teraflops, &row->bytes_per_call,
                                 &row->flops_per_call, &row->elements_per_call, &row->barrier_wait_share,
                                 &row->time.p50_ns, &phase_of(report, Phase::decode)->tokens_per_second,
                                 &report.own_cost.scope_ns, &report.own_cost.wall_share}) {
        EXPECT_FALSE(figure->value.has_value());
        EXPECT_FALSE(figure->reason.empty());
    }
}

TEST(ReportBuilder, a_wait_at_a_barrier_is_a_share_of_the_time_of_the_scopes_that_know_it) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.barrier_wait(1, 300);
    source.scope(1, Brick::attention, 0, 1000);
    source.barrier_wait(1, 0);
    source.scope(1, Brick::attention, 1000, 3000);
    source.scope(1, Brick::attention, 3000, 9000);
    source.step_end(1, Phase::decode, 0, 10'000);
    const Report report = report_of(source);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->barrier_wait_share.value.value(), 0.1);
}

TEST(ReportBuilder, rates_are_work_over_the_time_of_the_scopes_that_gave_it) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.work(1, Brick::lm_head, WorkQuantity::bytes, 2e6);
    source.work(1, Brick::lm_head, WorkQuantity::flops, 4e6);
    source.scope(1, Brick::lm_head, 0, 100 * us, flag_work);
    source.scope(1, Brick::lm_head, 200 * us, 500 * us); // gave none
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    const Row* row = row_of(report.bricks, Phase::decode, "lm_head");
    EXPECT_DOUBLE_EQ(row->gigabytes_per_second.value.value(), 20);
    EXPECT_DOUBLE_EQ(row->teraflops.value.value(), 0.04);
    EXPECT_DOUBLE_EQ(row->bytes_per_call.value.value(), 2e6);
}

TEST(ReportBuilder, bricks_without_steps_are_shown_and_say_what_is_missing) {
    Tape source;
    source.track(1);
    for (int i = 0; i < 30; ++i) {
        source.scope(1, Brick::attention, ms * i, ms * i + 500 * us);
    }
    const Report report = report_of(source);
    EXPECT_TRUE(report.phases.empty());
    const Row* row = row_of(report.bricks, Phase::none, "attention");
    EXPECT_EQ(row->time.count, 30u);
    EXPECT_EQ(row->calls_per_step, 0);
    EXPECT_FALSE(row->wall_share.value.has_value());
    EXPECT_TRUE(has_note(report, "PLUMB_STEP"));
}

TEST(ReportBuilder, steps_without_bricks_have_a_coverage_of_0_and_say_what_is_missing) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    EXPECT_EQ(phase_of(report, Phase::decode)->steps, 1u);
    EXPECT_TRUE(has_note(report, "PLUMB_BRICK"));
}

TEST(ReportBuilder, labels_alone_make_a_report_of_labels_sorted_by_total) {
    Tape source;
    source.track(1);
    source.names_ = {{300, Category::other, "tokenize"}, {301, Category::other, "detokenize"}};
    source.label(1, Name(std::uint16_t{300}), 10);
    source.label(1, Name(std::uint16_t{300}), 30);
    source.label(1, Name(std::uint16_t{301}), 100);
    const Report report = report_of(source);
    ASSERT_EQ(report.labels.size(), 2u);
    EXPECT_EQ(report.labels[0].label, "detokenize");
    EXPECT_EQ(report.labels[1].count, 2u);
    EXPECT_EQ(report.labels[1].total_ns, 40);
    EXPECT_EQ(report.labels[1].min_ns, 10);
    EXPECT_EQ(report.labels[1].max_ns, 30);
    EXPECT_TRUE(report.bricks.empty());
    EXPECT_EQ(report.scopes, 0u);
}

TEST(ReportBuilder, an_empty_recording_is_a_report_that_says_so) {
    Tape source;
    const Report report = report_of(source);
    EXPECT_TRUE(report.bricks.empty());
    EXPECT_TRUE(has_note(report, "No complete step"));
    EXPECT_FALSE(report.own_cost.wall_share.value.has_value());
}

TEST(ReportBuilder, own_cost_is_counts_times_price_plus_the_drain) {
    Tape source;
    source.track(1);
    source.metadata_.costs = {{"scope", 20.0}, {"lap", 10.0}, {"floor.cpu_tsc", 8.0}};
    source.counters_.drain_cpu_ns = 5000;
    source.step_begin(1, 0, Phase::decode, 0);
    source.lap(1, Brick::attention, 100 * us, 200 * us);
    source.lap(1, Brick::rms_norm, 200 * us, 300 * us);
    source.scope(1, Brick::qkv_projection, 100 * us, 300 * us);
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    // The scope and the step at 20 ns, two laps at 10 ns, the drain: 5060 ns of 1 ms.
    EXPECT_NEAR(report.own_cost.wall_share.value.value(), 0.00506, 1e-11);
    EXPECT_EQ(report.own_cost.floor_ns.value, 8.0);
}

TEST(ReportBuilder, own_cost_is_unknown_where_it_would_be_no_share_of_what_was_recorded) {
    Tape source;
    source.track(1);
    plant_step(source, 0, {});
    source.metadata_.costs = {{"scope", 20.0}, {"lap", 10.0}};
    source.counters_.drain_cpu_ns = 1'000'000'000'000;
    const Report report = report_of(source);
    EXPECT_FALSE(report.own_cost.wall_share.value.has_value());
    EXPECT_NE(report.own_cost.wall_share.reason.find("longer than all"), std::string::npos);

    source.counters_.drain_cpu_ns = 5000;
    source.counters_.drops = {{"ring full", 3}};
    EXPECT_NE(report_of(source).own_cost.wall_share.reason.find("are missing"), std::string::npos)
        << "scopes whose records found no room were paid for";
}

/// The drain's time is of all records: beside those that are left it says nothing.
TEST(ReportBuilder, F1_own_cost_is_unknown_where_records_are_missing) {
    for (const bool removed : {false, true}) {
        Tape source;
        source.track(1);
        plant_step(source, 0, {});
        source.metadata_.costs = {{"scope", 20.0}, {"lap", 10.0}};
        source.counters_.drain_cpu_ns = 5000;
        EXPECT_TRUE(report_of(source).own_cost.wall_share.value.has_value());
        source.counters_.records = 1000;
        source.counters_.records_removed = removed ? 990 : 0;
        const Report report = report_of(source);
        EXPECT_FALSE(report.own_cost.wall_share.value.has_value());
        EXPECT_NE(report.own_cost.wall_share.reason.find("are missing"), std::string::npos);
        EXPECT_TRUE(report.losses.empty())
            << report.losses.front().reason << ": what a limit removed was old, not lost";
    }
}

/// A step of 1 ms from its middle on, and a whole one behind it; `gap`: records are missing between the two.
Report begun_late(std::uint64_t removed, bool gap) {
    Tape source;
    source.track(1);
    source.lose(1, 100);
    source.context_end(1);
    source.step_end(1, Phase::decode, 0, ms);
    source.lose(1, gap ? 5 : 0);
    source.context_end(1);
    plant_step(source, 1, {Phase::decode, ms, 0, ms});
    source.counters_.records_removed = removed;
    return report_of(source);
}

TEST(ReportBuilder, what_a_limit_cut_was_old_and_is_not_lost) {
    EXPECT_TRUE(begun_late(100, false).losses.empty()) << begun_late(100, false).losses[0].reason;
    EXPECT_EQ(loss_of(begun_late(0, false), "steps cut short"), 1u);
    EXPECT_EQ(loss_of(begun_late(0, false), "layer or context ends"), 2u);
    EXPECT_EQ(loss_of(begun_late(100, true), "layer or context ends"), 1u) << "behind the gap";
    Tape source;
    source.track(1);
    source.lose(1, 100);
    for (int i = 0; i < 70; ++i) {
        source.context_end(1);
    }
    source.counters_.records_removed = 100;
    EXPECT_EQ(loss_of(report_of(source), "layer or context ends"), 6u) << "no 70 were open";
}

TEST(ReportBuilder, scopes_outside_steps_may_be_of_steps_whose_begin_was_lost) {
    for (const bool lost : {false, true}) {
        Tape source;
        source.track(1);
        plant_step(source, 0, {Phase::decode, 0, 0, ms});
        source.scope(1, Brick::attention, ms, ms + 1000); // of a step whose begin found no room
        plant_step(source, 2, {Phase::decode, 2 * ms, 0, ms});
        if (lost) {
            source.counters_.drops = {{"ring full", 5}};
        }
        EXPECT_EQ(has_note(report_of(source), "scopes outside of steps (1) may be of steps"), lost);
    }
}

TEST(ReportBuilder, F1_work_may_have_been_given_in_damaged_records) {
    Tape source;
    source.track(1);
    plant_step(source, 0, {Phase::decode, 0, 0, ms});
    source.counters_.records = 1000;
    const Report report = report_of(source);
    const Row* row = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_EQ(row->gigabytes_per_second.reason, "no bytes were given, or what says so was lost with damaged records");
    EXPECT_EQ(row->roof.share.reason, "no bytes or flops were given, or what says so was lost with damaged records");
}

TEST(ReportBuilder, scopes_of_a_step_that_was_cut_short_are_in_no_row_beside_complete_steps) {
    Tape source;
    source.track(1);
    plant_step(source, 0, {});
    source.step_begin(1, 1, Phase::decode, ms);
    source.scope(1, Brick::attention, ms + 100, ms + 200);
    const Report report = report_of(source);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->time.count, 1u);
    EXPECT_FALSE(has_row(report.bricks, Phase::none, "attention"));
    EXPECT_EQ(loss_of(report, "steps cut short"), 1u);
    EXPECT_TRUE(has_note(report, "1 scopes belong to steps that were cut short"));
    EXPECT_EQ(report.scopes, 3u);
}

TEST(ReportBuilder, steps_of_phase_none_are_told_and_not_lost) {
    for (const bool alone : {false, true}) {
        Tape source;
        source.track(1);
        if (!alone) {
            plant_step(source, 0, {});
        }
        source.step_begin(1, 1, Phase::none, ms);
        source.scope(1, Brick::sampling, ms + 100, ms + 200);
        source.step_end(1, Phase::none, ms, 2 * ms);
        const Report report = report_of(source);
        EXPECT_TRUE(report.losses.empty());
        EXPECT_EQ(has_row(report.bricks, Phase::none, "sampling"), alone);
        EXPECT_TRUE(has_note(report, alone ? "Steps of phase none are in no figure per step: 1, and there are no others"
                                           : "Steps of phase none are in no figure per step: 1; their 1 scopes"));
        EXPECT_FALSE(has_note(report, "cut short"));
        EXPECT_FALSE(has_note(report, "No complete step"));
    }
}

TEST(ReportBuilder, two_sources_of_one_brick_are_two_rows) {
    Tape source;
    source.track(1);
    source.track(2, "other", "caller");
    source.step_begin(1, 0, Phase::decode, 0);
    source.scope(1, Brick::attention, 100, 200);
    source.context(2, 0);
    source.scope(2, Brick::attention, 100, 400);
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    ASSERT_EQ(report.bricks.size(), 2u);
    EXPECT_NE(report.bricks[0].source, report.bricks[1].source);
}

} // namespace
} // namespace plumb::analysis

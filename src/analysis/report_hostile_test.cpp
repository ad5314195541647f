// SPDX-License-Identifier: Apache-2.0
// Streams made to hurt: they may end in any report, never in a crash, a hang or memory without bound.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/graph_table.hpp"
#include "analysis/planted_report_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;

void expect_sound(const Report& report) {
    for (const PhaseSummary& phase : report.phases) {
        const WallAccount& wall = phase.wall;
        for (const double part : {wall.period_ns, wall.busy_ns, wall.idle_ns, wall.union_ns, wall.overlap_ns,
                                  wall.unattributed_ns, wall.lap_union_ns}) {
            ASSERT_GE(part, 0);
        }
        ASSERT_EQ(wall.busy_ns + wall.idle_ns, wall.period_ns);
        ASSERT_EQ(wall.union_ns + wall.unattributed_ns, wall.busy_ns);
        ASSERT_LE(wall.coverage.value.value_or(0), 1);
    }
    for (const auto* rows : {&report.bricks, &report.layers, &report.categories, &report.brick_layers}) {
        for (const Row& row : *rows) {
            ASSERT_GE(row.time.total_ns, 0);
            ASSERT_GE(row.time.variance_ns2, 0);
            ASSERT_LE(row.time.self_ns, row.time.total_ns);
            ASSERT_TRUE(std::isfinite(row.calls_per_step));
        }
    }
}

TEST(ReportHostile, random_records_of_every_kind_make_a_sound_report) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 100; ++round) {
        Tape source;
        source.track(1);
        source.track(2);
        source.track(3);
        std::uint64_t now = Tape::first_tick;
        for (int i = 0; i < 4000; ++i) {
            now += random() % 5000;
            const std::uint64_t back = random() % 8 == 0 ? random() % 1'000'000 : random() % 4000;
            Record record{now - back,
                          pack(static_cast<RecordKind>(random() % 19), static_cast<std::uint16_t>(random() % 40),
                               random() % 3 == 0 ? back : random() % 100)};
            if (random() % 10 == 0) {
                record.second |= random() % 2 == 0 ? flag_lap : flag_work;
            }
            if (random() % 50 == 0) {
                record.first = random();
            }
            source.raw(static_cast<std::uint32_t>(random() % 4 + 1), record);
            if (random() % 200 == 0) {
                source.deliver(static_cast<std::uint32_t>(random() % 3 + 1));
            }
        }
        ReportOptions options;
        options.brick_layers = true;
        expect_sound(report_of(source, options));
    }
}

TEST(ReportHostile, thousands_of_names_and_layers_stay_within_their_limits) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    std::int64_t t = 1000;
    for (std::uint32_t id = 0; id < 65536; id += 3) {
        source.layer_begin(1, static_cast<std::uint16_t>(id), t);
        source.scope(1, Name(static_cast<std::uint16_t>(id)), t, t + 100);
        source.layer_end(1, static_cast<std::uint16_t>(id), t, t + 200);
        t += 400;
    }
    source.step_end(1, Phase::decode, 0, t);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    expect_sound(report);
    EXPECT_LE(report.bricks.size(), 8192u);
    EXPECT_TRUE(report.losses.empty()) << report.losses.front().reason << ": a limit of the answer is no loss";
    EXPECT_TRUE(has_note(report, "Rows beyond 8192 of each kind are left out: 13654 samples of bricks, "
                                 "13654 samples of layers."));
}

TEST(ReportHostile, graphs_beyond_the_limit_are_told_and_are_no_loss) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    std::int64_t t = 0;
    for (std::uint64_t key = 0; key < GraphTable::max_graphs + 3; ++key, t += 20) {
        source.launch(1, 1000 + key, 0, 1, t, t + 10);
    }
    source.step_end(1, Phase::decode, 0, t);
    const Report report = report_of(source);
    expect_sound(report);
    EXPECT_TRUE(report.losses.empty()) << report.losses.front().reason << ": a limit of the answer is no loss";
    EXPECT_TRUE(
        has_note(report, "Launches or samples beyond 16384 captured graphs and 262144 sites in them are left out: 3."));
}

TEST(ReportHostile, a_hundred_thousand_steps_under_scopes_that_span_them_all_take_no_long_time) {
    Tape source;
    std::int64_t t = 0;
    source.track(1);
    for (std::uint64_t step = 0; step < 100'000; ++step) {
        source.step_begin(1, step, Phase::decode, t);
        source.scope(1, Brick::attention, t + 2, t + 4);
        source.step_end(1, Phase::decode, t, t + 10);
        t += 10;
    }
    for (std::uint32_t track = 2; track < 200; ++track) {
        source.track(track);
        for (int i = 0; i < 50; ++i) {
            source.scope(track, Brick::all_reduce, 0, t + 2 * i);
        }
    }
    const Report report = report_of(source);
    expect_sound(report);
    EXPECT_TRUE(has_note(report, "in no wall account"));
    EXPECT_EQ(phase_of(report, Phase::decode)->wall.union_ns, 200'000);
}

TEST(ReportHostile, steps_and_layers_that_never_end_are_bounded_and_counted) {
    Tape source;
    source.track(1);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        source.step_begin(1, i, Phase::decode, static_cast<std::int64_t>(i) * 10);
        source.layer_begin(1, 3, static_cast<std::int64_t>(i) * 10);
        source.context(1, i, 5);
    }
    const Report report = report_of(source);
    EXPECT_EQ(loss_of(report, "steps cut short"), 100'000u);
    EXPECT_GT(loss_of(report, "nested deeper than 64"), 0u);
}

TEST(ReportHostile, steps_that_share_one_id_or_one_moment_are_told) {
    Tape source;
    source.track(1);
    for (int i = 0; i < 100; ++i) {
        source.step_begin(1, 7, Phase::decode, 1000);
        source.step_end(1, Phase::decode, 1000, 1000);
    }
    const Report report = report_of(source);
    expect_sound(report);
    EXPECT_EQ(loss_of(report, "id that was used before"), 99u);
    EXPECT_FALSE(phase_of(report, Phase::decode)->wall.coverage.value.has_value());
}

TEST(ReportHostile, absurd_work_is_not_believed) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.step_value(1, StepValue::decode_tokens, ~std::uint64_t{0});
    for (const double value : {-1.0, std::numeric_limits<double>::infinity()}) {
        source.work(1, Brick::attention, WorkQuantity::bytes, value);
        source.scope(1, Brick::attention, 1000, 2000, flag_work);
    }
    source.work(1, Brick::attention, static_cast<WorkQuantity>(77), 1.0);
    source.step_end(1, Phase::decode, 0, 10'000);
    const Report report = report_of(source);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "attention")->gigabytes_per_second.value.has_value());
    EXPECT_EQ(phase_of(report, Phase::decode)->tokens, 0u);
    EXPECT_EQ(loss_of(report, "no engine can mean"), 3u);
}

} // namespace
} // namespace plumb::analysis

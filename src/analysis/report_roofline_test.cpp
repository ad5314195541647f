// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_roofline.hpp"

#include <gtest/gtest.h>

#include "analysis/planted_report.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using resolve::PlantedSource;
constexpr std::int64_t us = 1000;
constexpr std::int64_t ms = 1000 * us;

Peaks host_peaks() {
    Peaks peaks;
    peaks.place = "host";
    peaks.read_gigabytes_per_second = stats::measured(20);
    peaks.f32_teraflops = stats::measured(0.1);
    peaks.bf16_teraflops = stats::absent("no bf16");
    peaks.last_level_cache_bytes = stats::measured(32e6);
    return peaks;
}

/// Two steps of 10 ms; each: lm_head moves 100 MB in 6 ms, and in each of 20 layers up_projection moves 2 MB in 100 us.
void plant(PlantedSource& source, bool with_peaks) {
    if (with_peaks)
        source.peaks(host_peaks());
    source.track(1);
    for (std::int64_t step = 0; step < 2; ++step) {
        const std::int64_t begin = step * 10 * ms;
        source.step_begin(1, static_cast<std::uint64_t>(step), Phase::decode, begin);
        source.work(1, Brick::up_projection, WorkQuantity::bytes, 2e6);
        source.work(1, Brick::up_projection, WorkQuantity::flops, 2e6);
        for (std::uint16_t layer = 0; layer < 20; ++layer) {
            const std::int64_t at = begin + layer * 150 * us;
            source.layer_begin(1, layer, at);
            source.scope(1, Brick::up_projection, at, at + 100 * us, flag_work);
            source.layer_end(1, layer, at, at + 110 * us);
        }
        source.work(1, Brick::lm_head, WorkQuantity::bytes, 1e8);
        source.work(1, Brick::lm_head, WorkQuantity::flops, 1e8);
        source.scope(1, Brick::lm_head, begin + 3500 * us, begin + 9500 * us, flag_work);
        source.scope(1, Brick::sampling, begin + 9500 * us, begin + 9600 * us);
        source.step_end(1, Phase::decode, begin, begin + 10 * ms);
    }
}

TEST(ReportRoofline, rows_are_measured_against_the_peaks_of_their_recording) {
    PlantedSource source;
    plant(source, true);
    const Report report = report_of(source);
    const Row* head = row_of(report.bricks, Phase::decode, "lm_head");
    EXPECT_NEAR(head->roof.percent.value.value(), 100 * (1e8 / 6e6) / 20, 1e-6);
    EXPECT_EQ(head->roof.bottleneck, Bottleneck::memory);
    EXPECT_FALSE(head->roof.fits_cache);
    EXPECT_DOUBLE_EQ(head->bytes_per_step.value.value(), 1e8);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "sampling")->roof.bottleneck, Bottleneck::unknown);
}

// One call would fit the cache; all layers of a step do not, so each call finds its weights in memory again.
TEST(ReportRoofline, what_a_brick_moves_in_a_step_decides_whether_it_fits_the_cache) {
    PlantedSource source;
    plant(source, true);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "up_projection")->bytes_per_step.value.value(), 4e7);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "up_projection")->roof.fits_cache);
    ASSERT_FALSE(report.brick_layers.empty());
    for (const Row& row : report.brick_layers)
        EXPECT_FALSE(row.roof.fits_cache) << *row.key.layer;
}

TEST(ReportRoofline, the_speed_of_light_is_of_the_bytes_of_leaf_bricks_and_counts_those_that_state_none) {
    PlantedSource source;
    plant(source, true);
    const Report report = report_of(source);
    const auto& lights = phase_of(report, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_EQ(lights[0].place, "host");
    EXPECT_DOUBLE_EQ(lights[0].bytes_per_step.value.value(), 1.4e8);
    EXPECT_DOUBLE_EQ(lights[0].ns_per_step.value.value(), 7e6);
    EXPECT_NEAR(lights[0].reached_percent.value.value(), 70, 1e-6);
    EXPECT_EQ(lights[0].bricks_without_bytes, 1u);
    EXPECT_FALSE(lights[0].fits_cache);
}

TEST(ReportRoofline, T7_a_recording_without_peaks_says_what_to_run) {
    PlantedSource source;
    plant(source, false);
    const Report report = report_of(source);
    for (const Row& row : report.bricks) {
        EXPECT_FALSE(row.roof.percent.value);
        EXPECT_EQ(row.roof.bottleneck, Bottleneck::unknown);
    }
    EXPECT_NE(row_of(report.bricks, Phase::decode, "lm_head")->roof.percent.reason.find("plumb selftest --peaks"),
              std::string::npos);
    const auto& lights = phase_of(report, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_DOUBLE_EQ(lights[0].bytes_per_step.value.value(), 1.4e8);
    EXPECT_NE(lights[0].ns_per_step.reason.find("plumb selftest --peaks"), std::string::npos);
}

TEST(ReportRoofline, F5_the_share_of_light_is_of_the_whole_period_not_of_the_covered_part) {
    PlantedSource source;
    plant(source, true);
    const Report report = report_of(source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_LT(decode->wall.union_ns, 0.9 * decode->wall.period_ns);
    EXPECT_NEAR(decode->speed_of_light[0].reached_percent.value.value(),
                100 * *decode->speed_of_light[0].ns_per_step.value / (decode->wall.period_ns / 2), 1e-6);
}

} // namespace
} // namespace plumb::analysis

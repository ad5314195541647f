// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_roofline.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/planted_report_testing.hpp"
#include "analysis/roofline.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using planted::ms;
using planted::Tape;
using planted::us;

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
void plant(Tape& source, bool with_peaks) {
    if (with_peaks) {
        source.peaks(host_peaks());
    }
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
    Tape source;
    plant(source, true);
    const Report report = report_of(source);
    const Row* head = row_of(report.bricks, Phase::decode, "lm_head");
    EXPECT_NEAR(head->roof.share.value.value(), (1e8 / 6e6) / 20, 1e-8);
    EXPECT_EQ(head->roof.bottleneck, Bottleneck::memory);
    EXPECT_FALSE(head->roof.fits_cache);
    EXPECT_DOUBLE_EQ(head->bytes_per_step.value.value(), 1e8);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "sampling")->roof.bottleneck, Bottleneck::unknown);
}

/// In each of 40 steps of 10 ms four threads move 20 MB each in 6 ms, or all of it one after the other in 1.5 ms each.
TEST(ReportRoofline, calls_that_run_side_by_side_are_held_against_the_peaks_together) {
    for (const bool together : {true, false}) {
        Tape source;
        source.peaks(host_peaks());
        const std::int64_t length = (together ? 6'000 : 1'500) * us;
        for (std::uint32_t thread = 1; thread <= 4; ++thread) {
            source.track(thread);
            source.work(thread, Brick::attention, WorkQuantity::bytes, 2e7);
            source.work(thread, Brick::attention, WorkQuantity::flops, 2e7);
        }
        for (std::int64_t step = 0; step < 40; ++step) {
            const std::int64_t begin = step * 10 * ms;
            source.step_begin(1, static_cast<std::uint64_t>(step), Phase::decode, begin);
            for (std::uint32_t thread = 1; thread <= 4; ++thread) {
                const std::int64_t at = begin + (together ? 0 : (thread - 1) * length);
                source.context(thread, static_cast<std::uint64_t>(step));
                source.scope(thread, Brick::attention, at, at + length, flag_work);
                source.context_end(thread);
            }
            source.step_end(1, Phase::decode, begin, begin + 10 * ms);
        }
        const Report report = report_of(source);
        const Row& row = *row_of(report.bricks, Phase::decode, "attention");
        EXPECT_DOUBLE_EQ(row.calls_at_once.value.value(), together ? 4 : 1);
        EXPECT_NEAR(row.roof.share.value.value(), (8e7 / 6e6) / 20, 1e-8);
        EXPECT_DOUBLE_EQ(row.excess_per_step_ns.value.value(), 6e6 - 8e7 / 20);
        EXPECT_NEAR(row.gigabytes_per_second.value.value(), 2e7 / static_cast<double>(length), 1e-8) << "of one call";
        EXPECT_EQ(has_note(report, "so many at once: attention (4.0)"), together);
    }
}

// One call would fit the cache; all layers of a step do not, so each call finds its weights in memory again.
TEST(ReportRoofline, what_a_brick_moves_in_a_step_decides_whether_it_fits_the_cache) {
    Tape source;
    plant(source, true);
    ReportOptions options;
    options.brick_layers = true;
    const Report report = report_of(source, options);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "up_projection")->bytes_per_step.value.value(), 4e7);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "up_projection")->roof.fits_cache);
    ASSERT_FALSE(report.brick_layers.empty());
    for (const Row& row : report.brick_layers) {
        EXPECT_FALSE(row.roof.fits_cache) << *row.key.layer;
    }
}

TEST(ReportRoofline, the_speed_of_light_is_of_the_bytes_of_leaf_bricks_and_counts_those_that_state_none) {
    Tape source;
    plant(source, true);
    const Report report = report_of(source);
    const auto& lights = phase_of(report, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_EQ(lights[0].place, "host");
    EXPECT_DOUBLE_EQ(lights[0].bytes_per_step.value.value(), 1.4e8);
    EXPECT_DOUBLE_EQ(lights[0].ns_per_step.value.value(), 7e6);
    EXPECT_NEAR(lights[0].reached_share.value.value(), 0.7, 1e-8);
    EXPECT_EQ(lights[0].bricks_without_bytes, 1u);
    EXPECT_FALSE(lights[0].fits_cache);
}

TEST(ReportRoofline, on_the_host_all_of_the_gap_to_the_speed_of_light_is_of_its_kernels) {
    Tape source;
    plant(source, true);
    const Report report = report_of(source);
    const SpeedOfLight& light = phase_of(report, Phase::decode)->speed_of_light.at(0);
    EXPECT_DOUBLE_EQ(light.kernel_excess_ns.value.value(), 3e6);
    EXPECT_DOUBLE_EQ(light.device_excess_ns.value.value(), 3e6);
    EXPECT_FALSE(light.between_kernels_ns.value);
    EXPECT_FALSE(light.host_ns.value);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "lm_head")->excess_per_step_ns.value.value(), 1e6);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "up_projection")->excess_per_step_ns.value.value(), 0);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "sampling")->excess_per_step_ns.value);
}

TEST(ReportRoofline, T7_a_recording_without_peaks_says_what_to_run) {
    Tape source;
    plant(source, false);
    const Report report = report_of(source);
    for (const Row& row : report.bricks) {
        EXPECT_FALSE(row.roof.share.value);
        EXPECT_EQ(row.roof.bottleneck, Bottleneck::unknown);
    }
    EXPECT_NE(row_of(report.bricks, Phase::decode, "lm_head")->roof.share.reason.find("plumb selftest --peaks"),
              std::string::npos);
    const auto& lights = phase_of(report, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_DOUBLE_EQ(lights[0].bytes_per_step.value.value(), 1.4e8);
    EXPECT_NE(lights[0].ns_per_step.reason.find("plumb selftest --peaks"), std::string::npos);
}

/// Step after step of 10 ms: lm_head moves 600 MB and does 100 Mflop in 6 ms on one queue of each clock named.
void plant_devices(Tape& source, const std::vector<std::string>& clocks, const std::string& name = {}) {
    source.track(1);
    std::vector<std::uint32_t> queues;
    for (const std::string& clock : clocks) {
        recording::TrackInfo info;
        info.id = 0x80000001U + static_cast<std::uint32_t>(queues.size());
        info.kind = recording::TrackKind::device_queue;
        info.name = clock + " queue";
        info.source = "opencl_event";
        info.device_name = name;
        source.device_track(info, clock);
        queues.push_back(info.id);
        source.work(info.id, Brick::lm_head, WorkQuantity::bytes, 6e8);
        source.work(info.id, Brick::lm_head, WorkQuantity::flops, 1e8);
    }
    for (std::uint64_t step = 0; step < 2; ++step) {
        const std::int64_t begin = static_cast<std::int64_t>(step) * 10 * ms;
        source.step_begin(1, step, Phase::decode, begin);
        for (const std::uint32_t queue : queues) {
            source.device_scope(queue, Brick::lm_head, step, -1, begin + ms, begin + 7 * ms, flag_work);
        }
        source.step_end(1, Phase::decode, begin, begin + 10 * ms);
    }
}

/// Steps of 10 ms of one queue: idle 1 ms, two kernels of 3 ms with 0.5 ms between them, idle 2.5 ms.
void plant_kernels(Tape& source) {
    source.track(1);
    recording::TrackInfo info;
    info.id = 0x80000001U;
    info.kind = recording::TrackKind::device_queue;
    info.name = "cuda queue";
    info.source = "cuda_event";
    source.device_track(info, "cuda:0");
    source.work(info.id, Brick::lm_head, WorkQuantity::bytes, 2e8);
    for (std::uint64_t step = 0; step < 2; ++step) {
        const std::int64_t begin = static_cast<std::int64_t>(step) * 10 * ms;
        source.step_begin(1, step, Phase::decode, begin);
        source.device_scope(info.id, Brick::lm_head, step, -1, begin + ms, begin + 4 * ms, flag_work);
        source.device_scope(info.id, Brick::sampling, step, -1, begin + 4500 * us, begin + 7500 * us, 0);
        source.step_end(1, Phase::decode, begin, begin + 10 * ms);
    }
}

Peaks device_peaks(const char* place, const char* name, double gigabytes_per_second) {
    Peaks peaks = host_peaks();
    peaks.place = place;
    peaks.name = name;
    peaks.read_gigabytes_per_second = stats::measured(gigabytes_per_second);
    return peaks;
}

TEST(ReportRoofline, the_gap_of_a_device_is_kernels_what_lies_between_them_and_the_host) {
    for (const bool kernels_alone : {true, false}) {
        Tape source;
        source.peaks(device_peaks("cuda:0", "a device", 100));
        if (kernels_alone) {
            source.descriptions_ = {{"gaps", "between operations"}};
        }
        plant_kernels(source);
        const Report report = report_of(source);
        const SpeedOfLight& light = phase_of(report, Phase::decode)->speed_of_light.at(0);
        EXPECT_DOUBLE_EQ(light.ns_per_step.value.value(), 2e6);
        EXPECT_DOUBLE_EQ(light.device_excess_ns.value.value(), 4.5e6);
        EXPECT_DOUBLE_EQ(light.host_ns.value.value(), 3.5e6);
        EXPECT_EQ(light.kernel_excess_ns.value.has_value(), kernels_alone);
        EXPECT_EQ(light.between_kernels_ns.value.has_value(), kernels_alone);
        EXPECT_EQ(light.kernel_times, kernels_alone ? "trace" : "");
        if (kernels_alone) {
            EXPECT_DOUBLE_EQ(*light.kernel_excess_ns.value, 4e6);
            EXPECT_DOUBLE_EQ(*light.between_kernels_ns.value, 0.5e6);
        }
        EXPECT_DOUBLE_EQ(*light.ns_per_step.value + *light.device_excess_ns.value + *light.host_ns.value,
                         phase_of(report, Phase::decode)->period.mean_ns);
        EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "lm_head")->excess_per_step_ns.value.value(), 1e6);
    }
}

/// Steps of 10 ms of one queue: a brick of 7 ms in it, and the stamps of its kernels in the first `stamped` of them.
void plant_stamps(Tape& source, std::uint64_t steps, std::uint64_t stamped) {
    source.peaks(device_peaks("cuda:0", "a device", 100));
    source.track(1);
    recording::TrackInfo info;
    info.id = 0x80000001U;
    info.kind = recording::TrackKind::device_queue;
    info.source = "cuda_event";
    source.device_track(info, "cuda:0");
    source.work(info.id, Brick::lm_head, WorkQuantity::bytes, 2e8);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const std::int64_t begin = static_cast<std::int64_t>(step) * 10 * ms;
        source.step_begin(1, step, Phase::decode, begin);
        source.device_scope(info.id, Brick::lm_head, step, -1, begin + ms, begin + 8 * ms, flag_work);
        if (step < stamped) {
            source.step_value(1, StepValue::kernels, static_cast<std::uint64_t>(5 * ms) + step);
            source.step_value(1, StepValue::kernel_stretch, static_cast<std::uint64_t>(6 * ms) + step);
        }
        source.step_end(1, Phase::decode, begin, begin + 10 * ms);
    }
}

TEST(ReportRoofline, the_gap_of_a_device_whose_kernels_stamped_their_times_is_split_by_these) {
    Tape source;
    plant_stamps(source, 2, 2);
    const Report report = report_of(source);
    const PhaseSummary& phase = *phase_of(report, Phase::decode);
    EXPECT_EQ(phase.stamped_steps, 2U);
    EXPECT_DOUBLE_EQ(phase.kernels_per_step_ns.value.value(), 5e6 + 0.5);
    EXPECT_DOUBLE_EQ(phase.kernel_stretch_per_step_ns.value.value(), 6e6 + 0.5);
    const SpeedOfLight& light = phase.speed_of_light.at(0);
    EXPECT_EQ(light.kernel_times, "kernel stamps");
    EXPECT_DOUBLE_EQ(light.kernel_excess_ns.value.value(), 3e6 + 0.5);
    EXPECT_DOUBLE_EQ(light.between_kernels_ns.value.value(), 1e6);
    EXPECT_DOUBLE_EQ(light.device_excess_ns.value.value(), 4e6 + 0.5);
    EXPECT_DOUBLE_EQ(light.host_ns.value.value(), 4e6 - 0.5);
}

TEST(ReportRoofline, the_gap_is_not_split_by_the_stamps_of_some_steps_alone) {
    Tape source;
    plant_stamps(source, 3, 2);
    const Report report = report_of(source);
    const PhaseSummary& phase = *phase_of(report, Phase::decode);
    EXPECT_EQ(phase.stamped_steps, 2U);
    const SpeedOfLight& light = phase.speed_of_light.at(0);
    EXPECT_EQ(light.kernel_times, "");
    for (const Figure* figure : {&light.kernel_excess_ns, &light.between_kernels_ns}) {
        EXPECT_FALSE(figure->value);
        EXPECT_EQ(figure->reason, "only 2 of 3 counted steps have kernel stamps");
    }
    EXPECT_DOUBLE_EQ(light.device_excess_ns.value.value(), 5e6) << "of the spans, in all steps";
    EXPECT_DOUBLE_EQ(light.host_ns.value.value(), 3e6);
}

TEST(ReportRoofline, bricks_of_several_places_have_no_gap_of_their_own) {
    Tape source;
    source.peaks(host_peaks());
    source.peaks(device_peaks("cuda:0", "a device", 100));
    plant(source, false);
    recording::TrackInfo info;
    info.id = 0x80000001U;
    info.kind = recording::TrackKind::device_queue;
    info.source = "cuda_event";
    source.device_track(info, "cuda:0");
    source.work(info.id, Brick::lm_head, WorkQuantity::bytes, 2e8);
    source.device_scope(info.id, Brick::lm_head, 0, -1, ms, 4 * ms, flag_work);
    const Report report = report_of(source);
    for (const SpeedOfLight& light : phase_of(report, Phase::decode)->speed_of_light) {
        EXPECT_EQ(light.host_ns.value.has_value(), light.place == "cuda") << light.place;
        EXPECT_EQ(light.device_excess_ns.value.has_value(), light.place == "cuda") << light.place;
    }
}

TEST(ReportRoofline, T7_rows_of_a_device_are_measured_against_the_peaks_of_that_device) {
    Tape source;
    source.peaks(host_peaks());
    source.peaks(device_peaks("opencl:0", "slow", 100));
    source.peaks(device_peaks("opencl:1", "fast", 200));
    plant_devices(source, {"opencl:1"});
    const Report report = report_of(source);
    const Row* head = row_of(report.bricks, Phase::decode, "lm_head");
    EXPECT_EQ(head->place, "opencl:1");
    EXPECT_NEAR(head->roof.memory_share.value.value(), 0.5, 1e-8);
    EXPECT_EQ(head->roof.bottleneck, Bottleneck::memory);
    const auto& lights = phase_of(report, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_DOUBLE_EQ(lights[0].ns_per_step.value.value(), 3e6);
}

TEST(ReportRoofline, T7_a_device_has_the_peaks_of_its_name_whatever_number_its_process_gives_it) {
    const auto head_of = [](const std::string& name) {
        Tape source;
        source.peaks(device_peaks("opencl:0", "slow", 100));
        source.peaks(device_peaks("opencl:1", "fast", 200));
        plant_devices(source, {"opencl:0"}, name);
        const Report report = report_of(source);
        const Row* head = row_of(report.bricks, Phase::decode, "lm_head");
        EXPECT_EQ(head->place, "opencl:0");
        EXPECT_EQ(report.peaks.at(0).place, "opencl:0");
        EXPECT_EQ(report.peaks.at(0).name, name.empty() ? "slow" : name);
        return *head;
    };
    EXPECT_NEAR(head_of("").roof.memory_share.value.value(), 1, 1e-8) << "older recordings tell no name";
    EXPECT_NEAR(head_of("slow").roof.memory_share.value.value(), 1, 1e-8);
    EXPECT_NEAR(head_of("fast").roof.memory_share.value.value(), 0.5, 1e-8) << "the process was shown the second alone";
    const Row unmeasured = head_of("new");
    EXPECT_FALSE(unmeasured.roof.memory_share.value);
    EXPECT_NE(unmeasured.roof.share.reason.find("other devices than new"), std::string::npos)
        << unmeasured.roof.share.reason;
}

TEST(ReportRoofline, rows_of_several_devices_are_measured_only_where_these_are_alike) {
    Tape unlike;
    unlike.peaks(device_peaks("opencl:0", "slow", 100));
    unlike.peaks(device_peaks("opencl:1", "fast", 200));
    plant_devices(unlike, {"opencl:0", "opencl:1"});
    const Report of_unlike = report_of(unlike);
    EXPECT_EQ(row_of(of_unlike.bricks, Phase::decode, "lm_head")->roof.share.reason, unlike_devices);
    EXPECT_EQ(phase_of(of_unlike, Phase::decode)->speed_of_light.at(0).ns_per_step.reason, unlike_devices);
    Tape alike;
    alike.peaks(device_peaks("opencl:0", "same", 100));
    alike.peaks(device_peaks("opencl:1", "same", 100));
    plant_devices(alike, {"opencl:0", "opencl:1"});
    const Report report = report_of(alike);
    const Row* head = row_of(report.bricks, Phase::decode, "lm_head");
    EXPECT_EQ(head->place, "");
    EXPECT_NEAR(head->roof.memory_share.value.value(), 1, 1e-8);
}

TEST(ReportRoofline, F5_devices_that_share_the_bytes_of_a_step_have_their_bandwidths_together) {
    Tape source;
    source.peaks(device_peaks("opencl:0", "same", 100));
    source.peaks(device_peaks("opencl:1", "same", 100));
    plant_devices(source, {"opencl:0", "opencl:1"});
    const Report both = report_of(source);
    const auto& lights = phase_of(both, Phase::decode)->speed_of_light;
    ASSERT_EQ(lights.size(), 1u);
    EXPECT_EQ(lights[0].devices, 2u);
    EXPECT_DOUBLE_EQ(lights[0].bytes_per_step.value.value(), 1.2e9);
    EXPECT_DOUBLE_EQ(lights[0].ns_per_step.value.value(), 6e6) << "not 12 ms in a step of 10";
}

TEST(ReportRoofline, T7_a_brick_that_moves_more_than_the_kept_peak_is_told_once_a_phase) {
    Tape source;
    Peaks outdated = host_peaks();
    outdated.read_gigabytes_per_second = stats::measured(15);
    outdated.measured_unix_s = 1'793'232'000; // 2026-10-29
    outdated.last_level_cache_bytes = stats::measured(5e6);
    source.peaks(outdated);
    plant(source, false);
    const Report report = report_of(source);
    std::vector<std::string> told;
    for (const std::string& note : report.notes) {
        if (note.find("read bandwidth kept") != std::string::npos) {
            told.push_back(note);
        }
    }
    ASSERT_EQ(told.size(), 1u) << "up_projection moves 133 %, lm_head 111 %";
    EXPECT_EQ(told[0], "up_projection moves 133 % of the read bandwidth kept on 2026-10-29: measure again with "
                       "`plumb selftest --peaks` on a quiet machine.");
}

TEST(ReportRoofline, what_a_cache_or_a_smaller_excess_explains_is_not_told) {
    for (const auto& [gigabytes_per_second, cache] : {std::pair(15.0, 26e6), std::pair(19.1, 5e6)}) {
        Tape source;
        Peaks peaks = host_peaks();
        peaks.read_gigabytes_per_second = stats::measured(gigabytes_per_second);
        peaks.last_level_cache_bytes = stats::measured(cache);
        source.peaks(peaks);
        plant(source, false);
        const Report report = report_of(source);
        EXPECT_GT(row_of(report.bricks, Phase::decode, "up_projection")->roof.memory_share.value.value(), 1.04);
        EXPECT_FALSE(has_note(report, "read bandwidth kept")) << "100 MB are less than 4 x 26 MB; 104.7 % may be";
    }
}

TEST(ReportRoofline, T7_rows_of_an_f32_model_are_held_against_the_peak_of_f32) {
    for (const char* model : {"tiny-llama f32", "tiny-llama bf16"}) {
        Tape source;
        source.descriptions_ = {{"model", model}};
        Peaks peaks = host_peaks();
        peaks.bf16_teraflops = stats::measured(0.4);
        source.peaks(peaks);
        plant(source, false);
        const double share = (1e8 / 6e6) / (std::string(model) == "tiny-llama f32" ? 100 : 400);
        EXPECT_NEAR(row_of(report_of(source).bricks, Phase::decode, "lm_head")->roof.compute_share.value.value(), share,
                    1e-8);
    }
}

TEST(ReportRoofline, F5_the_share_of_light_is_of_the_whole_period_not_of_the_covered_part) {
    Tape source;
    plant(source, true);
    const Report report = report_of(source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_LT(decode->wall.union_ns, 0.9 * decode->wall.period_ns);
    EXPECT_NEAR(decode->speed_of_light[0].reached_share.value.value(),
                *decode->speed_of_light[0].ns_per_step.value / (decode->wall.period_ns / 2), 1e-8);
}

} // namespace
} // namespace plumb::analysis

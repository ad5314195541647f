// SPDX-License-Identifier: Apache-2.0
#include "analysis/roofline.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using stats::absent;
using stats::measured;

constexpr double mib = 1024 * 1024;

// 100 GB/s and 1 TFLOP/s: the ridge lies at 10 flops per byte.
Peaks simple_peaks() {
    Peaks peaks;
    peaks.place = "host";
    peaks.read_gigabytes_per_second = measured(100);
    peaks.f32_teraflops = measured(1);
    peaks.bf16_teraflops = absent("not here");
    peaks.last_level_cache_bytes = measured(32 * mib);
    return peaks;
}

RoofInput call(std::optional<double> bytes, std::optional<double> flops, double duration_ns) {
    RoofInput input;
    input.bytes = bytes;
    input.flops = flops;
    input.duration_ns = duration_ns;
    return input;
}

void expect_no_nan(const Roofline& roof) {
    for (const Figure* figure : {&roof.intensity, &roof.share, &roof.memory_share, &roof.compute_share}) {
        EXPECT_EQ(figure->value.has_value(), figure->reason.empty());
        if (figure->value) {
            EXPECT_TRUE(std::isfinite(*figure->value));
        }
    }
}

TEST(Roofline, low_intensity_is_measured_against_bandwidth) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(1e9, 1e9, 2e7), {&peaks}); // 50 GB/s of 100, 0.05 TFLOP/s of 1
    ASSERT_TRUE(roof.share.value);
    EXPECT_DOUBLE_EQ(*roof.share.value, 0.5);
    EXPECT_DOUBLE_EQ(*roof.memory_share.value, 0.5);
    EXPECT_DOUBLE_EQ(*roof.compute_share.value, 0.05);
    EXPECT_DOUBLE_EQ(*roof.intensity.value, 1);
    EXPECT_EQ(roof.bottleneck, Bottleneck::memory);
}

TEST(Roofline, high_intensity_is_measured_against_flops) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(1e8, 1e10, 1.25e7), {&peaks});
    EXPECT_DOUBLE_EQ(*roof.share.value, 0.8);
    EXPECT_EQ(roof.bottleneck, Bottleneck::compute);
}

TEST(Roofline, T11_zero_or_unknown_intensity_is_absent_and_never_nan) {
    const Peaks peaks = simple_peaks();
    for (const RoofInput& input :
         {call(1e9, 0, 1e7), call(0, 0, 1e7), call(0, 1e9, 1e7), call(1e9, std::nullopt, 1e7),
          call(std::nullopt, 1e9, 1e7), call(std::nullopt, std::nullopt, 1e7), call(1e9, 1e9, 0),
          call(std::numeric_limits<double>::quiet_NaN(), 1e9, 1e7), call(1e9, 1e9, std::nan(""))}) {
        const Roofline roof = roofline(input, {&peaks});
        EXPECT_FALSE(roof.share.value);
        expect_no_nan(roof);
    }
}

TEST(Roofline, bytes_alone_still_tell_memory) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(1e9, std::nullopt, 1.25e7), {&peaks});
    EXPECT_DOUBLE_EQ(*roof.memory_share.value, 0.8);
    EXPECT_EQ(roof.bottleneck, Bottleneck::memory);
    EXPECT_EQ(roof.share.reason, "no flops were given");
}

TEST(Roofline, data_that_fits_the_cache_is_marked_and_not_clamped) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(16 * mib, 16 * mib, 4e4), {&peaks}); // 419 GB/s
    EXPECT_TRUE(roof.fits_cache);
    EXPECT_EQ(roof.bottleneck, Bottleneck::cache);
    EXPECT_GT(*roof.share.value, 4);
    EXPECT_FALSE(roofline(call(33 * mib, 33 * mib, 4e4), {&peaks}).fits_cache);
}

TEST(Roofline, arithmetic_on_cached_data_is_still_compute) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(mib, 1e9, 1.25e6), {&peaks});
    EXPECT_TRUE(roof.fits_cache);
    EXPECT_EQ(roof.bottleneck, Bottleneck::compute);
}

TEST(Roofline, calls_of_the_length_of_an_empty_scope_are_latency) {
    const Peaks peaks = simple_peaks();
    RoofInput input = call(4096, 4096, 60);
    input.floor_ns = 20;
    EXPECT_EQ(roofline(input, {&peaks}).bottleneck, Bottleneck::latency);
    input.duration_ns = 600;
    EXPECT_NE(roofline(input, {&peaks}).bottleneck, Bottleneck::latency);
    input.launch_wait_share = 0.6;
    EXPECT_EQ(roofline(input, {&peaks}).bottleneck, Bottleneck::latency);
}

TEST(Roofline, far_from_both_peaks_is_unknown_and_says_so) {
    const Peaks peaks = simple_peaks();
    const Roofline roof = roofline(call(1e9, 1e9, 1e8), {&peaks});
    EXPECT_EQ(roof.bottleneck, Bottleneck::unknown);
    EXPECT_NE(roof.reason.find("10 %"), std::string::npos);
}

TEST(Roofline, T7_without_measured_peaks_there_is_no_share_and_the_reason_says_what_to_run) {
    const Roofline roof = roofline(call(1e9, 1e9, 1e7), {});
    EXPECT_FALSE(roof.share.value);
    EXPECT_EQ(roof.bottleneck, Bottleneck::unknown);
    EXPECT_NE(roof.share.reason.find("plumb selftest --peaks"), std::string::npos);
    EXPECT_DOUBLE_EQ(*roof.intensity.value, 1);
}

TEST(Roofline, T7_a_peak_that_could_not_be_measured_is_no_peak) {
    Peaks peaks = simple_peaks();
    peaks.read_gigabytes_per_second = absent("no memory for the arrays");
    const Roofline roof = roofline(call(1e9, 1e9, 1e7), {&peaks});
    EXPECT_EQ(roof.share.reason, "no memory for the arrays");
    EXPECT_TRUE(roof.compute_share.value);
    peaks.read_gigabytes_per_second = measured(0);
    expect_no_nan(roofline(call(1e9, 1e9, 1e7), {&peaks}));
}

TEST(Roofline, the_higher_of_the_arithmetic_peaks_counts) {
    Peaks peaks = simple_peaks();
    peaks.bf16_teraflops = measured(4);
    EXPECT_DOUBLE_EQ(*peak_flops_per_ns(peaks).value, 4000);
}

TEST(Roofline, peaks_belong_to_the_place_a_row_ran_on) {
    std::vector<Peaks> all(3, simple_peaks());
    all[1].place = "cuda:0";
    all[2].place = "cuda:1";
    all[1].name = all[2].name = "a GPU";
    EXPECT_EQ(peaks_of(all, false, "cpu_tsc", "").peaks, &all[0]);
    EXPECT_EQ(peaks_of(all, true, "cuda_graph_event", "").peaks, &all[1]);
    EXPECT_EQ(peaks_of(all, true, "metal_counter", "").peaks, nullptr);
    all[2].name = "another GPU";
    EXPECT_EQ(peaks_of(all, true, "cuda_event", "").peaks, nullptr);
    EXPECT_STREQ(peaks_of(all, true, "cuda_event", "").reason, unlike_devices);
    EXPECT_STREQ(peaks_of(all, true, "metal_counter", "").reason, no_peaks);
    EXPECT_EQ(peaks_of(all, true, "cuda_event", "cuda:0").peaks, &all[1]);
    EXPECT_EQ(peaks_of(all, true, "cuda_event", "cuda:1").peaks, &all[2]);
    EXPECT_EQ(peaks_of(all, true, "cuda_event", "cuda:2").peaks, nullptr) << "nobody measured that one";
}

TEST(Roofline, the_name_of_a_queues_clock_tells_its_device) {
    EXPECT_EQ(place_of_clock("opencl:1"), "opencl:1");
    EXPECT_EQ(place_of_clock("cuda:0 2"), "cuda:0");
    EXPECT_EQ(place_of_clock("cuda:0#2"), "cuda:0");
    EXPECT_EQ(place_of_clock("metal:12:counter"), "metal:12");
    for (const char* none : {"", "tsc", ":1", "metal:id-7", "vulkan:queue-0", "cuda:", "cuda:1st"}) {
        EXPECT_EQ(place_of_clock(none), "") << none;
    }
}

TEST(Roofline, T7_products_of_f32_are_not_measured_against_the_peak_of_bf16) {
    Peaks peaks = simple_peaks();
    peaks.bf16_teraflops = measured(4);
    RoofInput input = call(1e6, 1e9, 2e6); // 0.5 TFLOP/s
    EXPECT_DOUBLE_EQ(*roofline(input, {&peaks}).compute_share.value, 0.125);
    input.f32_only = true;
    EXPECT_DOUBLE_EQ(*roofline(input, {&peaks}).compute_share.value, 0.5);
    peaks.f32_teraflops = absent("not here");
    EXPECT_EQ(roofline(input, {&peaks}).compute_share.reason, "not here");
}

TEST(Roofline, a_model_is_of_f32_where_its_description_says_that_and_nothing_else) {
    const auto says = [](const char* model) {
        return is_f32_model({{"device", "f32 units"}, {"model", model}});
    };
    for (const char* yes : {"tiny-llama f32", "f32", "llama (float32)", "llama/fp32"}) {
        EXPECT_TRUE(says(yes)) << yes;
    }
    for (const char* no : {"", "tiny-llama bf16", "llama-f32x", "llama q8_0", "llama Q4_K, f32 norms", "f16 f32"}) {
        EXPECT_FALSE(says(no)) << no;
    }
    EXPECT_FALSE(is_f32_model({}));
}

TEST(Roofline, speed_of_light_is_bytes_over_bandwidth) {
    const Peaks peaks = simple_peaks();
    EXPECT_DOUBLE_EQ(*speed_of_light_ns(measured(1e9), {&peaks}).value, 1e7);
    EXPECT_FALSE(speed_of_light_ns(absent("no bytes were given"), {&peaks}).value);
    EXPECT_EQ(speed_of_light_ns(measured(1e9), {}).reason, no_peaks);
}

} // namespace
} // namespace plumb::analysis

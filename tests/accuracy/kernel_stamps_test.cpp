// SPDX-License-Identifier: Apache-2.0
// The gap to the speed of light by kernels that stamp their own times: a decode on the virtual GPU, whose ledger knows when
// each kernel ran.
#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/report_roofline.hpp"
#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

/// Of the virtual GPU. A profiler with a clock of the test's takes none into its recording.
Peaks virtual_peaks() {
    Peaks peaks;
    peaks.place = "cuda:0";
    peaks.name = "a virtual GPU";
    peaks.read_gigabytes_per_second.value = 100;
    return peaks;
}

/// Time in kernels of the decoder among the operations from `begin` on.
double kernels_since(std::size_t begin) {
    double sum = 0;
    const std::vector<vgpu::Operation> operations = vgpu::operations();
    for (std::size_t i = begin; i < operations.size(); ++i) {
        if (std::string_view(operations[i].name).starts_with("plumb_decoder_")) {
            sum += static_cast<double>(operations[i].end_ns - operations[i].start_ns);
        }
    }
    return sum;
}

class StampedGap : public testing::TestWithParam<Graphs> {};

TEST_P(StampedGap, is_split_in_four_that_add_up_to_the_period) {
    if (thread_sanitized) {
        GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
    }
    const cuda::VirtualDecoderKernels& kernels = cuda::VirtualDecoderKernels::of_process();
    const TestFolder folder;
    Options options;
    options.backend = "cuda";
    options.device = [](const std::string&, const cpu::CpuOptions&, Graphs graphs) {
        return cuda::make_backend(0, graphs, "no PTX", cuda::no_library);
    };
    options.graphs = GetParam();
    options.kernel_stamps = true;
    options.context = 2048;
    Config config;
    config.on = true;
    config.out = folder.file("run.plumb");
    config.device_every = 4;
    config.graph.every = 4;
    config.warmup_steps = 0;
    config.clock = &vgpu::host_clock();
    Result<Decoder> decoder = Decoder::load(make_test_model(folder, "test", Type::f32), options);
    ASSERT_TRUE(decoder.ok()) << decoder.error().message;
    Profiler profiler(config);
    decoder->profile_replays(&profiler);
    ASSERT_TRUE(decoder->prefill(decoder->random_prompt(8, 2), profiler).ok());
    constexpr std::size_t steps = 10;
    double of_ledger = 0;
    // Steps beside which the other thread makes a twin are not counted, and that may take a while.
    for (std::uint64_t counted = 0, round = 0; counted <= steps && round < 100; ++round) {
        const std::size_t begin = vgpu::operation_count();
        ASSERT_TRUE(decoder->decode(steps, profiler).ok());
        vgpu::run_dry();
        of_ledger = kernels_since(begin) / steps;
        ASSERT_TRUE(profiler.flush(30).ok());
        const Result<Report> so_far = profiler.snapshot();
        ASSERT_TRUE(so_far.ok()) << so_far.error().message;
        for (const PhaseSummary& one : so_far->phases) {
            counted = one.phase == Phase::decode ? one.steps : counted;
        }
    }
    decoder->profile_replays(nullptr);
    ASSERT_TRUE(profiler.close().ok());
    EXPECT_EQ(kernels.failure(), "");

    Result<Report> report = report_recording(config.out);
    ASSERT_TRUE(report.ok()) << report.error().message;
    report->peaks = {virtual_peaks()};
    for (PhaseSummary& one : report->phases) {
        one.speed_of_light.clear();
    }
    analysis::add_rooflines(*report, false);
    const auto phase = std::find_if(report->phases.begin(), report->phases.end(),
                                    [](const PhaseSummary& one) { return one.phase == Phase::decode; });
    ASSERT_NE(phase, report->phases.end());
    EXPECT_GT(phase->steps, 10U);
    EXPECT_EQ(phase->stamped_steps, phase->steps);
    ASSERT_TRUE(phase->kernels_per_step_ns.value);
    EXPECT_NEAR(*phase->kernels_per_step_ns.value, of_ledger, 0.01 * of_ledger);
    const auto light = std::find_if(phase->speed_of_light.begin(), phase->speed_of_light.end(),
                                    [](const SpeedOfLight& one) { return one.place == "cuda"; });
    ASSERT_NE(light, phase->speed_of_light.end());
    EXPECT_EQ(light->kernel_times, "kernel stamps");
    ASSERT_TRUE(light->kernel_excess_ns.value) << light->kernel_excess_ns.reason;
    EXPECT_GT(*light->kernel_excess_ns.value, 0);
    EXPECT_GT(*light->between_kernels_ns.value, 0);
    EXPECT_GT(*light->host_ns.value, 0);
    const double period = phase->period.mean_ns;
    EXPECT_NEAR(*light->ns_per_step.value + *light->kernel_excess_ns.value + *light->between_kernels_ns.value +
                    *light->host_ns.value,
                period, 0.01 * period);
}

INSTANTIATE_TEST_SUITE_P(Graphs, StampedGap, testing::Values(Graphs::off, Graphs::on), [](const auto& parameter) {
    return std::string(parameter.param == Graphs::on ? "on" : "off");
});

} // namespace
} // namespace plumb::decoder

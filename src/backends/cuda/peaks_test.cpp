// SPDX-License-Identifier: Apache-2.0
// Peaks of CUDA devices on the virtual GPU, where every duration is known. That the kernels compute what is expected of them
// here is shown on a real device only.
#include "backends/cuda/peaks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "backends/cuda/peak_kernels.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr const char* image = "any function one asks for";

/// The device does what peaks.cu says: a read in 100 us, multiply-adds in 4 ms, however many.
struct PeakGpu {
    struct State {
        std::uint64_t words = 0;   // that were filled
        std::uint64_t missing = 0; // words that are not read
        float off = 0;             // added to a chain
        int reads = 0;
    };
    std::shared_ptr<State> state = std::make_shared<State>();

    explicit PeakGpu(std::uint64_t memory_bytes = 1024 * mib) {
        vgpu::Config config;
        config.memory_bytes = memory_bytes;
        vgpu::reset(config);
        EXPECT_EQ(driver()->init(0), CuResult::success);
        // An engine has the context too: what is left in it does not go with it.
        Context context = nullptr;
        EXPECT_EQ(driver()->primary_ctx_retain(&context, 0), CuResult::success);
        model("plumb_peak_fill", 1'000, [kept = state](const vgpu::KernelRun& run) {
            kept->words = run.param<std::uint32_t>(1);
            EXPECT_EQ(run.param<std::uint32_t>(2), word_factor);
            EXPECT_NE(vgpu::memory(run.param<DevicePointer>(0), kept->words * 4), nullptr);
        });
        model("plumb_peak_read", 100'000, [kept = state](const vgpu::KernelRun& run) {
            const std::uint64_t words = std::uint64_t{run.param<std::uint32_t>(2)} * run.grid[0] * 4;
            EXPECT_LE(words, kept->words) << "nothing behind the memory is read";
            const std::size_t items = std::size_t{run.grid[0]} * run.block[0];
            auto* const sums = vgpu::at<std::uint32_t>(run.param<DevicePointer>(1), items);
            std::fill_n(sums, items, 0U);
            sums[items - 1] = sum_of_words(words - kept->missing);
            ++kept->reads;
        });
        model("plumb_peak_multiply_adds", 4'000'000, [kept = state](const vgpu::KernelRun& run) {
            const std::size_t items = std::size_t{run.grid[0]} * run.block[0];
            auto* const sums = vgpu::at<float>(run.param<DevicePointer>(0), items);
            for (std::size_t i = 0; i < items; ++i) {
                sums[i] = static_cast<float>(sum_of_chains(0, i, run.param<std::uint32_t>(2)));
            }
            sums[items / 2] += kept->off;
            EXPECT_EQ(run.param<float>(1), chain_seed);
        });
    }
    static void model(const char* name, std::int64_t ns, vgpu::KernelFunction function) {
        vgpu::KernelModel made;
        made.param_bytes = std::strcmp(name, "plumb_peak_read") == 0 ? std::vector<std::size_t>{8, 8, 4}
                                                                     : std::vector<std::size_t>{8, 4, 4};
        made.min_ns = made.max_ns = ns;
        made.function = std::move(function);
        vgpu::kernel(name, made);
    }
    static Peaks measure() {
        const Result<Peaks> peaks = measure_device_peaks(*driver(), 0, image, {});
        EXPECT_TRUE(peaks.ok()) << (peaks ? "" : peaks.error().message);
        return peaks ? *peaks : Peaks{};
    }
};

TEST(CudaPeaks, T7_figures_are_work_over_the_time_between_the_devices_events) {
    const PeakGpu gpu;
    const Peaks peaks = PeakGpu::measure();
    EXPECT_EQ(peaks.place, "cuda:0");
    EXPECT_FALSE(peaks.name.empty());
    EXPECT_EQ(peaks.last_level_cache_bytes.value, 50 * mib);
    EXPECT_EQ(gpu.state->words * 4, 256 * mib) << "a quarter of what is free";
    EXPECT_GE(gpu.state->reads, 10);
    // 132 multiprocessors: the shape whose parts leave the least of 256 MiB over reads the most in those 100 us.
    std::uint64_t most = 0;
    for (const std::uint64_t blocks : {528U, 1056U, 2112U, 4224U}) {
        most = std::max(most, 256 * mib / 16 / blocks / 2048 * 2048 * blocks * 16);
    }
    EXPECT_NEAR(peaks.read_gigabytes_per_second.value.value(), static_cast<double>(most) / 100e3,
                15); // and a gap between kernels
    // A pass of 4 ms is long enough: the rounds are 20 ms worth of the first, 1024 * 5.
    EXPECT_NEAR(peaks.f32_teraflops.value.value(), 2.0 * 12 * 528 * 256 * 1024 * 5 / 4e6 / 1000, 0.05);
    for (const Figure* none : {&peaks.bf16_teraflops, &peaks.one_thread_gigabytes_per_second, &peaks.l1_bytes}) {
        EXPECT_FALSE(none->value);
        EXPECT_FALSE(none->reason.empty());
    }
    EXPECT_EQ(vgpu::leaks(), "1 context");
    EXPECT_TRUE(vgpu::errors().empty());
}

TEST(CudaPeaks, T7_where_memory_is_too_small_for_the_cache_there_is_no_bandwidth_and_still_arithmetic) {
    const PeakGpu gpu(512 * mib);
    const Peaks peaks = PeakGpu::measure();
    EXPECT_EQ(peaks.read_gigabytes_per_second.reason, too_little_to_read);
    EXPECT_TRUE(peaks.f32_teraflops.value);
    EXPECT_EQ(gpu.state->reads, 0);
}

TEST(CudaPeaks, T16_a_device_that_did_not_read_all_or_not_every_chain_has_no_peak) {
    const PeakGpu gpu;
    gpu.state->missing = 1;
    EXPECT_EQ(PeakGpu::measure().read_gigabytes_per_second.reason, wrong_result.message);
    gpu.state->missing = 0;
    gpu.state->off = 0.5F;
    const Peaks peaks = PeakGpu::measure();
    EXPECT_TRUE(peaks.read_gigabytes_per_second.value);
    EXPECT_EQ(peaks.f32_teraflops.reason, wrong_result.message);
}

/// The first error of making kernels, reading and multiplying.
std::string first_error() {
    const auto kernels = CudaPeakKernels::create(*driver(), 0, 32 * mib, image);
    if (!kernels) {
        return kernels.error().message;
    }
    if (const auto read = (*kernels)->read(0); !read) {
        return read.error().message;
    }
    const auto done = (*kernels)->multiply_adds(0, 3);
    return done ? "" : done.error().message;
}

TEST(CudaPeaks, F1_a_call_that_fails_is_the_reason_and_leaves_nothing_behind) {
    for (const char* call :
         {"cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuStreamCreateWithPriority",
          "cuModuleLoadData", "cuModuleGetFunction", "cuEventCreate", "cuMemAlloc", "cuEventRecord", "cuLaunchKernel",
          "cuEventSynchronize", "cuEventElapsedTime", "cuMemcpyDtoHAsync", "cuStreamSynchronize"}) {
        std::uint64_t nth = 1;
        for (;; ++nth) {
            const PeakGpu gpu;
            vgpu::fail(call, CuResult::out_of_memory, nth);
            const std::string said = first_error();
            const bool struck = vgpu::all_failures_struck();
            vgpu::clear_failures();
            // Where the context cannot be made current to tidy up, nothing can be given back or said of it.
            const bool pushing = std::string(call) == "cuCtxPushCurrent";
            if (struck && said.empty() && pushing) {
                continue;
            }
            EXPECT_EQ(vgpu::leaks(), "1 context") << call << ", call " << nth;
            if (!struck) {
                break;
            }
            EXPECT_TRUE(said.find(call) != std::string::npos || (pushing && !said.empty()))
                << call << ", call " << nth << ": " << said;
        }
        EXPECT_GT(nth, 1u) << call << " is never called";
    }
}

TEST(CudaPeaks, F1_without_memory_to_read_from_there_is_arithmetic_and_a_reason) {
    const PeakGpu gpu;
    vgpu::fail("cuMemAlloc", CuResult::out_of_memory, 2);
    const Peaks peaks = PeakGpu::measure();
    EXPECT_NE(peaks.read_gigabytes_per_second.reason.find("cuMemAlloc"), std::string::npos);
    EXPECT_TRUE(peaks.f32_teraflops.value);
    EXPECT_EQ(vgpu::leaks(), "1 context");
}

TEST(CudaPeaks, F3_another_threads_capture_is_not_disturbed) {
    const PeakGpu gpu;
    Context context = nullptr;
    Stream stream = nullptr;
    ASSERT_EQ(driver()->primary_ctx_retain(&context, 0), CuResult::success);
    ASSERT_EQ(driver()->ctx_push_current(context), CuResult::success);
    ASSERT_EQ(driver()->stream_create(&stream, stream_non_blocking), CuResult::success);
    ASSERT_EQ(driver()->stream_begin_capture(stream, CaptureMode::global), CuResult::success);
    EXPECT_EQ(first_error(), "");
    EXPECT_TRUE(vgpu::invalidations().empty());
    Graph graph = nullptr;
    EXPECT_EQ(driver()->stream_end_capture(stream, &graph), CuResult::success);
}

TEST(CudaPeaks, M8_without_kernels_it_is_unsupported_and_a_device_that_does_not_exist_is_not_found) {
    const PeakGpu gpu;
    const auto built_without = measure_device_peaks(*driver(), 0, nullptr, {});
    ASSERT_FALSE(built_without.ok());
    EXPECT_EQ(built_without.error().code, ErrorCode::unsupported);
    EXPECT_NE(built_without.error().message.find("nvcc"), std::string::npos);
    const auto nobody = measure_device_peaks(*driver(), 7, image, {});
    ASSERT_FALSE(nobody.ok());
    EXPECT_EQ(nobody.error().code, ErrorCode::not_found);
}

TEST(CudaPeaks, the_kernels_built_in_have_the_parameters_that_they_are_given) {
    if (peaks_ptx == nullptr) {
        GTEST_SKIP() << "this build has no nvcc";
    }
    vgpu::reset();
    EXPECT_EQ(driver()->init(0), CuResult::success);
    EXPECT_TRUE(CudaPeakKernels::create(*driver(), 0, 32 * mib, peaks_ptx).ok());
    const std::string text = peaks_ptx;
    for (const char* kernel : {"plumb_peak_fill(", "plumb_peak_read(", "plumb_peak_multiply_adds("}) {
        EXPECT_NE(text.find(kernel), std::string::npos) << kernel;
    }
    // Twelve chains, eight rounds at a time, and what is left of them: none was merged.
    std::size_t multiply_adds = 0;
    for (std::size_t at = text.find("fma.rn.f32"); at != std::string::npos; at = text.find("fma.rn.f32", at + 1)) {
        ++multiply_adds;
    }
    EXPECT_GE(multiply_adds, 8u * chains_of_item);
}

} // namespace
} // namespace plumb::backends::cuda

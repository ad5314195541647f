// SPDX-License-Identifier: Apache-2.0
// Peaks of OpenCL devices: on a device in virtual time, whose every duration is known, and on the machine's own (PoCL on
// the machines where these tests run), where what the kernels computed is checked.
#include "backends/opencl/peaks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "backends/opencl/peak_kernels.hpp"
#include "base/os.hpp"
#include "mocks/virtual_opencl.hpp"
#include "support/sanitizers.hpp"

namespace plumb::backends::opencl {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// The device does what peaks.cl says, at 2 bytes a nanosecond and 8 flops a nanosecond.
struct VirtualMachine {
    vocl::Config config;
    std::map<std::string, int> runs;
    std::uint64_t words = 0;   // that were filled
    std::uint64_t missing = 0; // words that are not read
    float off = 0;             // added to a chain

    explicit VirtualMachine() {
        config.drift = 0;
        config.compute_units = 1;
        config.kernel = [this](const vocl::KernelRun& run) {
            return execute(run);
        };
        vocl::reset(config);
    }
    ~VirtualMachine() { vocl::reset(); }
    VirtualMachine(const VirtualMachine&) = delete;
    VirtualMachine& operator=(const VirtualMachine&) = delete;

    std::int64_t execute(const vocl::KernelRun& run) {
        ++runs[run.name];
        if (run.name == "plumb_fill") {
            words = run.value<std::uint32_t>(1);
            EXPECT_LE(words * 4, run.memory_bytes(0));
            EXPECT_EQ(run.value<std::uint32_t>(2), word_factor);
            return 1'000;
        }
        return run.name == "plumb_read" ? read(run) : multiply_adds(run);
    }
    std::int64_t read(const vocl::KernelRun& run) const {
        const std::uint64_t count = std::uint64_t{run.value<std::uint32_t>(2)} * (run.items / run.of_group) * 4;
        EXPECT_LE(count, words) << "nothing behind the memory is read";
        const std::uint32_t sum = sum_of_words(count - missing);
        std::memset(run.memory(1), 0, run.items * 16);
        std::memcpy(run.memory(1) + 16, &sum, sizeof sum);
        return static_cast<std::int64_t>(count * 4 / 2);
    }
    std::int64_t multiply_adds(const vocl::KernelRun& run) const {
        EXPECT_EQ(run.value<float>(1), chain_seed);
        const auto rounds = run.value<std::uint32_t>(2);
        for (std::size_t i = 0; i < run.items * 4; ++i) {
            const auto sum =
                static_cast<float>(sum_of_chains(static_cast<unsigned>(i % 4), i / 4, rounds)) + (i == 7 ? off : 0.0F);
            std::memcpy(run.memory(0) + 4 * i, &sum, sizeof sum);
        }
        return static_cast<std::int64_t>(2.0 * chains_of_item * static_cast<double>(run.items) * 4 * rounds / 8);
    }
    [[nodiscard]] Peaks measure() const {
        const Result<Peaks> peaks = measure_device_peaks(vocl::driver(), vocl::device(), 3, {});
        EXPECT_TRUE(peaks.ok());
        return peaks ? *peaks : Peaks{};
    }
};

TEST(OpenClPeaks, T7_figures_are_work_over_the_time_of_the_devices_own_events) {
    VirtualMachine machine;
    const Peaks peaks = machine.measure();
    EXPECT_EQ(peaks.place, "opencl:3");
    EXPECT_EQ(peaks.name, "virtual device");
    EXPECT_GT(peaks.measured_unix_s, 0);
    EXPECT_NEAR(peaks.read_gigabytes_per_second.value.value(), 2, 1e-6);
    EXPECT_NEAR(peaks.f32_teraflops.value.value(), 0.008, 1e-8);
    EXPECT_EQ(peaks.last_level_cache_bytes.value, mib);
    for (const Figure* none : {&peaks.bf16_teraflops, &peaks.one_thread_f32_teraflops, &peaks.l2_bytes}) {
        EXPECT_FALSE(none->value);
        EXPECT_FALSE(none->reason.empty());
    }
    EXPECT_EQ(machine.words * 4, 256 * mib) << "a quarter of the device's memory";
    EXPECT_GE(machine.runs["plumb_read"], 10);
}

TEST(OpenClPeaks, T7_where_memory_is_too_small_for_the_cache_there_is_no_bandwidth_and_still_arithmetic) {
    VirtualMachine machine;
    vocl::config().cache_bytes = 100 * mib;
    const Peaks peaks = machine.measure();
    EXPECT_EQ(peaks.read_gigabytes_per_second.reason, too_little_to_read);
    EXPECT_FALSE(peaks.read_gigabytes_per_second.value);
    EXPECT_TRUE(peaks.f32_teraflops.value);
    EXPECT_EQ(machine.runs["plumb_read"], 0);
}

TEST(OpenClPeaks, T16_a_device_that_did_not_read_all_or_not_every_chain_has_no_peak) {
    VirtualMachine machine;
    machine.missing = 1;
    EXPECT_EQ(machine.measure().read_gigabytes_per_second.reason, wrong_result.message);
    machine.missing = 0;
    machine.off = 0.5F;
    const Peaks peaks = machine.measure();
    EXPECT_TRUE(peaks.read_gigabytes_per_second.value);
    EXPECT_EQ(peaks.f32_teraflops.reason, wrong_result.message);
}

TEST(OpenClPeaks, F1_a_call_that_fails_leaves_figures_absent_with_its_name_and_nothing_behind) {
    for (const char* call :
         {"clGetDeviceInfo", "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clBuildProgram",
          "clCreateKernel", "clSetKernelArg", "clCreateBuffer", "clEnqueueNDRangeKernel", "clWaitForEvents",
          "clGetEventProfilingInfo", "clEnqueueReadBuffer"}) {
        unsigned use = 1;
        for (; use < 30; use += use < 6 ? 1 : 9) {
            const VirtualMachine machine;
            const std::size_t before = vocl::alive();
            vocl::fail(call, use);
            const Result<Peaks> peaks = measure_device_peaks(vocl::driver(), vocl::device(), 0, {});
            vocl::fail("", 0);
            EXPECT_EQ(vocl::alive(), before) << call << ", use " << use;
            if (!vocl::has_failed()) {
                break;
            }
            if (!peaks) {
                EXPECT_NE(peaks.error().message.find(call), std::string::npos) << peaks.error().message;
                continue;
            }
            const Figure& read = peaks->read_gigabytes_per_second;
            const Figure& flops = peaks->f32_teraflops;
            EXPECT_FALSE(read.value && flops.value) << call << ", use " << use;
            const std::string reason = (read.value ? flops : read).reason;
            EXPECT_NE(reason.find(call), std::string::npos) << reason;
        }
        EXPECT_GT(use, 1u) << call << " is never asked";
    }
}

TEST(OpenClPeaks, a_device_that_shares_the_hosts_memory_takes_no_more_than_a_quarter_of_what_is_free_there) {
    const VirtualMachine machine;
    vocl::config().memory_bytes = std::uint64_t{1} << 50;
    vocl::config().largest_buffer = std::uint64_t{1} << 50;
    const auto own = bytes_to_read_of(vocl::driver(), vocl::device());
    ASSERT_TRUE(own.ok());
    EXPECT_EQ(*own, 4096 * mib) << "of its own";
    vocl::config().shares_host_memory = 1;
    const auto shared = bytes_to_read_of(vocl::driver(), vocl::device());
    ASSERT_TRUE(shared.ok());
    EXPECT_LE(*shared, 1024 * mib);
    EXPECT_LE(*shared, base::available_memory() / 3) << "what is free changes in between";
    vocl::config().shares_host_memory = 0;
    vocl::config().largest_buffer = 300 * mib;
    EXPECT_EQ(*bytes_to_read_of(vocl::driver(), vocl::device()), 300 * mib) << "no larger buffer is given";
}

/// The machine's own device, with little memory: what is computed is checked, not how fast.
class RealOpenClPeaks : public testing::Test {
  protected:
    void SetUp() override {
        const Result<OpenClDriver>& loaded = driver();
        const auto devices = loaded && !thread_sanitized ? devices_of(*loaded) : Result<std::vector<DeviceId>>(Error{});
        if (!devices) {
            GTEST_SKIP() << "no OpenCL device here, or one whose synchronisation a sanitizer does not see";
        }
        auto made = OpenClPeakKernels::create(*driver(), devices->front(), 32 * mib);
        ASSERT_TRUE(made.ok()) << made.error().message;
        kernels_ = std::move(*made);
    }
    std::unique_ptr<OpenClPeakKernels> kernels_;
};

TEST_F(RealOpenClPeaks, all_memory_is_read_in_every_shape) {
    for (int shape = 0; shape < 5; ++shape) {
        const auto rate = kernels_->read(shape);
        ASSERT_TRUE(rate.ok()) << rate.error().message;
        EXPECT_GT(*rate, 0);
    }
}

TEST_F(RealOpenClPeaks, no_two_chains_of_multiply_adds_are_one) {
    const auto few =
        kernels_->multiply_adds(0, 3); // checked to the last bit: chains that begin alike would sum otherwise
    ASSERT_TRUE(few.ok()) << few.error().message;
    for (int shape = 0; shape < 4; ++shape) {
        const auto many = kernels_->multiply_adds(shape, 3'000);
        ASSERT_TRUE(many.ok()) << many.error().message;
        EXPECT_GT(many->ns, 0);
        EXPECT_NEAR(many->flops, 1000 * few->flops, few->flops) << "the same work, spread differently";
    }
}

} // namespace
} // namespace plumb::backends::opencl

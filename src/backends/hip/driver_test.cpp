// SPDX-License-Identifier: Apache-2.0
// HIP's table, devices and queues of streams, by the virtual GPU's HIP face.
#include <algorithm>
#include <thread>

#include "backends/hip/bench_testing.hpp"
#include "plumb/hip.hpp"

namespace plumb {
Backend& hip_backend(); // as the generated registry knows it
}

namespace plumb::backends::hip {
namespace {

TEST(HipDriver, M8_what_a_hip_lacks_is_a_capability_with_its_reason) {
    HipBench bench;
    const Result<Driver> old = load_driver("libamdhip64.so.5");
    ASSERT_TRUE(old.ok()) << old.error().message;
    EXPECT_EQ(old->stream_get_id, nullptr);
    EXPECT_EQ(hip_vendor.version_words(old->version), "HIP 5.2.20730");
    const auto reason = [](const Driver& calls, const std::string& name) {
        for (const Capability& capability : hip_vendor.capabilities(calls)) {
            EXPECT_NE(capability.supported, !capability.reason.empty()) << capability.name;
            if (capability.name == name) {
                return capability.supported ? "supported" : capability.reason;
            }
        }
        return std::string("absent");
    };
    EXPECT_EQ(reason(*old, "graph_capture"), "supported");
    for (const char* lacked : {"graph_stamp_kernels", "event_record_external", "graph_node_enabling", "graph_upload",
                               "batch_mem_ops", "edge_data", "get_proc_address", "collection_in_capture"}) {
        EXPECT_GT(reason(*old, lacked).size(), 20u) << lacked;
    }
    EXPECT_NE(reason(*old, "event_record_external").find("lacks hipEventRecordWithFlags"), std::string::npos);

    vhip::version(70'300'000);
    const Result<Driver> newer = load_driver(PLUMB_NEWER_VIRTUAL_HIP);
    ASSERT_TRUE(newer.ok()) << newer.error().message;
    EXPECT_NE(newer->stream_get_id, nullptr);
    EXPECT_EQ(reason(*newer, "stream_identity"), "supported");
    EXPECT_EQ(reason(*newer, "collection_in_capture"), "supported");
    EXPECT_EQ(reason(*newer, "event_record_external"), "graph probes of HIP do without hipEventRecordWithFlags");
    ASSERT_TRUE(load_driver("libamdhip64.so.5").ok());
}

TEST(HipDriver, a_library_without_hip_or_of_another_age_is_named) {
    HipBench bench;
    const Result<Driver> none = load_driver("libamdhip64.so.nowhere");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    EXPECT_NE(none.error().message.find("install ROCm's HIP runtime"), std::string::npos) << none.error().message;
    const Result<Driver> other = load_driver("libcuda.so.1");
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::unavailable);
    EXPECT_NE(other.error().message.find("has no hipInit"), std::string::npos) << other.error().message;
    vhip::version(40'500'000);
    const Result<Driver> old = load_driver("libamdhip64.so.5");
    ASSERT_FALSE(old.ok());
    EXPECT_NE(old.error().message.find("HIP 4.5.0, which is too old"), std::string::npos) << old.error().message;
}

TEST(HipDriver, both_codes_without_a_device_are_unavailable_with_one_advice) {
    HipBench bench;
    vhip::no_devices();
    const Result<Driver> loaded = load_driver("libamdhip64.so.5"); // 101
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
    EXPECT_NE(loaded.error().message.find("hipErrorInvalidDevice (101); check that rocminfo"), std::string::npos)
        << loaded.error().message;
    const auto devices = hip_backend().enumerate(); // this process's table was loaded before: hipInit says 101
    ASSERT_FALSE(devices.ok());
    EXPECT_EQ(devices.error().code, ErrorCode::unavailable);
    EXPECT_EQ(devices.error().message.find("hipInit: hipErrorInvalidDevice (101); check that rocminfo"), 0u)
        << devices.error().message;
    vhip::reset();
    vgpu::fail("cuDeviceGetCount", CuResult::no_device);
    const auto none = hip_backend().enumerate(); // hipGetDeviceCount says 100
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    EXPECT_EQ(none.error().message.find("hipGetDeviceCount: hipErrorNoDevice (100); check that rocminfo"), 0u)
        << none.error().message;
}

TEST(HipBackend, devices_are_listed_and_have_clocks_of_their_own) {
    vgpu::Config config;
    config.devices = 2;
    HipBench bench(config);
    const auto devices = hip_backend().enumerate();
    ASSERT_TRUE(devices.ok()) << devices.error().message;
    ASSERT_EQ(devices->size(), 2u);
    EXPECT_EQ(devices->back().driver.find("HIP 5.2"), 0u) << devices->back().driver;
    EXPECT_EQ(devices->back().uuid.size(), 40u);
    for (std::uint32_t index = 0; index < 2; ++index) {
        TimerOptions options;
        options.host_clock = &vgpu::host_clock();
        const std::size_t before = vgpu::alive().total();
        {
            const auto timer = hip_backend().make_queue_timer(index, nullptr, options);
            ASSERT_TRUE(timer.ok()) << timer.error().message;
            EXPECT_EQ((*timer)->clock_name().substr(0, 5), "hip:" + std::to_string(index));
        }
        EXPECT_EQ(vgpu::alive().total(), before) << "what it made is given back";
        int current = -1;
        EXPECT_EQ(hipGetDevice(&current), CuResult::success);
        EXPECT_EQ(current, 0) << "the thread's device is put back";
    }
    EXPECT_FALSE(hip_backend().make_queue_timer(7, nullptr, {}).ok());
}

TEST(HipBackend, M8_peaks_of_hip_devices_are_unsupported_in_one_sentence) {
    const HipBench bench;
    const auto peaks = hip_backend().measure_peaks(0, {});
    ASSERT_FALSE(peaks.ok());
    EXPECT_EQ(peaks.error().code, ErrorCode::unsupported);
    EXPECT_NE(peaks.error().message.find("PTX"), std::string::npos) << peaks.error().message;
}

TEST(HipBackend, a_failure_at_any_call_of_a_timers_making_is_an_error_and_leaks_nothing) {
    HipBench bench;
    const std::size_t before = vgpu::alive().total();
    TimerOptions options;
    options.host_clock = &vgpu::host_clock();
    bool struck = true;
    for (std::uint64_t nth = 1; struck; ++nth) {
        vgpu::fail("*", CuResult::unknown, nth);
        {
            const auto timer = hip_backend().make_queue_timer(0, nullptr, options);
            struck = vgpu::all_failures_struck();
            vgpu::clear_failures(); // what gives things back is not part of this
            EXPECT_TRUE(timer.ok() || !timer.error().message.empty());
        }
        EXPECT_EQ(vgpu::alive().total(), before) << "call " << nth;
    }
}

TEST(QueueOfHipStream, a_stream_has_one_queue_on_every_thread) {
    HipBench bench;
    const Queue first = plumb::hip(bench.stream);
    ASSERT_NE(first.timer, nullptr);
    EXPECT_STREQ(first.timer->source(), "hip_event");
    Queue other{};
    std::thread([&] { other = plumb::hip(bench.stream); }).join();
    EXPECT_EQ(other.timer, first.timer);
    const auto token = first.timer->begin();
    ASSERT_TRUE(token.ok()) << token.error().message;
    ASSERT_TRUE(first.timer->end(*token).ok());
    vgpu::run_dry();
    EXPECT_TRUE(first.timer->collect(*token).ok());
}

TEST(QueueOfHipStream, the_null_stream_of_each_device_has_a_queue_of_its_own) {
    vgpu::Config config;
    config.devices = 2;
    HipBench bench(config);
    ASSERT_EQ(driver()->stream_get_id, nullptr) << "with ids they differ anyway";
    const Queue first = plumb::hip(nullptr);
    EXPECT_EQ(plumb::hip(nullptr).track, first.track);
    ASSERT_EQ(hipSetDevice(1), CuResult::success);
    const Queue second = plumb::hip(nullptr);
    EXPECT_NE(second.track, first.track);
    EXPECT_NE(second.timer->clock_name(), first.timer->clock_name());
    ASSERT_EQ(hipSetDevice(0), CuResult::success);
    EXPECT_EQ(plumb::hip(nullptr).track, first.track);
}

} // namespace
} // namespace plumb::backends::hip

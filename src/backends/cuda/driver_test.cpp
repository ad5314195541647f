// SPDX-License-Identifier: Apache-2.0
// Drivers of several ages, by the virtual GPU; queues of streams; stamp kernels.
#include "backends/cuda/driver.hpp"

#include <deque>
#include <string>
#include <thread>

#include "backends/cuda/bench_testing.hpp"
#include "backends/cuda/stamp_module.hpp"
#include "plumb/cuda.hpp"

namespace plumb {
Backend& cuda_backend(); // as the generated registry knows it
}

namespace plumb::backends::cuda {
namespace {

vgpu::Config with_driver(int version) {
    vgpu::reset();
    EXPECT_TRUE(driver().ok()); // the process's own table is that of the newest driver, whichever test comes first
    vgpu::Config config;
    config.driver_version = version;
    return config;
}

TEST(Driver, ages_from_11_8_to_13_fill_the_table_and_older_ones_are_refused) {
    for (const int version : {11080, 12000, 12030, 12040, 12080, 13000}) {
        vgpu::reset(with_driver(version));
        const Result<Driver> loaded = load_driver("libcuda.so.1");
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        EXPECT_EQ(loaded->version, version);
        EXPECT_EQ(loaded->stream_get_id != nullptr, version >= 12000);
        EXPECT_EQ(loaded->stream_get_capture_info_v12030 != nullptr, version >= 12030);
        EXPECT_EQ(loaded->event_elapsed_time_v12080 != nullptr, version >= 12080);
        EXPECT_EQ(loaded->func_get_param_info != nullptr, version >= 12040);
        EXPECT_NE(loaded->event_elapsed_time_v2000, nullptr);
        const std::vector<Capability> capabilities = cuda_vendor.capabilities(*loaded);
        for (const Capability& capability : capabilities) {
            EXPECT_NE(capability.supported, !capability.reason.empty()) << capability.name;
        }
    }
    vgpu::reset(with_driver(11040));
    const Result<Driver> old = load_driver("libcuda.so.1");
    ASSERT_FALSE(old.ok());
    EXPECT_EQ(old.error().code, ErrorCode::unavailable);
    EXPECT_NE(old.error().message.find("install one for CUDA 11.8"), std::string::npos) << old.error().message;
    vgpu::reset();
}

TEST(Driver, scopes_and_notes_work_with_every_age) {
    static auto& drivers = *new std::deque<Driver>; // timelines of them live as long as the process
    for (const int version : {11080, 12000, 12030, 12080, 13000}) {
        vgpu::reset(with_driver(version));
        const Driver& old = drivers.emplace_back(*load_driver("libcuda.so.1"));
        VirtualBench bench(with_driver(version));
        const Stream stream = bench.new_stream();
        TimerOptions options;
        options.host_clock = &vgpu::host_clock();
        const auto timer = CudaQueueTimer::create(old, stream, options);
        ASSERT_TRUE(timer.ok()) << timer.error().message;
        const auto eager = (*timer)->begin_labelled({});
        ASSERT_TRUE(eager.ok() && (*timer)->end_labelled(*eager, nullptr).ok());
        vgpu::run_dry();
        EXPECT_TRUE((*timer)->collect(*eager).ok());
        ASSERT_EQ(old.stream_begin_capture(stream, CaptureMode::global), CuResult::success);
        const auto noted = (*timer)->begin_labelled({});
        ASSERT_TRUE(noted.ok()) << noted.error().message;
        EXPECT_TRUE((*timer)->end_labelled(*noted, nullptr).ok());
        Graph graph = nullptr;
        EXPECT_EQ(old.stream_end_capture(stream, &graph), CuResult::success);
    }
}

TEST(Driver, errors_say_call_name_number_and_advice) {
    vgpu::reset();
    const Error error = error_of(*driver(), CuResult::out_of_memory, "cuEventCreate", "free some memory");
    EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    EXPECT_EQ(error.message, "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2); free some memory");
    EXPECT_FALSE(is_sticky(CuResult::out_of_memory));
    EXPECT_TRUE(is_sticky(CuResult::illegal_address));
    EXPECT_TRUE(is_sticky(CuResult::launch_failed));
}

TEST(Driver, a_thread_holds_relaxed_captures_only_as_long_as_it_asks) {
    vgpu::reset();
    const Driver& calls = *driver();
    calls.init(0);
    CaptureMode mode = CaptureMode::thread_local_mode;
    ASSERT_EQ(calls.thread_exchange_capture_mode(&mode), CuResult::success);
    {
        const RelaxedCapture relaxed(calls);
        CaptureMode now = CaptureMode::relaxed;
        calls.thread_exchange_capture_mode(&now);
        EXPECT_EQ(now, CaptureMode::relaxed);
    }
    CaptureMode after = CaptureMode::global;
    calls.thread_exchange_capture_mode(&after);
    EXPECT_EQ(after, CaptureMode::thread_local_mode);
}

TEST(Backend, devices_are_listed_with_name_uuid_and_driver) {
    vgpu::Config config;
    config.devices = 2;
    vgpu::reset(config);
    Backend& backend = cuda_backend();
    const auto devices = backend.enumerate();
    ASSERT_TRUE(devices.ok()) << devices.error().message;
    ASSERT_EQ(devices->size(), 2u);
    EXPECT_NE((*devices)[0].uuid, (*devices)[1].uuid);
    EXPECT_EQ((*devices)[0].uuid.substr(0, 4), "GPU-");
    EXPECT_EQ((*devices)[0].uuid.size(), 40u);
    EXPECT_EQ((*devices)[1].driver, "CUDA 13.0");
    config.mig = true;
    vgpu::configure(config);
    const auto instances = backend.enumerate();
    ASSERT_TRUE(instances.ok());
    EXPECT_EQ((*instances)[0].uuid.substr(0, 4), "MIG-");
    TimerOptions options;
    options.host_clock = &vgpu::host_clock();
    {
        const auto own = backend.make_queue_timer(1, nullptr, options); // a stream of its own
        ASSERT_TRUE(own.ok()) << own.error().message;
        EXPECT_EQ((*own)->clock_name(), "cuda:1");
        EXPECT_EQ((*own)->device_name(), (*instances)[1].name);
        EXPECT_TRUE((*own)->floor_ns().ok());
    }
    EXPECT_EQ(vgpu::leaks(), "");
    vgpu::fail("cuInit", CuResult::no_device);
    const auto none = backend.enumerate();
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    EXPECT_NE(none.error().message.find("nvidia-smi"), std::string::npos);
}

TEST(QueueOfStream, a_stream_has_one_queue_and_a_handle_given_out_anew_has_another) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const Queue queue = plumb::cuda(stream);
    ASSERT_NE(queue.timer, nullptr);
    EXPECT_GE(queue.track, 0x80000000u);
    EXPECT_EQ(plumb::cuda(stream).track, queue.track);
    EXPECT_NE(plumb::cuda(nullptr).track, queue.track);
    bench.calls().stream_destroy(stream);
    const Stream again = bench.new_stream();
    ASSERT_EQ(again, stream) << "the virtual GPU hands out what was destroyed last";
    EXPECT_NE(plumb::cuda(again).track, queue.track);
}

TEST(QueueOfStream, a_queue_without_a_context_answers_with_the_reason) {
    vgpu::reset();
    const Queue queue = plumb::cuda(reinterpret_cast<Stream>(std::uintptr_t{0x12340}));
    ASSERT_NE(queue.timer, nullptr);
    const auto token = queue.timer->begin_labelled({});
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.error().message.find(';'), std::string::npos) << token.error().message;
    EXPECT_FALSE(queue.timer->capabilities()[0].supported);
}

TEST(QueueOfStream, a_thread_without_a_context_is_asked_again_once_it_has_one) {
    vgpu::reset();
    EXPECT_FALSE(plumb::cuda(nullptr).timer->begin_labelled({}).ok());
    VirtualBench bench;
    const auto token = plumb::cuda(nullptr).timer->begin_labelled({});
    EXPECT_TRUE(token.ok()) << token.error().message;
}

TEST(QueueOfStream, a_device_that_is_busy_or_full_at_first_contact_is_asked_again) {
    vgpu::Config config;
    config.submit_ns = 10'000'000'000;
    VirtualBench bench(config);
    for (int i = 0; i < 9; ++i) {
        bench.new_stream(); // no test before gave out the ids that follow
    }
    const Stream busy = bench.new_stream(), full = bench.new_stream();
    EXPECT_TRUE(plumb::cuda(busy).timer->begin_labelled({}).ok());
    vgpu::fail("cuEventCreate", CuResult::out_of_memory, 1, 1'000'000);
    const Queue starved = plumb::cuda(full);
    EXPECT_FALSE(starved.timer->begin_labelled({}).ok());
    vgpu::clear_failures();
    const Queue queue = plumb::cuda(full);
    EXPECT_NE(queue.track, starved.track);
    EXPECT_TRUE(queue.timer->begin_labelled({}).ok());
}

TEST(QueueOfStream, threads_that_ask_at_once_get_one_queue) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    std::vector<std::uint32_t> tracks(8);
    std::vector<std::thread> threads;
    for (std::uint32_t& track : tracks) {
        threads.emplace_back([&] { track = plumb::cuda(stream).track; });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const std::uint32_t track : tracks) {
        EXPECT_EQ(track, tracks.front());
    }
}

TEST(StampModule, one_thread_writes_the_devices_clock_into_its_slot) {
    VirtualBench bench;
    const auto module = stamp_module(bench.context());
    ASSERT_TRUE(module.ok()) << module.error().message;
    EXPECT_EQ(*stamp_module(bench.context()), *module) << "loaded once";
    // The parameters are those that the PTX declares.
    const std::size_t sizes[] = {8, 8, 4, 4, 4, 4};
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        std::size_t offset = 0, bytes = 0;
        ASSERT_EQ(bench.calls().func_get_param_info((*module)->stamp, i, &offset, &bytes), CuResult::success);
        EXPECT_EQ(bytes, sizes[i]);
    }
    std::size_t offset = 0, bytes = 0;
    EXPECT_NE(bench.calls().func_get_param_info((*module)->stamp, 6, &offset, &bytes), CuResult::success);
    EXPECT_EQ(bench.calls().func_get_param_info((*module)->advance, 0, &offset, &bytes), CuResult::success);
    EXPECT_EQ(bytes, 8u);
}

TEST(StampModule, a_driver_without_a_compiler_says_so) {
    VirtualBench bench;
    vgpu::fail("cuModuleLoadData", CuResult::jit_compiler_not_found);
    const auto none = stamp_module(bench.context());
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unsupported);
    EXPECT_NE(none.error().message.find("event nodes"), std::string::npos) << none.error().message;
    vgpu::fail("cuModuleGetFunction", CuResult::not_found, 2);
    EXPECT_FALSE(stamp_module(bench.context()).ok());
    EXPECT_TRUE(stamp_module(bench.context()).ok()) << "asked again, it may be there";
}

} // namespace
} // namespace plumb::backends::cuda

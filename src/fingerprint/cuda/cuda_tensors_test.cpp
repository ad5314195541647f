// SPDX-License-Identifier: Apache-2.0
// TensorWatch on CUDA streams and in captured graphs, on the virtual GPU.
#include "fingerprint/cuda/cuda_tensors.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fingerprint/cuda/captured_tensors.hpp"
#include "fingerprint/cuda/tensor_device.hpp"
#include "fingerprint/cuda/virtual_kernels_testing.hpp"
#include "fingerprint/tensor_watch.hpp"
#include "plumb/cuda.hpp"
#include "plumb/tensor.hpp"
#include "record/recorder_testing.hpp"
#include "virtual_gpu/engine_driver.hpp"

namespace plumb::fingerprint {
namespace {

using Done = std::vector<recording::TensorCheck>;

std::string any_image() { return "any image"; }

/// An engine with one buffer of floats, whose kernel "fill" sets all of them to a value; and a recorder whose tensors are
/// checked. One per process: queues live as long as that.
class CudaTensorsTest : public testing::Test {
  protected:
    static constexpr std::size_t count = 1000;

    void begin(VirtualKernels::How how = VirtualKernels::How::definition, CudaTensorsOptions options = {any_image},
               vgpu::Config config = {}) {
        engine = std::make_unique<vgpu::Engine>(config);
        kernels = std::make_unique<VirtualKernels>(how);
        vgpu::KernelModel fill;
        fill.param_bytes = {8, 8};
        fill.function = [](const vgpu::KernelRun& run) {
            const float* const from = vgpu::at<float>(run.param<std::uint64_t>(1));
            float* const to = vgpu::at<float>(run.param<std::uint64_t>(0), count);
            for (std::size_t i = 0; i < count; ++i) {
                to[i] = *from + static_cast<float>(i);
            }
        };
        vgpu::kernel("fill", fill);
        stream = engine->stream();
        queue = cuda(stream);
        EXPECT_EQ(engine->cu.mem_alloc(&buffer, count * sizeof(float)), vgpu::CuResult::success);
        EXPECT_EQ(engine->cu.mem_alloc(&value, sizeof(float)), vgpu::CuResult::success);
        std::vector<std::unique_ptr<DeviceTensors>> devices;
        devices.push_back(make_cuda_tensors(options));
        cuda_tensors = devices.back().get();
        TensorConfig all;
        all.level = TensorConfig::Level::all;
        checks = std::make_unique<TensorWatch>(all, std::move(devices),
                                               [this](const std::string& sentence) { said.push_back(sentence); });
        recorder.off();
        RecorderAccess::connect_tensors(recorder, checks.get());
        recorder.on();
        synchronising = vgpu::synchronising_calls();
    }
    void TearDown() override {
        if (engine == nullptr) {
            return;
        }
        if (!context_gone) {
            EXPECT_EQ(vgpu::synchronising_calls(), synchronising) << "checks wait for nothing";
            EXPECT_TRUE(vgpu::invalidations().empty());
            EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        }
        RecorderAccess::connect_tensors(recorder, nullptr);
        checks.reset();
    }

    void set(float to) { *vgpu::at<float>(value) = to; }
    void fill() {
        void* params[] = {&buffer, &value};
        EXPECT_EQ(engine->launch("fill", stream, params), vgpu::CuResult::success);
    }
    [[nodiscard]] Tensor of_buffer() const {
        return tensor(reinterpret_cast<const void*>(buffer), DType::f32, {4, count / 4});
    }
    void check() { PLUMB_TENSOR(recorder, queue, Brick::attention, of_buffer()); }
    Done collect() {
        drain::FeedRound round;
        checks->collect(round);
        return std::move(round.checks);
    }
    Done finished() {
        vgpu::run_dry();
        return collect();
    }
    static Fingerprint wanted(float of) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = of + static_cast<float>(i);
        }
        return *fingerprint_of(tensor(values.data(), DType::f32, {count}));
    }
    void expect_exact(const recording::TensorCheck& found, float of) {
        const Fingerprint right = wanted(of);
        EXPECT_EQ(found.fingerprint.hash, right.hash);
        EXPECT_EQ(found.fingerprint.count, right.count);
        EXPECT_EQ(found.fingerprint.min, right.min);
        EXPECT_EQ(found.fingerprint.max, right.max);
        EXPECT_EQ(found.fingerprint.largest, right.largest);
        EXPECT_TRUE(found.fingerprint.finite());
        EXPECT_EQ(found.fingerprint.sketch.size(), default_buckets);
    }
    struct Captured {
        vgpu::Graph graph = nullptr;
        vgpu::GraphExec exec = nullptr;
        std::shared_ptr<CapturedTensors> checks;
    };
    template <class Body>
    Captured capture(Body body, vgpu::CaptureMode mode = vgpu::CaptureMode::relaxed) {
        Captured made;
        EXPECT_EQ(engine->cu.stream_begin_capture(stream, mode), vgpu::CuResult::success);
        body();
        EXPECT_EQ(engine->cu.stream_end_capture(stream, &made.graph), vgpu::CuResult::success);
        EXPECT_EQ(engine->cu.graph_instantiate(&made.exec, made.graph, 0), vgpu::CuResult::success);
        made.checks = find_captured_tensors(&recorder, made.graph);
        EXPECT_NE(made.checks, nullptr);
        return made;
    }
    void launch(const Captured& graph, std::uint64_t step_plus_one, vgpu::Stream on = nullptr) {
        if (step_plus_one != 0) {
            graph.checks->announce(on != nullptr ? on : stream, {step_plus_one, Phase::decode, 40});
        }
        EXPECT_EQ(engine->cu.graph_launch(graph.exec, on != nullptr ? on : stream), vgpu::CuResult::success);
    }

    record::TestRecorder recorder{record::TestOptions{}};
    std::unique_ptr<vgpu::Engine> engine;
    std::unique_ptr<VirtualKernels> kernels;
    vgpu::Stream stream = nullptr;
    Queue queue;
    vgpu::DevicePointer buffer = 0;
    vgpu::DevicePointer value = 0;
    DeviceTensors* cuda_tensors = nullptr;
    std::unique_ptr<TensorWatch> checks;
    std::vector<std::string> said;
    std::uint64_t synchronising = 0;
    bool context_gone = false;
};

TEST_F(CudaTensorsTest, a_tensor_is_read_in_the_order_of_its_stream) {
    begin(VirtualKernels::How::own_text);
    set(3);
    fill();
    {
        PLUMB_STEP(recorder, queue, Phase::decode, tokens(1), kv_length(8));
        PLUMB_LAYER(recorder, 2);
        check();
    }
    EXPECT_TRUE(collect().empty()) << "the device has not come that far";
    EXPECT_EQ(cuda_tensors->pending(), 1u);
    EXPECT_EQ(checks->unresolved(), 1u);
    const Done done = finished();
    ASSERT_EQ(done.size(), 1u);
    expect_exact(done[0], 3);
    EXPECT_EQ(done[0].step_plus_one, 1u);
    EXPECT_EQ(done[0].layer_plus_one, 3u);
    EXPECT_EQ(done[0].name, Name(Brick::attention).id);
    EXPECT_EQ(done[0].position, 7);
    EXPECT_FALSE(done[0].in_graph);
    EXPECT_EQ(done[0].track, queue.track);
    EXPECT_EQ(cuda_tensors->pending(), 0u);

    check();
    set(5);
    fill();
    check();
    const Done later = finished();
    ASSERT_EQ(later.size(), 2u);
    expect_exact(later[0], 3);
    expect_exact(later[1], 5);
}

TEST_F(CudaTensorsTest, a_full_ring_drops_checks_and_counts_them) {
    vgpu::Config config;
    config.kernel_min_ns = config.kernel_max_ns = 50'000'000; // none ends meanwhile
    begin(VirtualKernels::How::definition, {any_image, 8}, config);
    for (int i = 0; i < 20; ++i) {
        check();
    }
    EXPECT_EQ(checks->dropped_checks(), 12u);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("more than 8 checks are in flight"), std::string::npos) << said[0];
    EXPECT_EQ(finished().size(), 8u);
    check();
    EXPECT_EQ(finished().size(), 1u);
    EXPECT_EQ(checks->dropped_checks(), 12u);
}

TEST_F(CudaTensorsTest, F3_a_check_in_a_capture_is_a_node_that_speaks_in_each_replay) {
    begin(VirtualKernels::How::own_text);
    const Captured graph = capture([&] {
        fill();
        const Layer of_model(recorder, recorder.mode(), 5);
        check();
        check();
    });
    ASSERT_NE(graph.checks, nullptr);
    EXPECT_TRUE(finished().empty()) << "a capture runs nothing";
    graph.checks->set_key(77);
    for (std::uint64_t replay = 0; replay < 3; ++replay) {
        set(static_cast<float>(replay));
        launch(graph, 10 + replay);
        const Done done = finished();
        ASSERT_EQ(done.size(), 2u);
        for (std::uint32_t i = 0; i < 2; ++i) {
            expect_exact(done[i], static_cast<float>(replay));
            EXPECT_EQ(done[i].occurrence, i);
            EXPECT_EQ(done[i].layer_plus_one, 6u);
            EXPECT_TRUE(done[i].in_graph);
            EXPECT_EQ(done[i].graph_key, 77u);
            EXPECT_EQ(done[i].replay, replay + 1);
            EXPECT_EQ(done[i].step_plus_one, 10 + replay);
            EXPECT_EQ(done[i].phase, Phase::decode);
        }
    }
}

TEST_F(CudaTensorsTest, a_step_in_flight_does_not_get_the_results_of_another) {
    begin();
    const Captured graph = capture([&] {
        fill();
        check();
    });
    for (std::uint64_t step = 1; step <= 8; ++step) {
        launch(graph, step);
    }
    const Done done = finished();
    ASSERT_EQ(done.size(), 8u);
    for (std::uint64_t step = 1; step <= 8; ++step) {
        EXPECT_TRUE(step == 1 || done[step - 1].order > done[step - 2].order) << "in the order of execution";
        EXPECT_EQ(done[step - 1].step_plus_one, step);
        EXPECT_EQ(done[step - 1].replay, step);
    }
}

TEST_F(CudaTensorsTest, F10_launches_that_nobody_announced_belong_to_no_step) {
    begin();
    const Captured graph = capture([&] { check(); });
    const vgpu::Stream other = engine->stream();
    launch(graph, 0);
    launch(graph, 4);
    launch(graph, 0);
    launch(graph, 5);
    launch(graph, 6, other); // what runs on the first stream could see its number
    launch(graph, 7, other);
    std::map<std::uint64_t, std::uint64_t> steps;
    for (const recording::TensorCheck& one : finished()) {
        steps[one.replay] = one.step_plus_one;
        EXPECT_EQ(one.phase, one.step_plus_one == 0 ? Phase::none : Phase::decode);
    }
    const std::map<std::uint64_t, std::uint64_t> right = {{1, 0}, {2, 4}, {3, 0}, {4, 5}, {5, 0}, {6, 7}};
    EXPECT_EQ(steps, right);
    EXPECT_EQ(cuda_tensors->pending(), 0u);
}

TEST_F(CudaTensorsTest, a_launch_that_failed_is_not_waited_for) {
    begin();
    const Captured graph = capture([&] { check(); });
    graph.checks->announce(stream, {3, Phase::decode, 0});
    EXPECT_EQ(cuda_tensors->pending(), 1u);
    graph.checks->withdraw();
    graph.checks->withdraw();
    EXPECT_EQ(cuda_tensors->pending(), 0u);
    launch(graph, 4);
    const Done done = finished();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].step_plus_one, 4u);
}

TEST_F(CudaTensorsTest, M3_of_ten_thousand_replays_every_result_is_read_or_counted_as_unread) {
    vgpu::Config config;
    config.keep_operations = 1000;
    begin(VirtualKernels::How::definition, {any_image}, config);
    const Captured graph = capture([&] {
        fill();
        check();
        check();
    });
    std::uint64_t read = 0;
    std::map<std::uint64_t, int> seen;
    for (std::uint64_t replay = 1; replay <= 10'000; ++replay) {
        launch(graph, replay);
        if (replay % 100 == 0) {
            vgpu::run_dry();
        }
        if (replay % 700 == 0 || (replay > 5000 && replay < 5300)) { // hardly ever, and now and then closely
            for (const recording::TensorCheck& one : collect()) {
                ++read;
                EXPECT_EQ(one.step_plus_one, one.replay) << "never mixed";
                ++seen[one.replay];
            }
        }
    }
    for (const recording::TensorCheck& one : finished()) {
        ++read;
        ++seen[one.replay];
    }
    const CapturedTensors::Counts counts = graph.checks->counts();
    EXPECT_EQ(counts.read, read);
    EXPECT_EQ(counts.read + counts.unread, 20'000u);
    EXPECT_EQ(counts.pending, 0u);
    EXPECT_EQ(cuda_tensors->dropped(), counts.unread);
    EXPECT_GT(read, 2u * CapturedTensors::slots_of_site);
    EXPECT_GT(counts.unread, 0u);
    for (const auto& [replay, times] : seen) {
        EXPECT_LE(times, 2) << replay;
    }
}

TEST_F(CudaTensorsTest, F3_the_first_check_of_all_may_be_inside_a_global_capture) {
    begin();
    const std::uint64_t modules = vgpu::calls("cuModuleLoadData");
    const Captured graph = capture([&] { check(); }, vgpu::CaptureMode::global);
    EXPECT_EQ(vgpu::calls("cuModuleLoadData"), modules + 1) << "loaded there, and it disturbed nothing";
    launch(graph, 1);
    EXPECT_EQ(finished().size(), 1u);
}

TEST_F(CudaTensorsTest, logits_carry_their_largest_and_margin) {
    begin(VirtualKernels::How::own_text);
    set(1);
    fill();
    PLUMB_TENSOR(recorder, queue, Brick::lm_head, of_buffer(), logits);
    const Done done = finished();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].argmax, count / 4 - 1);
    EXPECT_EQ(done[0].margin, 1.0);
}

TEST_F(CudaTensorsTest, built_without_nvcc_it_says_so_and_touches_nothing) {
    begin(VirtualKernels::How::definition, {nullptr});
    check();
    EXPECT_EQ(checks->dropped_checks(), 1u);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find("built without nvcc"), std::string::npos) << said[0];
    EXPECT_EQ(kernels->runs(), 0u);
}

TEST_F(CudaTensorsTest, a_stream_without_a_driver_is_never_read_by_the_host) {
    begin();
    record::TensorCall call;
    call.queue = cuda(reinterpret_cast<CUstream_st*>(0x1234)); // no such stream
    EXPECT_TRUE(cuda_tensors->takes(call));
    call.queue = host;
    EXPECT_FALSE(cuda_tensors->takes(call));
}

TEST_F(CudaTensorsTest, each_call_that_fails_once_gives_no_wrong_number_and_leaks_nothing) {
    begin();
    set(2);
    fill();
    check();
    check(); // what is made once is there
    EXPECT_EQ(finished().size(), 2u);
    const vgpu::Alive before = vgpu::alive();
    for (std::uint64_t nth = 1; nth <= 24; ++nth) {
        vgpu::fail("*", vgpu::CuResult::unknown, nth);
        const std::uint64_t dropped = checks->dropped_checks();
        check();
        const Done early = collect();
        vgpu::clear_failures();
        const Done late = finished();
        const std::size_t results = early.size() + late.size();
        EXPECT_EQ(results + (checks->dropped_checks() - dropped), 1u) << nth;
        for (const recording::TensorCheck& one : late) {
            expect_exact(one, 2);
        }
    }
    EXPECT_EQ(vgpu::alive().total(), before.total());
    EXPECT_EQ(cuda_tensors->pending(), 0u);
}

TEST_F(CudaTensorsTest, each_call_of_a_contexts_first_check_may_fail_and_the_next_one_succeeds) {
    begin();
    context_gone = true;
    for (std::uint64_t nth = 1; nth <= 20; ++nth) {
        SCOPED_TRACE(nth);
        vgpu::Context context = nullptr;
        ASSERT_EQ(engine->cu.ctx_create(&context, 0, 0), vgpu::CuResult::success);
        ASSERT_EQ(engine->cu.mem_alloc(&buffer, count * sizeof(float)), vgpu::CuResult::success);
        stream = engine->stream();
        queue = cuda(stream);
        const vgpu::Alive before = vgpu::alive();
        const std::uint64_t dropped = checks->dropped_checks();
        vgpu::fail("*", vgpu::CuResult::unknown, nth);
        check();
        vgpu::clear_failures();
        const vgpu::Alive after = vgpu::alive();
        EXPECT_LE(after.modules, before.modules + 1);
        EXPECT_LE(after.host_allocations, before.host_allocations + 1);
        EXPECT_EQ(finished().size() + (checks->dropped_checks() - dropped), 1u);
        check();
        EXPECT_EQ(finished().size(), 1u);
        EXPECT_EQ(vgpu::alive().modules, before.modules + 1) << "one, and it stays";
        EXPECT_EQ(vgpu::alive().host_allocations, before.host_allocations + 1);
        engine->cu.ctx_destroy(context);
        engine->cu.ctx_push_current(engine->context);
    }
}

TEST_F(CudaTensorsTest, each_call_of_a_check_in_a_capture_may_fail_and_the_capture_goes_on) {
    begin();
    check();
    (void)finished();
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
        SCOPED_TRACE(nth);
        vgpu::Graph graph = nullptr;
        vgpu::GraphExec exec = nullptr;
        ASSERT_EQ(engine->cu.stream_begin_capture(stream, vgpu::CaptureMode::relaxed), vgpu::CuResult::success);
        fill();
        vgpu::fail("*", vgpu::CuResult::unknown, nth);
        check();
        vgpu::clear_failures();
        check();
        ASSERT_EQ(engine->cu.stream_end_capture(stream, &graph), vgpu::CuResult::success);
        ASSERT_EQ(engine->cu.graph_instantiate(&exec, graph, 0), vgpu::CuResult::success);
        set(static_cast<float>(nth));
        EXPECT_EQ(engine->cu.graph_launch(exec, stream), vgpu::CuResult::success);
        const Done done = finished();
        EXPECT_GE(done.size(), 1u);
        for (const recording::TensorCheck& one : done) {
            expect_exact(one, static_cast<float>(nth));
        }
        engine->cu.graph_exec_destroy(exec);
        engine->cu.graph_destroy(graph);
    }
}

TEST_F(CudaTensorsTest, captures_that_come_to_nothing_give_their_slots_back) {
    begin();
    check();
    (void)finished();
    const std::size_t pinned = vgpu::alive().host_allocations;
    for (int i = 0; i < 1000; ++i) {
        vgpu::Graph graph = nullptr;
        unsigned long long id = 0;
        vgpu::CaptureStatus status{};
        ASSERT_EQ(engine->cu.stream_begin_capture(stream, vgpu::CaptureMode::relaxed), vgpu::CuResult::success);
        check();
        const backends::cuda::Driver& driver = *backends::cuda::driver();
        ASSERT_EQ(driver.capture_info(stream, &status, &id, &graph, nullptr, nullptr, nullptr),
                  vgpu::CuResult::success);
        ASSERT_EQ(engine->cu.stream_end_capture(stream, &graph), vgpu::CuResult::success);
        discard_captured_tensors(id);
        engine->cu.graph_destroy(graph);
    }
    EXPECT_LE(vgpu::alive().host_allocations, pinned + 1);
    EXPECT_EQ(checks->dropped_checks(), 0u);
}

TEST_F(CudaTensorsTest, sites_that_got_less_scratch_than_they_asked_for_are_found_again) {
    begin();
    Result<TensorDevice*> found = TensorDevice::of(*backends::cuda::driver(), stream, any_image);
    ASSERT_TRUE(found);
    TensorDevice& device = **found;
    std::vector<DeviceSite> large;
    do {
        large.push_back(*device.take_site(most_blocks, default_buckets));
    } while (large.back().blocks == most_blocks);
    EXPECT_EQ(large.back().blocks, 1u) << "scratch is used up";
    device.return_site(large.back());
    for (std::uint32_t i = 0; i <= most_sites; ++i) {
        const std::uint32_t blocks = i % 3 == 0 ? most_blocks : i % 3 == 1 ? 1 : most_blocks - i % 100;
        const Result<DeviceSite> site = device.take_site(blocks, default_buckets);
        ASSERT_TRUE(site) << i;
        ASSERT_EQ(site->number, large.back().number);
        device.return_site(*site);
    }
    device.return_site(large.front());
    EXPECT_EQ(device.take_site(most_blocks, default_buckets)->number, large.front().number) << "the one with scratch";
    EXPECT_EQ(device.take_site(most_blocks, default_buckets)->number, large.back().number);
}

TEST_F(CudaTensorsTest, where_no_site_is_left_any_that_was_given_back_will_do) {
    begin();
    Result<TensorDevice*> found = TensorDevice::of(*backends::cuda::driver(), stream, any_image);
    ASSERT_TRUE(found);
    const DeviceSite large = *(*found)->take_site(most_blocks, default_buckets);
    for (std::uint32_t i = 1; i < most_sites; ++i) {
        ASSERT_TRUE((*found)->take_site(1, default_buckets)) << i;
    }
    const Result<DeviceSite> none = (*found)->take_site(1, default_buckets);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::out_of_memory);
    (*found)->return_site(large);
    const Result<DeviceSite> again = (*found)->take_site(1, default_buckets);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->number, large.number);
}

TEST_F(CudaTensorsTest, a_launch_is_announced_by_a_thread_without_a_context_too) {
    begin();
    const Captured graph = capture([&] {
        fill();
        check();
    });
    vgpu::fail("cuLaunchKernel", vgpu::CuResult::invalid_context, 1); // as the driver answers such a thread
    launch(graph, 7);
    vgpu::clear_failures();
    const Done done = finished();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].step_plus_one, 7u);
}

TEST_F(CudaTensorsTest, the_end_of_the_session_leaves_graphs_that_can_still_be_replayed) {
    begin();
    const Captured graph = capture([&] {
        fill();
        check();
    });
    launch(graph, 1);
    EXPECT_EQ(finished().size(), 1u);
    RecorderAccess::connect_tensors(recorder, nullptr);
    checks.reset();
    launch(graph, 2);
    vgpu::run_dry();
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    EXPECT_EQ(graph.checks->counts().pending, 0u);
}

TEST_F(CudaTensorsTest, a_context_that_is_destroyed_takes_its_results_along) {
    begin();
    context_gone = true;
    vgpu::Context context = nullptr;
    ASSERT_EQ(engine->cu.ctx_create(&context, 0, 0), vgpu::CuResult::success);
    const vgpu::Stream there = engine->stream();
    const Queue there_queue = cuda(there);
    vgpu::DevicePointer memory = 0;
    ASSERT_EQ(engine->cu.mem_alloc(&memory, 4096), vgpu::CuResult::success);
    PLUMB_TENSOR(recorder, there_queue, Brick::attention, tensor(reinterpret_cast<void*>(memory), DType::f32, {1024}));
    EXPECT_EQ(cuda_tensors->pending(), 1u);
    ASSERT_EQ(engine->cu.ctx_destroy(context), vgpu::CuResult::success);
    EXPECT_TRUE(collect().empty());
    EXPECT_EQ(cuda_tensors->pending(), 0u);
    EXPECT_EQ(cuda_tensors->dropped(), 1u);
}

TEST_F(CudaTensorsTest, after_a_sticky_error_no_call_is_made_any_more) {
    begin();
    context_gone = true;
    check();
    (void)finished();
    vgpu::lose_device_at("cuLaunchKernel", vgpu::CuResult::illegal_address);
    check();
    const std::uint64_t launches = vgpu::calls("cuLaunchKernel");
    check();
    (void)collect();
    EXPECT_EQ(vgpu::calls("cuLaunchKernel"), launches);
    EXPECT_EQ(checks->dropped_checks(), 2u);
}

TEST_F(CudaTensorsTest, threads_check_on_streams_of_their_own) {
    begin();
    set(4);
    fill();
    vgpu::run_dry();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            engine->cu.ctx_push_current(engine->context);
            const Queue own = cuda(engine->stream());
            for (int i = 0; i < 50; ++i) {
                PLUMB_TENSOR(recorder, own, Brick::attention, of_buffer());
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const Done done = finished();
    EXPECT_EQ(done.size(), 200u);
    for (const recording::TensorCheck& one : done) {
        expect_exact(one, 4);
    }
}

} // namespace
} // namespace plumb::fingerprint

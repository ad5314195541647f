// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

const std::vector<std::string> none;

TEST(Failures, strike_the_nth_call_once_and_do_nothing_else) {
    Engine engine;
    const Stream stream = engine.stream();
    fail("cuLaunchKernel", CuResult::launch_out_of_resources, 2);
    EXPECT_FALSE(all_failures_struck());
    EXPECT_EQ(engine.launch("k", stream), ok);
    EXPECT_EQ(engine.launch("k", stream), CuResult::launch_out_of_resources);
    EXPECT_EQ(engine.launch("k", stream), ok);
    EXPECT_TRUE(all_failures_struck());
    EXPECT_EQ(operation_count(), 2u);
}

TEST(Failures, of_releasing_calls_release_all_the_same) {
    Engine engine;
    const Event event = engine.event();
    fail("cuEventDestroy", CuResult::unknown);
    EXPECT_EQ(engine.cu.event_destroy(event), CuResult::unknown);
    EXPECT_EQ(alive().events, 0u);
}

TEST(Failures, of_end_capture_end_it) {
    Engine engine;
    const Stream stream = engine.stream();
    engine.cu.stream_begin_capture(stream, CaptureMode::relaxed);
    engine.launch("k", stream);
    fail("cuStreamEndCapture", CuResult::out_of_memory);
    Graph graph = nullptr;
    EXPECT_EQ(engine.cu.stream_end_capture(stream, &graph), CuResult::out_of_memory);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(alive().captures, 0u);
    EXPECT_EQ(alive().graphs, 0u);
}

TEST(Failures, memory_runs_out_after_n_executables) {
    Config config;
    config.exec_limit = 2;
    Engine engine(config);
    Graph graph = nullptr;
    engine.cu.graph_create(&graph, 0);
    GraphExec execs[3] = {};
    EXPECT_EQ(engine.cu.graph_instantiate(&execs[0], graph, 0), ok);
    EXPECT_EQ(engine.cu.graph_instantiate(&execs[1], graph, 0), ok);
    EXPECT_EQ(engine.cu.graph_instantiate(&execs[2], graph, 0), CuResult::out_of_memory);
    engine.cu.graph_exec_destroy(execs[0]);
    EXPECT_EQ(engine.cu.graph_instantiate(&execs[2], graph, 0), ok);
}

TEST(Failures, memory_runs_out_at_the_device_limit) {
    Config config;
    config.memory_bytes = 1'000;
    Engine engine(config);
    DevicePointer first = 0, second = 0;
    EXPECT_EQ(engine.cu.mem_alloc(&first, 800), ok);
    EXPECT_EQ(engine.cu.mem_alloc(&second, 800), CuResult::out_of_memory);
    engine.cu.mem_free(first);
    EXPECT_EQ(engine.cu.mem_alloc(&second, 800), ok);
}

TEST(Failures, a_lost_device_answers_every_call_with_its_error) {
    Engine engine;
    const Stream stream = engine.stream();
    lose_device_at("cuLaunchKernel", CuResult::launch_failed, 1);
    EXPECT_EQ(engine.launch("k", stream), CuResult::launch_failed);
    EXPECT_EQ(engine.cu.stream_query(stream), CuResult::launch_failed);
    EXPECT_EQ(engine.cu.stream_destroy(stream), CuResult::launch_failed);
    EXPECT_EQ(alive().streams, 1u);
}

TEST(Failures, slow_calls_cost_more) {
    Engine engine;
    const Stream stream = engine.stream();
    const auto cost_of_launch = [&] {
        const auto before = now_ns();
        engine.launch("k", stream);
        return now_ns() - before;
    };
    const auto usual = cost_of_launch();
    slow("cuLaunchKernel", 500'000);
    EXPECT_EQ(cost_of_launch(), usual + 500'000);
    EXPECT_EQ(cost_of_launch(), usual);
    cost("cuLaunchKernel", 9'000);
    EXPECT_EQ(cost_of_launch(), usual - Config{}.launch_ns + 9'000);
}

TEST(Handles, are_given_out_again_and_old_ones_noticed) {
    Engine engine;
    const Event first = engine.event();
    engine.cu.event_destroy(first);
    EXPECT_EQ(engine.cu.event_query(first), CuResult::invalid_handle);
    ASSERT_EQ(errors().size(), 1u);
    EXPECT_EQ(engine.event(), first);
    EXPECT_EQ(engine.cu.event_query(first), ok);
    const Stream stream = engine.stream();
    EXPECT_EQ(engine.cu.event_query(reinterpret_cast<Event>(stream)), CuResult::invalid_handle);
}

TEST(Ledger, counts_calls_by_thread_and_synchronising_ones) {
    Engine engine;
    const Stream stream = engine.stream();
    std::thread::id other;
    std::thread([&] {
        other = std::this_thread::get_id();
        engine.cu.ctx_push_current(engine.context);
        engine.cu.stream_query(stream);
        engine.cu.stream_query(stream);
    }).join();
    engine.cu.stream_synchronize(stream);
    EXPECT_EQ(calls("cuStreamQuery"), 2u);
    EXPECT_EQ(calls("cuStreamQuery", other), 2u);
    EXPECT_EQ(calls("cuStreamQuery", std::this_thread::get_id()), 0u);
    EXPECT_EQ(synchronising_calls(), 1u);
    EXPECT_EQ(synchronising_calls(other), 0u);
}

TEST(Ledger, names_what_leaked) {
    Engine engine;
    const std::string before = leaks();
    engine.stream();
    engine.event();
    engine.event();
    EXPECT_EQ(before, "1 context, 1 module");
    EXPECT_EQ(leaks(), "1 context, 1 stream, 2 events, 1 module");
}

TEST(Ledger, reports_two_threads_in_one_graph) {
    Engine engine;
    Graph graph = nullptr;
    engine.cu.graph_create(&graph, 0);
    std::size_t count = 0;
    engine.cu.graph_get_nodes(graph, nullptr, &count);
    Hold hold("cuGraphInstantiateWithFlags");
    std::thread other([&] {
        engine.cu.ctx_push_current(engine.context);
        GraphExec exec = nullptr;
        engine.cu.graph_instantiate(&exec, graph, 0);
    });
    hold.wait_until_inside();
    EXPECT_EQ(errors(), none);
    engine.cu.graph_get_nodes(graph, nullptr, &count);
    EXPECT_EQ(errors().size(), 1u);
    hold.release();
    other.join();
    engine.cu.graph_get_nodes(graph, nullptr, &count);
    EXPECT_EQ(errors().size(), 1u);
}

TEST(Ledger, reports_driver_calls_from_host_functions) {
    Engine engine;
    const Stream stream = engine.stream();
    static EngineDriver cu;
    cu = engine.cu;
    static CuResult answer;
    engine.cu.launch_host_func(
        stream,
        [](void*) {
            Context context = nullptr;
            answer = cu.ctx_get_current(&context);
        },
        nullptr);
    run_dry();
    EXPECT_EQ(answer, CuResult::not_permitted);
    EXPECT_EQ(errors().size(), 1u);
}

TEST(Ledger, keeps_no_more_operations_than_asked) {
    Config config;
    config.keep_operations = 10;
    Engine engine(config);
    const Stream stream = engine.stream();
    for (int i = 0; i < 25; ++i) {
        engine.launch("k", stream);
    }
    EXPECT_EQ(operation_count(), 10u);
}

TEST(Clock, is_the_same_for_the_profiler_and_moves_only_when_told) {
    Engine engine;
    const auto before = now_ns();
    EXPECT_EQ(host_clock().now_ns(), before);
    advance(1'234);
    EXPECT_EQ(host_clock().now_ticks(), static_cast<std::uint64_t>(before + 1'234));
    EXPECT_EQ(globaltimer_ns(before, 0) % Config{}.globaltimer_tick_ns, 0u);
    EXPECT_EQ(device_ns(before, 0), static_cast<double>(before + Config{}.clock_offset_ns));
}

TEST(RealTime, runs_host_functions_without_driver_calls) {
    Config config;
    config.time = Time::real_time;
    Engine engine(config);
    static std::atomic<bool> ran;
    ran = false;
    const Stream stream = engine.stream();
    engine.cu.launch_host_func(
        stream,
        [](void*) {
            ran = true;
            ran.notify_all();
        },
        nullptr);
    ran.wait(false);
    EXPECT_EQ(engine.cu.stream_synchronize(stream), ok);
    EXPECT_LE(operations()[0].end_ns, now_ns());
}

TEST(Contexts, take_everything_of_theirs_along) {
    Engine engine;
    Context context = nullptr;
    ASSERT_EQ(engine.cu.ctx_create(&context, 0, 0), ok);
    const Stream stream = engine.stream();
    engine.event();
    EXPECT_EQ(engine.cu.ctx_destroy(context), ok);
    EXPECT_EQ(alive().streams, 0u);
    EXPECT_EQ(alive().events, 0u);
    EXPECT_EQ(engine.cu.stream_query(stream), CuResult::invalid_handle);
}

TEST(Contexts, wait_for_work_of_destroyed_streams_too) {
    Engine engine;
    kernel("k", {{}, 1'000'000, 1'000'000, {}});
    const Stream stream = engine.stream();
    engine.launch("k", stream);
    engine.cu.stream_destroy(stream);
    EXPECT_EQ(engine.cu.ctx_synchronize(), ok);
    EXPECT_GE(now_ns(), operations()[0].end_ns);
}

TEST(Threads, may_all_work_at_once) {
    Engine engine;
    std::atomic<int> runs = 0;
    kernel("k", {{}, 1'000, 3'000, [&runs](const KernelRun&) {
                     ++runs;
                 }});
    const Function function = engine.function("k");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            engine.cu.ctx_push_current(engine.context);
            Stream stream = nullptr;
            engine.cu.stream_create(&stream, stream_non_blocking);
            for (int i = 0; i < 50; ++i) {
                engine.cu.stream_begin_capture(stream, CaptureMode::thread_local_mode);
                for (int k = 0; k < 3; ++k) {
                    engine.cu.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
                }
                Graph graph = nullptr;
                GraphExec exec = nullptr;
                EXPECT_EQ(engine.cu.stream_end_capture(stream, &graph), ok);
                EXPECT_EQ(engine.cu.graph_instantiate(&exec, graph, 0), ok);
                EXPECT_EQ(engine.cu.graph_launch(exec, stream), ok);
                engine.cu.graph_exec_destroy(exec);
                engine.cu.graph_destroy(graph);
            }
            engine.cu.stream_synchronize(stream);
            engine.cu.stream_destroy(stream);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(runs, 4 * 50 * 3);
    EXPECT_EQ(errors(), none);
    EXPECT_EQ(leaks(), "1 context, 1 module");
}

} // namespace
} // namespace plumb::vgpu

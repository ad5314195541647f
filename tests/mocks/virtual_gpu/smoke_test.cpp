// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

TEST(VirtualGpu, runs_kernels_in_a_stream_and_times_them_by_events) {
    Engine engine;
    kernel("gemm", {{}, 10'000, 10'000, {}});
    const Stream stream = engine.stream();
    const Event begin = engine.event(), end = engine.event();
    ASSERT_EQ(engine.cu.event_record(begin, stream), CuResult::success);
    ASSERT_EQ(engine.launch("gemm", stream), CuResult::success);
    ASSERT_EQ(engine.cu.event_record(end, stream), CuResult::success);
    EXPECT_EQ(engine.cu.event_query(end), CuResult::not_ready);
    ASSERT_EQ(engine.cu.stream_synchronize(stream), CuResult::success);
    float ms = 0;
    ASSERT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), CuResult::success);
    const auto done = operations();
    ASSERT_EQ(done.size(), 3u);
    EXPECT_STREQ(done[1].name, "gemm");
    EXPECT_EQ(done[1].end_ns - done[1].start_ns, 10'000);
    EXPECT_NEAR(ms * 1e6, static_cast<double>(done[2].start_ns - done[0].start_ns), 32);
}

TEST(VirtualGpu, captures_instantiates_and_replays) {
    Engine engine;
    const Stream stream = engine.stream();
    int runs = 0;
    kernel("gemm", {{sizeof(int)}, 10'000, 10'000, [&runs](const KernelRun& run) {
                        runs += run.param<int>(0);
                    }});
    int add = 3;
    void* params[] = {&add};
    ASSERT_EQ(engine.cu.stream_begin_capture(stream, CaptureMode::relaxed), CuResult::success);
    ASSERT_EQ(engine.launch("gemm", stream, params), CuResult::success);
    ASSERT_EQ(engine.launch("gemm", stream, params), CuResult::success);
    Graph graph = nullptr;
    ASSERT_EQ(engine.cu.stream_end_capture(stream, &graph), CuResult::success);
    GraphExec exec = nullptr;
    ASSERT_EQ(engine.cu.graph_instantiate(&exec, graph, 0), CuResult::success);
    ASSERT_EQ(engine.cu.graph_launch(exec, stream), CuResult::success);
    EXPECT_EQ(runs, 0);
    run_dry();
    EXPECT_EQ(runs, 6);
    engine.cu.graph_exec_destroy(exec);
    engine.cu.graph_destroy(graph);
    engine.cu.stream_destroy(stream);
    EXPECT_EQ(synchronising_calls(), 0u);
    EXPECT_EQ(errors(), std::vector<std::string>{});
}

} // namespace
} // namespace plumb::vgpu

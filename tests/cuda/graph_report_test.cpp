// SPDX-License-Identifier: Apache-2.0
// Captured decode steps on the virtual GPU: bricks inside replays, life-cycle rows, and plain graphs left alone.
#include <thread>

#include "answers/replays/replays.hpp"
#include "engine.hpp"

namespace plumb::cuda_test {
namespace {

constexpr int captured_layers = 6;

std::uint64_t instrumented(Engine& engine) {
    EXPECT_TRUE(engine.profiler().flush().ok());
    const Result<ReplayReport> replays = read_replays({Engine::path()});
    return replays.ok() && !replays->graphs.empty() ? replays->graphs[0].instrumented : 0;
}

/// Replays until so many were instrumented: the twin is built by a thread of its own, in its own time.
std::uint64_t replay_until(Engine& engine, CudaGraphCache& cache, std::uint64_t wanted) {
    std::uint64_t replays = 0;
    while (replays < 20'000) {
        for (int i = 0; i < 64; ++i, ++replays) {
            PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1), kv_length(replays));
            const Result<bool> done = cache.replay(graph_key, engine.stream());
            EXPECT_TRUE(done.ok() && *done);
            engine.wait();
        }
        if (instrumented(engine) >= wanted) {
            return replays;
        }
        std::this_thread::yield();
    }
    ADD_FAILURE() << "no replay was instrumented " << wanted << " times";
    return replays;
}

TEST(GraphReport, F3_bricks_are_timed_inside_replays_of_the_graph_that_ships) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    Engine engine(config, "warmup=0,graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
    engine.forward(captured_layers, layer_work);
    ASSERT_TRUE(cache.end_capture(graph_key).ok());
    replay_until(engine, cache, 40);
    const Report report = engine.report();
    double sum = 0;
    for (const auto& [brick, ns] : std::map<std::string, double>{
             {"rms_norm", 20'000}, {"attention", 90'000}, {"down_projection", 150'000}, {"lm_head", 640'000}}) {
        const Row* row = Engine::row_of(report, brick);
        ASSERT_NE(row, nullptr) << brick;
        EXPECT_EQ(row->source, "cuda_graph_event");
        EXPECT_EQ(row->basis, RowBasis::replays);
        const double calls = brick == "lm_head" ? 1 : captured_layers;
        EXPECT_NEAR(row->calls_per_step, calls, 1e-9);
        EXPECT_EQ(row->sites, row->sites_timed);
        const double gap = static_cast<double>(config.graph_gap_ns);
        EXPECT_NEAR(row->sum_per_step_ns / calls, ns + gap, gap + 64) << brick;
        sum += row->sum_per_step_ns;
    }
    EXPECT_GT(sum, captured_layers * 260'000.0 + 640'000.0);
    ASSERT_EQ(report.phases.size(), 1u);
    EXPECT_GE(report.phases[0].sampled_steps, 40u);
    ASSERT_TRUE(report.phases[0].device.has_value());
    EXPECT_FALSE(report.phases[0].device->in_graph_idle_per_step_ns.value.has_value());
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    EXPECT_EQ(vgpu::invalidations().size(), 0u);
}

TEST(GraphReport, T4_with_profiling_on_replays_stay_replays_and_nothing_waits) {
    Engine engine({}, "warmup=0,graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
    engine.forward(captured_layers, layer_work);
    ASSERT_TRUE(cache.end_capture(graph_key).ok());
    const std::uint64_t launches_before = vgpu::calls("cuLaunchKernel", std::this_thread::get_id());
    const std::uint64_t waits_before = vgpu::synchronising_calls();
    const std::uint64_t replays = replay_until(engine, cache, 8);
    EXPECT_EQ(vgpu::calls("cuLaunchKernel", std::this_thread::get_id()), launches_before) << "nothing ran eagerly";
    EXPECT_EQ(vgpu::calls("cuGraphLaunch", std::this_thread::get_id()), replays);
    EXPECT_EQ(vgpu::synchronising_calls() - waits_before, replays) << "the engine's own, one a step";
}

TEST(GraphReport, F11_every_key_has_a_row_with_the_devices_time) {
    Engine engine({}, "warmup=0,graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
    engine.forward(captured_layers, layer_work);
    ASSERT_TRUE(cache.end_capture(graph_key).ok());
    const std::uint64_t replays = replay_until(engine, cache, 20);
    EXPECT_FALSE(*cache.replay(99, engine.stream())) << "an eager step, counted with its reason";
    ASSERT_TRUE(engine.profiler().close().ok());
    const Result<ReplayReport> report = read_replays({Engine::path()});
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->graphs.size(), 2u);
    const ReplayRow& row = report->graphs[0];
    EXPECT_EQ(row.key, graph_key);
    EXPECT_EQ(row.captures, 1u);
    EXPECT_EQ(row.replays, replays);
    EXPECT_GE(row.instrumented, 20u);
    ASSERT_TRUE(row.device_ns.value.has_value()) << row.device_ns.reason;
    EXPECT_GT(*row.device_ns.value, captured_layers * 260'000.0 + 640'000.0);
    EXPECT_TRUE(row.unattributed.empty());
    ASSERT_EQ(report->graphs[1].eager_steps.size(), 1u);
    EXPECT_EQ(report->graphs[1].eager_steps[0].second, 1u);
}

} // namespace
} // namespace plumb::cuda_test

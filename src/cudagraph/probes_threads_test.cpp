// SPDX-License-Identifier: Apache-2.0
// Many threads with one set of probes: captures, launches, evictions and the drain at once. For ThreadSanitizer too.
#include <atomic>
#include <thread>

#include "cudagraph/graph_entry.hpp"
#include "cudagraph/probe_testing.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::cudagraph {
namespace {

constexpr int threads = 8;

TEST(ProbesThreads, eight_threads_capture_launch_and_evict_while_the_drain_collects) {
    ProbeOptions options;
    options.every = 4;
    ProbeBench bench({}, options);
    vgpu::Context context = nullptr;
    bench.engine.cu.ctx_get_current(&context);
    std::vector<vgpu::Stream> streams;
    std::vector<Queue> queues;
    const vgpu::Function kernel = bench.engine.function("kernel");
    for (int i = 0; i < threads; ++i) {
        streams.push_back(bench.engine.stream());
        queues.push_back(plumb::cuda(streams.back()));
    }
    std::atomic<int> running{threads};
    std::atomic<std::uint64_t> launches{0};
    const auto engine = [&](int self) {
        const vgpu::EngineDriver& cu = bench.engine.cu;
        cu.ctx_push_current(context);
        const vgpu::Stream stream = streams[static_cast<std::size_t>(self)];
        for (int round = 0; round < 12; ++round) {
            const auto key = static_cast<std::uint64_t>((self + round) % 5); // shared with other threads
            EXPECT_EQ(cu.stream_begin_capture(stream, vgpu::CaptureMode::relaxed), vgpu::CuResult::success);
            for (int i = 0; i < 3; ++i) {
                const Scope brick = bench.recorder.scope(queues[static_cast<std::size_t>(self)], Name{first_name});
                EXPECT_EQ(cu.launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                          vgpu::CuResult::success);
            }
            KnownGraph graph;
            EXPECT_EQ(cu.stream_end_capture(stream, &graph.graph), vgpu::CuResult::success);
            EXPECT_EQ(cu.graph_instantiate(&graph.exec, graph.graph, 0), vgpu::CuResult::success);
            const Result<std::shared_ptr<Probe>> probe = bench.probes->captured(key, graph.graph);
            EXPECT_TRUE(probe.ok());
            cu.graph_destroy(graph.graph);
            for (int i = 0; i < 40 && probe; ++i) {
                EXPECT_TRUE((*probe)->launch(graph.exec, stream).ok());
                launches.fetch_add(1, std::memory_order_relaxed);
                std::this_thread::yield();
            }
            if (round % 3 == 0) {
                bench.probes->evicted(key);
            }
            vgpu::run_dry();
            cu.graph_exec_destroy(graph.exec);
        }
        vgpu::Context popped = nullptr;
        cu.ctx_pop_current(&popped);
        running.fetch_sub(1);
    };
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back(engine, i);
    }
    while (running.load() != 0) {
        bench.collect();
        std::this_thread::yield();
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    for (std::uint64_t key = 0; key < 5; ++key) {
        bench.probes->evicted(key);
    }
    vgpu::run_dry();
    bench.collect();
    bench.settle();
    std::uint64_t replays = 0;
    std::uint64_t captures = 0;
    for (std::uint64_t key = 0; key < 5; ++key) {
        replays += bench.row(key).replays;
        captures += bench.row(key).captures;
    }
    EXPECT_EQ(replays, launches.load());
    EXPECT_EQ(captures, 12u * threads);
    EXPECT_EQ(vgpu::alive().execs, 0u);
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    EXPECT_TRUE(vgpu::invalidations().empty());
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

/// While one thread is inside a launch, others launch, capture and evict other keys.
TEST(ProbesThreads, a_launch_that_blocks_in_the_driver_holds_up_nobody_else) {
    ProbeBench bench;
    const auto capture = [&] {
        bench.begin_capture();
        bench.scope([&] { bench.kernel(20'000); });
        return bench.end_capture();
    };
    const KnownGraph first = capture();
    const KnownGraph second = capture();
    const KnownGraph third = capture();
    const auto blocked = bench.captured(1, first);
    const auto free = bench.captured(2, second);
    bench.settle();
    vgpu::Context context = nullptr;
    bench.engine.cu.ctx_get_current(&context);
    vgpu::Hold hold("cuGraphLaunch");
    std::thread launching([&] {
        bench.engine.cu.ctx_push_current(context);
        EXPECT_TRUE(blocked->launch(first.exec, bench.stream).ok());
    });
    hold.wait_until_inside();
    EXPECT_TRUE(free->launch(second.exec, bench.side).ok());
    const auto late = bench.captured(3, third);
    EXPECT_NE(late, nullptr);
    bench.probes->evicted(2);
    bench.probes->evicted(1); // of the very one that is being launched
    bench.collect();
    bench.settle();
    hold.release();
    launching.join();
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(ProbesThreads, the_worker_looks_at_a_graph_from_a_launch_until_it_is_at_rest) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 1);
    const auto probe = bench.captured(1, graph), idle = bench.captured(2, graph);
    const auto attended = [](const std::shared_ptr<Probe>& of) {
        return static_cast<const GraphEntry&>(*of).attended.load();
    };
    EXPECT_FALSE(attended(probe));
    bench.replay_until(*probe, graph, 400, [&] { return !bench.samples.empty(); });
    EXPECT_FALSE(bench.samples.empty());
    record::yield_until([&] { return !attended(probe); });
    EXPECT_FALSE(attended(probe));
    EXPECT_FALSE(attended(idle));
}

} // namespace
} // namespace plumb::cudagraph

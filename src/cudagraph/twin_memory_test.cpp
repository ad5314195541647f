// SPDX-License-Identifier: Apache-2.0
// Twins together take no more than they may, and make way for an engine that needs its memory.
#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

TEST(TwinMemory, C16_twins_of_many_graphs_hold_the_bound_and_each_has_its_turn) {
    constexpr std::uint64_t graphs = 8;
    ProbeOptions options;
    options.every = 2;
    options.samples_per_turn = 4;
    options.max_twin_bytes = 300'000; // three of them
    ProbeBench bench({}, options);
    std::vector<KnownGraph> known;
    std::vector<std::shared_ptr<Probe>> probes;
    for (std::uint64_t key = 0; key < graphs; ++key) {
        known.push_back(capture_scopes(bench));
        probes.push_back(bench.captured(key, known.back()));
    }
    std::size_t most = 0;
    for (int round = 0; round < 120; ++round) {
        for (std::uint64_t key = 0; key < graphs; ++key) {
            ASSERT_TRUE(bench.replay(*probes[key], known[key]).ok());
        }
        bench.settle();
        most = std::max(most, vgpu::alive().execs - graphs);
        ASSERT_LE(vgpu::alive().execs - graphs, 3u) << "in round " << round;
    }
    EXPECT_EQ(most, 3u) << "the bound was never reached";
    std::size_t given_up = 0;
    for (std::uint64_t key = 0; key < graphs; ++key) {
        const recording::GraphInfo row = bench.row(key);
        EXPECT_GE(row.instrumented, options.samples_per_turn) << key << ": " << row.twin_reason;
        given_up += row.twin_reason.find("other graphs had their turn") != std::string::npos ? 1 : 0;
    }
    EXPECT_GE(given_up, graphs - 3);
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(TwinMemory, a_graph_whose_twin_is_never_replayed_again_does_not_keep_others_from_theirs) {
    ProbeOptions options;
    options.max_twin_bytes = 100'000; // one
    ProbeBench bench({}, options);
    const KnownGraph first = capture_scopes(bench);
    const KnownGraph second = capture_scopes(bench);
    const auto idle = bench.captured(1, first);
    const auto busy = bench.captured(2, second);
    bench.replay_until(*idle, first, 5, [] { return false; });
    bench.settle();
    ASSERT_EQ(bench.row(1).twin, "event") << bench.row(1).twin_reason;
    bench.replay_until(*busy, second, 20, [] { return false; });
    EXPECT_EQ(bench.row(2).instrumented, 0u) << "the first one had no turn yet";
    vgpu::advance(2'000'000'000);
    bench.settle();
    bench.replay_until(*busy, second, 400, [&] { return bench.row(2).instrumented > 0; });
    EXPECT_GT(bench.row(2).instrumented, 0u);
    EXPECT_EQ(vgpu::alive().execs, 3u);
}

TEST(TwinMemory, a_twin_larger_than_all_may_be_is_not_built_and_the_row_says_so) {
    ProbeOptions options;
    options.max_twin_bytes = 50'000;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_scopes(bench);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 20, [] { return false; });
    EXPECT_NE(bench.row(7).twin_reason.find("1 MiB"), std::string::npos) << bench.row(7).twin_reason;
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

TEST(TwinMemory, C16_twins_make_way_when_the_engine_fills_its_memory) {
    vgpu::Config config;
    config.memory_bytes = std::size_t{128} << 20;
    ProbeBench bench(config);
    const KnownGraph graph = capture_scopes(bench);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 2; });
    ASSERT_EQ(vgpu::alive().execs, 2u);
    vgpu::DevicePointer memory = 0;
    ASSERT_EQ(bench.engine.cu.mem_alloc(&memory, std::size_t{127} << 20), CuResult::success);
    vgpu::advance(2'000'000'000);
    bench.settle();
    bench.settle();
    EXPECT_EQ(vgpu::alive().execs, 1u);
    EXPECT_NE(bench.row(7).twin_reason.find("memory of the device is short"), std::string::npos)
        << bench.row(7).twin_reason;
    EXPECT_EQ(bench.row(7).twin, "event") << "its samples are in the recording";
    const KnownGraph late = capture_scopes(bench);
    const auto second = bench.captured(8, late);
    bench.replay_until(*second, late, 40, [] { return false; });
    EXPECT_EQ(bench.row(8).instrumented, 0u);
    EXPECT_NE(bench.row(8).twin_reason.find("memory of the device is short"), std::string::npos)
        << bench.row(8).twin_reason;
    EXPECT_EQ(vgpu::alive().execs, 2u);
    EXPECT_TRUE(bench.replay(*probe, graph).ok());
}

} // namespace
} // namespace plumb::cudagraph

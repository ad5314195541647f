// SPDX-License-Identifier: Apache-2.0
// Probes on devices that are not as simple as the virtual GPU is by default: clocks that change, stamps that wait, replays
// that start later.
#include <cmath>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

/// `count` bricks of one kernel each.
KnownGraph capture_chain(ProbeBench& bench, int count, std::int64_t kernel_ns) {
    bench.begin_capture();
    for (int i = 0; i < count; ++i) {
        bench.scope([&] { bench.kernel(kernel_ns); });
    }
    return bench.end_capture();
}

/// Of a kernel with the gap before it: from stamp to stamp, without what stamps cost.
void expect_kernels(const ProbeBench& bench, std::int64_t kernel_ns, double tolerance) {
    ASSERT_FALSE(bench.samples.empty());
    for (const drain::DeviceSample& sample : bench.samples) {
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), static_cast<double>(kernel_ns + 1'000),
                    tolerance)
            << sample.name;
    }
}

class CalibrationUnder : public testing::TestWithParam<ProbeKind> {
  protected:
    static double true_cost() { return GetParam() == ProbeKind::stamp ? 1'700 : 800; }
    /// After `meanwhile` the device is busy with it, when the twin is built and stamps are calibrated. Then 12 samples.
    template <class Meanwhile>
    void check(vgpu::Config config, Meanwhile meanwhile) {
        ProbeOptions options;
        options.kind = GetParam();
        ProbeBench bench(config, options);
        const KnownGraph graph = capture_chain(bench, 20, 10'000);
        const auto probe = bench.captured(7, graph);
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
        meanwhile(bench);
        ASSERT_TRUE(probe->launch(graph.exec, bench.stream).ok()); // the twin is wanted now
        bench.settle();
        bench.settle();
        bench.replay_until(*probe, graph, 600, [&] { return bench.samples.size() >= 240; });
        EXPECT_NEAR(bench.row(7).site_cost_ns, true_cost(), 50);
        expect_kernels(bench, 10'000, 64 + 100);
    }
};

TEST_P(CalibrationUnder, idle_clocks_that_rise_meanwhile_moves_no_sample) {
    vgpu::Config config;
    config.idle_slowdown = 4;
    config.idle_after_ns = 400'000;
    config.boost_after_ns = 350'000;
    check(config, [](ProbeBench&) { vgpu::advance(5'000'000); });
}

TEST_P(CalibrationUnder, C3_kernels_that_leave_no_place_moves_no_sample) {
    vgpu::Config config;
    config.sm_slots = 1;
    check(config, [](ProbeBench& bench) {
        vgpu::KernelModel model;
        model.min_ns = 3'000;
        model.max_ns = 30'000;
        vgpu::kernel("of another engine", model);
        const vgpu::Stream other = bench.engine.stream();
        for (int i = 0; i < 200; ++i) {
            ASSERT_EQ(bench.engine.launch("of another engine", other), CuResult::success);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Kinds, CalibrationUnder, testing::Values(ProbeKind::event, ProbeKind::stamp));

TEST(ProbesDevice, C3_a_stamp_that_costs_more_before_a_kernel_is_seen_in_the_replays_themselves) {
    vgpu::Config config;
    config.stamp_before_work_ns = 600;
    ProbeOptions options;
    options.kind = ProbeKind::event;
    ProbeBench bench(config, options);
    const KnownGraph graph = capture_chain(bench, 20, 10'000);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 2'000, [&] {
        bench.settle();
        return bench.row(7).instrumented >= 40;
    });
    bench.samples.clear();
    bench.replay_until(*probe, graph, 600, [&] { return bench.samples.size() >= 100; });
    EXPECT_NEAR(bench.row(7).site_cost_ns, 1'400, 50);
    expect_kernels(bench, 10'000, 64 + 100);
}

TEST(ProbesDevice, C19_a_twin_that_starts_later_makes_no_plain_replay_shorter) {
    vgpu::Config config;
    config.graph_start_node_ns = 200;
    ProbeOptions options;
    options.kind = ProbeKind::event;
    ProbeBench bench(config, options);
    const KnownGraph graph = capture_chain(bench, 40, 10'000);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 2'000, [&] {
        bench.settle();
        return bench.row(7).instrumented >= 40;
    });
    const recording::GraphInfo row = bench.row(7);
    EXPECT_NEAR(row.plain_span_ns, 40 * 11'000 - 1'000, 1'500) << "from the first kernel to the last";
    EXPECT_LE(std::abs(row.closure), 0.005);
}

TEST(ProbesDevice, C4_stamps_of_a_coarse_clock_are_not_chosen_for_short_bricks) {
    vgpu::Config config;
    config.stamp_node_ns = 300; // cheaper than an event
    config.globaltimer_tick_ns = 1'000;
    for (const bool shorts : {true, false}) {
        ProbeBench bench(config);
        const KnownGraph graph = capture_chain(bench, 20, shorts ? 4'000 : 60'000);
        const auto probe = bench.captured(7, graph);
        bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 80; });
        EXPECT_EQ(bench.row(7).twin, shorts ? "event" : "stamp") << bench.row(7).twin_reason;
        EXPECT_EQ(bench.row(7).tick_ns, shorts ? 32 : 1'000);
    }
}

TEST(ProbesDevice, C4_a_clock_that_changes_its_tick_is_learnt_anew_and_left_where_it_is_too_coarse) {
    vgpu::Config config;
    config.stamp_node_ns = 300;
    ProbeBench bench(config);
    const KnownGraph graph = capture_chain(bench, 20, 4'000);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 80; });
    EXPECT_EQ(bench.row(7).twin, "stamp") << bench.row(7).twin_reason;
    EXPECT_EQ(bench.row(7).tick_ns, 32);
    config = vgpu::config();
    config.globaltimer_tick_ns = 1'000; // as after a profiler was attached
    vgpu::configure(config);
    bench.samples.clear();
    bench.replay_until(*probe, graph, 2'000, [&] {
        bench.settle();
        return bench.row(7).twin == "event" && bench.samples.size() >= 400;
    });
    EXPECT_EQ(bench.row(7).twin, "event");
    EXPECT_EQ(bench.row(7).tick_ns, 32);
    ASSERT_EQ(bench.tracks.size(), 2u);
    EXPECT_EQ(bench.tracks[0].info.source, "cuda_graph_stamp");
    EXPECT_EQ(bench.tracks[1].info.source, "cuda_graph_event");
    for (const drain::DeviceSample& sample : bench.samples) {
        const bool coarse = sample.track == bench.tracks[0].info.id;
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), 5'000, coarse ? 1'100 : 164);
    }
}

TEST(ProbesDevice, the_floor_of_stamps_follows_the_tick_of_the_moment) {
    ProbeOptions options;
    options.kind = ProbeKind::stamp;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_chain(bench, 20, 20); // with the gap 1,020
    const auto probe = bench.captured(7, graph);
    const auto flagged = [&] {
        bench.samples.clear();
        bench.replay_until(*probe, graph, 4'000, [&] { return bench.samples.size() >= 100; });
        return std::count_if(bench.samples.begin(), bench.samples.end(),
                             [](const drain::DeviceSample& sample) { return (sample.flags & span_below_floor) != 0; });
    };
    EXPECT_EQ(flagged(), 0);
    vgpu::Config config = vgpu::config();
    config.globaltimer_tick_ns = 4'096;
    vgpu::configure(config);
    EXPECT_GT(flagged(), 60);
    EXPECT_EQ(bench.row(7).tick_ns, 4'096);
}

TEST(ProbesDevice, C12_stamps_leave_a_graph_in_a_line_where_it_was_one) {
    vgpu::Config config;
    config.branch_launch_node_ns = 100;
    ProbeOptions options;
    options.kind = ProbeKind::stamp;
    options.every = 4;
    ProbeBench bench(config, options);
    const KnownGraph graph = capture_chain(bench, 20, 10'000);
    const auto probe = bench.captured(7, graph);
    std::int64_t shortest = INT64_MAX;
    std::int64_t sampled_ns = INT64_MAX;
    std::uint64_t sampled = 0;
    for (int i = 0; i < 100 && sampled < 6; ++i) {
        const std::int64_t before = vgpu::now_ns();
        ASSERT_TRUE(probe->launch(graph.exec, bench.stream).ok());
        const std::int64_t took = vgpu::now_ns() - before;
        vgpu::run_dry();
        const std::uint64_t now = bench.row(7).instrumented;
        if (now > std::max<std::uint64_t>(sampled, 1)) { // the first one uploads
            sampled_ns = std::min(sampled_ns, took);
        } else if (now == 0) {
            shortest = std::min(shortest, took);
        }
        sampled = now;
        if (i == 2) {
            bench.settle();
        }
    }
    ASSERT_GE(sampled, 6u);
    EXPECT_LT(sampled_ns - shortest, 3'500) << "10 ns a node and calls of ours; else 100 more for each of 44 nodes";
}

} // namespace
} // namespace plumb::cudagraph

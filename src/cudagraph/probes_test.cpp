// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/probe_testing.hpp"

#include <cmath>
#include <cstring>
#include <thread>

#include "backends/cuda/timeline.hpp"
#include "plumb/cuda_graph.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

/// `layers` of three bricks, one of them made of laps; everything is in a scope. 171 us a layer.
KnownGraph capture_layers(ProbeBench& bench, std::uint32_t layers) {
    bench.begin_capture();
    for (std::uint32_t i = 0; i < layers; ++i) {
        bench.layer(i, [&] {
            bench.scope([&] { bench.kernel(20'000); });
            bench.scope([&] { bench.laps(3, [&](int lap) { bench.kernel(30'000 + lap * 1'000); }); });
            bench.scope([&] {
                bench.kernel(40'000);
                bench.kernel(18'000);
            });
        });
    }
    return bench.end_capture();
}

void expect_truth(const ProbeBench& bench, const KnownGraph& graph, const std::map<std::string, Truth>& truth) {
    for (const drain::DeviceSample& sample : bench.samples) {
        const KnownScope& scope = graph.scopes.at(sample.name - first_name);
        const Truth expected = ProbeBench::truth_of(scope, truth);
        EXPECT_EQ(sample.layer_plus_one, scope.layer_plus_one);
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks),
                    static_cast<double>(expected.end_ns - expected.begin_ns), near_truth)
            << sample.name;
    }
}

void expect_undisturbed() {
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    EXPECT_TRUE(vgpu::invalidations().empty());
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(Probes, F3_scopes_work_while_a_graph_is_captured_and_inside_its_replays) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 2);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    const int replays = bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 60; });
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.captures, 1u);
    EXPECT_EQ(row.replays, static_cast<std::uint64_t>(replays));
    EXPECT_GE(row.instrumented, 5u);
    EXPECT_EQ(row.unread, 0u);
    EXPECT_EQ(row.twin, "event") << row.twin_reason;
    EXPECT_NEAR(row.site_cost_ns, 800, 50);
    EXPECT_LE(std::abs(row.closure), 0.05);
    ASSERT_EQ(bench.tracks.size(), 1u);
    EXPECT_EQ(bench.tracks[0].info.name, "graph 7");
    EXPECT_EQ(bench.tracks[0].info.graph_key, 7u);
    EXPECT_EQ(bench.tracks[0].info.source, "cuda_graph_event");
    EXPECT_EQ(bench.tracks[0].clock_name, bench.timeline()->clock_name());
    ASSERT_GE(bench.samples.size(), 60u);
    expect_truth(bench, graph, truth);
    expect_undisturbed();
}

TEST(Probes, T4_what_ships_is_the_plain_graph_and_most_replays_are_plain) {
    ProbeBench bench;
    const auto content = [&](const KnownGraph& graph) { // nodes, their parameters, edges
        record::Words lines;
        std::map<vgpu::GraphNode, std::string> names;
        std::size_t count = 0;
        bench.engine.cu.graph_get_nodes(graph.graph, nullptr, &count);
        std::vector<vgpu::GraphNode> nodes(count);
        bench.engine.cu.graph_get_nodes(graph.graph, nodes.data(), &count);
        for (const vgpu::GraphNode node : nodes) {
            backends::cuda::NodeType type{};
            bench.engine.cu.graph_node_get_type(node, &type);
            backends::cuda::KernelNodeParams params{};
            bench.engine.cu.graph_kernel_node_get_params(node, &params);
            const char* name = nullptr;
            bench.engine.cu.func_get_name(&name, params.func);
            int value = 0;
            std::memcpy(&value, params.kernel_params[0], sizeof value);
            lines.push_back(std::to_string(static_cast<int>(type)) + " " + name + " " + std::to_string(params.grid_x) +
                            " " + std::to_string(params.block_x) + " " + std::to_string(value));
            names[node] = name;
        }
        std::vector<vgpu::GraphNode> from(count * count);
        std::vector<vgpu::GraphNode> to(count * count);
        std::vector<backends::cuda::EdgeData> data(count * count);
        count = from.size();
        EXPECT_EQ(bench.engine.cu.graph_get_edges_v12030(graph.graph, from.data(), to.data(), data.data(), &count),
                  CuResult::success);
        for (std::size_t i = 0; i < count; ++i) {
            lines.push_back(names[from[i]] + " -> " + names[to[i]] + " " + std::to_string(data[i].type));
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    };
    const auto capture = [&] {
        bench.begin_capture();
        for (int i = 0; i < 4; ++i) {
            bench.scope([&] {
                int value = 100 + i;
                void* values[] = {&value};
                const std::string name = "same" + std::to_string(i);
                vgpu::KernelModel model;
                model.param_bytes = {sizeof value};
                model.min_ns = model.max_ns = 20'000;
                vgpu::kernel(name, model);
                EXPECT_EQ(bench.engine.launch(name.c_str(), bench.stream, values), CuResult::success);
            });
        }
        return bench.end_capture();
    };
    bench.recorder.off();
    const KnownGraph off = capture();
    bench.recorder.on();
    const KnownGraph on = capture();
    EXPECT_EQ(content(on).size(), 7u); // four kernels, three edges
    EXPECT_EQ(content(on), content(off));
    const auto probe = bench.captured(1, on);
    const record::Words before = content(on);
    const int replays = bench.replay_until(*probe, on, 200, [&] { return bench.samples.size() >= 12; });
    EXPECT_EQ(content(on), before);
    const recording::GraphInfo row = bench.row(1);
    EXPECT_GE(row.instrumented, 3u);
    EXPECT_LE(row.instrumented * 4, static_cast<std::uint64_t>(replays));
    // At most 1 % of the device's time: what stamps cost in a sampled replay is spread over the plain ones.
    EXPECT_LE(8 * row.site_cost_ns, 0.01 * static_cast<double>(row.every) * row.plain_span_ns);
    expect_undisturbed();
}

TEST(Probes, T4_a_replay_while_recording_is_off_makes_one_driver_call) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(1, graph);
    bench.settle();
    bench.recorder.off();
    const std::uint64_t before = vgpu::calls("*");
    ASSERT_TRUE(probe->launch(graph.exec, bench.stream).ok());
    EXPECT_EQ(vgpu::calls("*"), before + 1);
}

class Begins : public testing::TestWithParam<ProbeKind> {};

TEST_P(Begins, F4_samples_begin_when_their_work_did) {
    ProbeOptions options;
    options.kind = GetParam();
    vgpu::Config config;
    config.graph_launch_ns = 60'000; // each replay waits for its launch
    ProbeBench bench(config, options);
    const KnownGraph graph = capture_layers(bench, 2);
    const auto probe = bench.captured(7, graph);
    std::vector<std::int64_t> starts; // true ones of the first kernel in sampled replays
    std::size_t seen = 0;
    bench.replay_until(*probe, graph, 400, [&] {
        if (bench.samples.size() != seen) {
            seen = bench.samples.size();
            starts.push_back(ProbeBench::last_replay().at(graph.scopes[0].kernels[0]).begin_ns);
        }
        return starts.size() >= 4;
    });
    std::vector<std::uint64_t> begins;
    for (const drain::DeviceSample& sample : bench.samples) {
        if (sample.name == graph.scopes[0].name) {
            begins.push_back(sample.begin_ticks);
        }
    }
    ASSERT_EQ(begins.size(), starts.size());
    // An event whose true time is known ties the queue's clock to the truth.
    const auto timeline = bench.timeline();
    const vgpu::Event known = bench.engine.event();
    ASSERT_EQ(bench.engine.cu.event_record(known, bench.stream), CuResult::success);
    vgpu::run_dry();
    const Result<std::uint64_t> ticks = timeline->place(known);
    ASSERT_TRUE(ticks.ok());
    // By its event: a worker's own anchor may have been recorded since, on another stream.
    const std::vector<vgpu::Operation> all = vgpu::operations();
    const auto record =
        std::find_if(all.rbegin(), all.rend(), [&](const vgpu::Operation& row) { return row.event == known; });
    ASSERT_NE(record, all.rend());
    const std::int64_t truth = record->end_ns;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        const double before_start = static_cast<double>(*ticks - begins[i]) - static_cast<double>(truth - starts[i]);
        // The gap in front of the kernel, and the stamp, which reads the timer when it begins.
        EXPECT_NEAR(before_start, GetParam() == ProbeKind::stamp ? 2'700 : 1'400, 700);
    }
    // One after the other, children before their parents, inside them.
    for (std::size_t i = 0; i + 1 < bench.samples.size(); ++i) {
        EXPECT_LE(bench.samples[i].begin_ticks, bench.samples[i].end_ticks);
    }
    std::map<std::uint16_t, drain::DeviceSample> first;
    for (const drain::DeviceSample& sample : bench.samples) {
        first.emplace(sample.name, sample);
    }
    const drain::DeviceSample& parent = first.at(first_name + 1);
    for (const int lap : {2, 3, 4}) {
        const drain::DeviceSample& child = first.at(static_cast<std::uint16_t>(first_name + lap));
        EXPECT_TRUE(child.lap);
        EXPECT_GE(child.begin_ticks, parent.begin_ticks);
        EXPECT_LE(child.end_ticks, parent.end_ticks);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Begins, testing::Values(ProbeKind::event, ProbeKind::stamp));

TEST(Probes, the_span_of_a_plain_replay_holds_no_wait_for_its_launch) {
    vgpu::Config config;
    config.graph_launch_ns = 60'000;
    ProbeBench bench(config);
    const KnownGraph graph = capture_layers(bench, 2); // 342 us in 12 kernels
    const auto truth = bench.plain_truth(graph);
    const double inside = static_cast<double>(ProbeBench::truth_of(graph.scopes.back(), truth).end_ns -
                                              ProbeBench::truth_of(graph.scopes.front(), truth).begin_ns);
    const auto probe = bench.captured(7, graph);
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    EXPECT_TRUE(std::isnan(bench.row(7).plain_span_ns)) << "all waited, and nothing tells how long";
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 4; });
    EXPECT_NEAR(bench.row(7).plain_span_ns, inside, 7'000);
    // Replays that follow each other need no correction, and few of them say more than many that waited.
    bench.replay_in_a_row(*probe, graph, 64);
    EXPECT_NEAR(bench.row(7).plain_span_ns, inside, 7'000);
}

TEST(Probes, F6_kernels_in_no_scope_are_listed_by_name) {
    ProbeBench bench;
    bench.begin_capture();
    bench.named_kernel("embedding_lookup", 5'000);
    bench.scope([&] { bench.kernel(20'000); });
    bench.named_kernel("lm_head_gemm", 90'000);
    bench.named_kernel("lm_head_gemm", 90'000);
    const KnownGraph graph = bench.end_capture();
    const auto probe = bench.captured(1, graph);
    const recording::GraphInfo row = bench.row(1);
    EXPECT_EQ(row.unattributed, (std::vector<recording::NamedCount>{{"embedding_lookup", 1}, {"lm_head_gemm", 2}}));
    EXPECT_EQ(row.nodes, (std::vector<recording::NamedCount>{{"kernel", 4}}));
    ASSERT_EQ(row.sites.size(), 1u);
    EXPECT_EQ(row.sites[0].nodes, 1u);
}

TEST(Probes, T18_a_capture_that_lost_kernels_names_them) {
    ProbeBench bench;
    const auto capture = [&](int gemms) {
        bench.begin_capture();
        bench.scope([&] {
            for (int i = 0; i < gemms; ++i) {
                bench.named_kernel("gemm", 5'000);
            }
            bench.named_kernel("rope", 5'000);
        });
        return bench.end_capture();
    };
    const auto first = bench.captured(1, capture(30));
    const auto same = bench.captured(1, capture(30));
    EXPECT_EQ(bench.row(1).node_checks, 1u);
    EXPECT_TRUE(bench.row(1).node_changes.empty());
    const auto fewer = bench.captured(1, capture(2));
    const recording::GraphInfo row = bench.row(1);
    EXPECT_EQ(row.captures, 3u);
    EXPECT_EQ(row.node_checks, 2u);
    ASSERT_EQ(row.node_changes.size(), 1u);
    EXPECT_EQ(row.node_changes[0].kernel, "gemm");
    EXPECT_EQ(row.node_changes[0].before, 30u);
    EXPECT_EQ(row.node_changes[0].after, 2u);
}

TEST(Probes, a_long_step_closes_within_a_percent) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 24);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 5 * 144; });
    const recording::GraphInfo row = bench.row(7);
    EXPECT_GT(row.plain_span_ns, 3e6);
    EXPECT_LE(std::abs(row.closure), 0.01);
    EXPECT_GT(row.closure_raw, row.closure);
    expect_truth(bench, graph, truth);
}

class Turns : public testing::TestWithParam<ProbeKind> {};

TEST_P(Turns, layers_take_turns_until_all_were_measured) {
    ProbeOptions options;
    options.kind = GetParam();
    options.max_stamps = 40;
    options.samples_per_turn = 3;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 24);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    std::map<std::uint16_t, int> seen;
    std::size_t read = 0;
    bench.replay_until(*probe, graph, 2'000, [&] {
        for (; read < bench.samples.size(); ++read) {
            if (++seen[bench.samples[read].name] % 3 == 0) {
                bench.settle(); // the next turn is ready
            }
        }
        const double closure = bench.row(7).closure;
        return seen.size() == graph.scopes.size() && closure == closure;
    });
    EXPECT_EQ(seen.size(), graph.scopes.size());
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.twin, GetParam() == ProbeKind::stamp ? "stamp" : "event") << row.twin_reason;
    EXPECT_LE(std::abs(row.closure), 0.01);
    EXPECT_LE(vgpu::alive().execs, 2u); // the plain one and one twin
    expect_undisturbed();
}
INSTANTIATE_TEST_SUITE_P(Kinds, Turns, testing::Values(ProbeKind::event, ProbeKind::stamp));

TEST(Probes, stamp_kernels_time_what_is_inside_too) {
    ProbeOptions options;
    options.kind = ProbeKind::stamp;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 4);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 96; });
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.twin, "stamp") << row.twin_reason;
    EXPECT_NEAR(row.site_cost_ns, 1'700, 50);
    ASSERT_EQ(bench.tracks.size(), 1u);
    EXPECT_EQ(bench.tracks[0].info.source, "cuda_graph_stamp");
    ASSERT_GE(bench.samples.size(), 96u);
    expect_truth(bench, graph, truth);
    expect_undisturbed();
}

TEST(Probes, C2_stamp_kernels_touch_no_memory_of_the_host) {
    vgpu::Config config;
    config.mapped_access_ns = 1'200; // to the counter, and to the ring
    ProbeOptions options;
    options.kind = ProbeKind::stamp;
    ProbeBench bench(config, options);
    const KnownGraph graph = capture_layers(bench, 4);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 192; });
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.twin, "stamp") << row.twin_reason;
    EXPECT_NEAR(row.site_cost_ns, 1'700, 50);
    std::size_t stamps = 0;
    for (const vgpu::Operation& operation : vgpu::operations()) {
        if (std::string_view(operation.name).substr(0, 11) == "plumb_stamp") {
            EXPECT_EQ(operation.end_ns - operation.start_ns, config.stamp_node_ns);
            ++stamps;
        }
    }
    EXPECT_GT(stamps, 100u);
    ASSERT_GE(bench.samples.size(), 192u);
    expect_truth(bench, graph, truth);
    expect_undisturbed();
}

TEST(Probes, the_floor_of_stamp_kernels_is_the_tick_of_the_timer_that_they_read) {
    for (const unsigned tick : {32U, 1'024U}) {
        vgpu::Config config;
        config.event_tick_ns = 32;
        config.globaltimer_tick_ns = tick;
        ProbeOptions options;
        options.kind = ProbeKind::stamp;
        ProbeBench bench(config, options);
        bench.begin_capture();
        bench.scope([&] { bench.kernel(20'000); });
        bench.scope([&] { bench.kernel(20); }); // with the gap before it 1,020
        bench.scope([&] { bench.kernel(20'000); });
        const KnownGraph graph = bench.end_capture();
        const auto probe = bench.captured(7, graph);
        bench.replay_until(*probe, graph, 4'000, [&] { return bench.samples.size() >= 180; });
        ASSERT_GE(bench.samples.size(), 180u);
        int below = 0;
        for (const drain::DeviceSample& sample : bench.samples) {
            const bool flagged = (sample.flags & span_below_floor) != 0;
            EXPECT_EQ(flagged, sample.end_ticks - sample.begin_ticks < tick) << tick;
            below += flagged ? 1 : 0;
        }
        EXPECT_EQ(below == 0, tick == 32) << below;
        EXPECT_NEAR(bench.row(7).site_cost_ns, 1'700, tick);
    }
}

TEST(Probes, a_sample_that_is_still_unread_makes_the_next_one_plain_and_is_counted) {
    ProbeOptions options;
    options.every = 4;
    options.kind = ProbeKind::event;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    bench.settle();
    // Number 4 is sampled and runs behind a long kernel; number 8 finds it unread.
    vgpu::KernelModel model;
    model.min_ns = model.max_ns = 50'000'000'000;
    vgpu::kernel("long", model);
    ASSERT_EQ(bench.engine.launch("long", bench.stream), CuResult::success);
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(probe->launch(graph.exec, bench.stream).ok());
    }
    EXPECT_EQ(bench.row(7).unread, 1u);
    EXPECT_EQ(bench.row(7).instrumented, 1u);
    EXPECT_TRUE(bench.samples.empty());
    EXPECT_EQ(bench.probes->unresolved(), 6u);
    vgpu::run_dry();
    bench.collect();
    EXPECT_EQ(bench.samples.size(), 6u);
    EXPECT_EQ(bench.probes->unresolved(), 0u);
    expect_undisturbed();
}

TEST(Probes, a_graph_that_cannot_be_cloned_is_launched_plainly_and_says_why) {
    ProbeBench bench;
    bench.begin_capture();
    bench.scope([&] { bench.kernel(20'000); });
    vgpu::DevicePointer address = 0;
    ASSERT_EQ(bench.engine.cu.mem_alloc_async(&address, 4096, bench.stream), CuResult::success);
    ASSERT_EQ(bench.engine.cu.mem_free_async(address, bench.stream), CuResult::success);
    const KnownGraph graph = bench.end_capture();
    const auto probe = bench.captured(7, graph);
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.twin_reason, "n/a (memory nodes)");
    EXPECT_EQ(row.replays, 100u);
    EXPECT_TRUE(std::isnan(row.plain_span_ns)) << "every one waited for its launch, for an unknown time";
    EXPECT_EQ(row.instrumented, 0u);
    bench.replay_in_a_row(*probe, graph, 200);
    EXPECT_NEAR(bench.row(7).plain_span_ns, 20'000, 8'000);
    expect_undisturbed();
}

TEST(Probes, the_callers_graph_may_go_after_the_capture_and_the_twin_goes_with_the_eviction) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 2);
    const auto probe = bench.captured(7, graph);
    ASSERT_EQ(bench.engine.cu.graph_destroy(graph.graph), CuResult::success);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 24; });
    EXPECT_EQ(vgpu::alive().execs, 2u);
    vgpu::KernelModel model;
    model.min_ns = model.max_ns = 10'000'000;
    vgpu::kernel("long", model);
    while (bench.row(7).instrumented < 4) { // the last one is in flight
        vgpu::run_dry();
        bench.collect();
        ASSERT_EQ(bench.engine.launch("long", bench.stream), CuResult::success);
        ASSERT_TRUE(probe->launch(graph.exec, bench.stream).ok());
    }
    bench.probes->evicted(7);
    vgpu::run_dry();
    bench.collect();
    bench.settle();
    EXPECT_EQ(vgpu::alive().execs, 1u);
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_EQ(vgpu::destroyed_in_flight(), 0u);
    EXPECT_TRUE(probe->launch(graph.exec, bench.stream).ok()); // plainly, for ever
    EXPECT_EQ(bench.row(7).evictions, 1u);
    expect_undisturbed();
}

TEST(Probes, a_graph_is_evicted_when_its_owner_says_so_and_not_when_the_cache_drops_it) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    EXPECT_TRUE(bench.probes->dropped(7));
    EXPECT_EQ(bench.row(7).evictions, 0u) << "nor for a moment: whoever knows why counts it";
    EXPECT_FALSE(bench.probes->dropped(7));
    const auto again = bench.captured(7, graph);
    bench.probes->evicted(7);
    bench.probes->evicted(7);
    EXPECT_EQ(bench.row(7).evictions, 1u);
}

TEST(Probes, F1_a_launch_that_failed_is_no_replay_and_one_that_was_not_recorded_has_its_time) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    vgpu::fail("cuGraphLaunch", CuResult::invalid_value);
    EXPECT_FALSE(bench.replay(*probe, graph).ok());
    EXPECT_EQ(bench.row(7).replays, 0u);
    EXPECT_TRUE(std::isnan(bench.row(7).launch_ns)) << "never launched: no time, and not 0";
    bench.recorder.off();
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    EXPECT_EQ(bench.row(7).replays, 1u);
    EXPECT_GT(bench.row(7).launch_ns, 0) << "what is counted is timed";
}

TEST(Probes, F1_a_capture_that_nobody_looked_into_is_compared_with_nothing) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 1);
    bench.recorder.off();
    const auto unseen = bench.captured(7, graph);
    EXPECT_TRUE(bench.row(7).nodes.empty());
    bench.recorder.on();
    const auto seen = bench.captured(7, graph);
    EXPECT_EQ(bench.row(7).node_checks, 0u);
    EXPECT_TRUE(bench.row(7).node_changes.empty()) << "not \"0 before\"";
    const auto again = bench.captured(7, graph);
    EXPECT_EQ(bench.row(7).node_checks, 1u);
}

TEST(Probes, keys_beyond_the_bound_are_launched_plainly_and_counted_by_whoever_asks) {
    ProbeOptions options;
    options.max_rows = 1;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 1);
    const auto first = bench.captured(7, graph);
    const std::shared_ptr<GraphAccount> account = bench.probes->ledger().account(8);
    const auto second = bench.captured(8, graph);
    ASSERT_TRUE(bench.replay(*second, graph).ok());
    bench.collect(true);
    EXPECT_EQ(bench.rows.count(7), 1u);
    EXPECT_EQ(bench.rows.count(8), 0u);
    EXPECT_EQ(account->row().captures, 1u);
    EXPECT_EQ(account->row().replays, 1u);
}

TEST(Probes, programmatic_edges_keep_their_overlap) {
    ProbeBench bench;
    bench.begin_capture();
    vgpu::LaunchAttribute attribute{};
    attribute.id = vgpu::attribute_programmatic_serialization;
    attribute.value.programmatic_allowed = 1;
    vgpu::KernelModel model;
    model.min_ns = model.max_ns = 30'000;
    for (const char* const name : {"first", "second", "third"}) {
        vgpu::kernel(name, model);
        bench.scope([&] {
            vgpu::LaunchConfig config{1, 1, 1, 1, 1, 1, 0, bench.stream, &attribute, 1};
            ASSERT_EQ(bench.engine.cu.launch_kernel_ex(&config, bench.engine.function(name), nullptr, nullptr),
                      CuResult::success);
        });
    }
    const KnownGraph graph = bench.end_capture();
    const auto plain = bench.plain_truth(graph);
    const auto probe = bench.captured(7, graph);
    std::map<std::string, Truth> sampled;
    bench.replay_until(*probe, graph, 400, [&] {
        if (!bench.samples.empty()) {
            sampled = ProbeBench::last_replay();
        }
        return !sampled.empty();
    });
    ASSERT_GE(bench.samples.size(), 3u) << bench.row(7).twin_reason;
    EXPECT_EQ(plain.at("third").end_ns - plain.at("first").begin_ns,
              sampled.at("third").end_ns - sampled.at("first").begin_ns);
    expect_undisturbed();
}

TEST(Probes, nothing_of_ours_invalidates_a_capture_of_another_thread) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 2);
    const vgpu::Stream other = bench.engine.stream();
    vgpu::Context context = nullptr;
    bench.engine.cu.ctx_get_current(&context);
    std::shared_ptr<Probe> probe;
    std::thread capturing([&] {
        bench.engine.cu.ctx_push_current(context);
        EXPECT_EQ(bench.engine.cu.stream_begin_capture(other, vgpu::CaptureMode::global), CuResult::success);
        std::thread engine([&] { // an engine that launches while it captures elsewhere does so relaxed
            bench.engine.cu.ctx_push_current(context);
            vgpu::CaptureMode mode = vgpu::CaptureMode::relaxed;
            bench.engine.cu.thread_exchange_capture_mode(&mode);
            probe = bench.captured(7, graph);
            bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 24; });
            bench.probes->evicted(7);
            bench.settle();
        });
        engine.join();
        EXPECT_EQ(bench.engine.launch("inside", other), CuResult::success);
        vgpu::Graph captured = nullptr;
        EXPECT_EQ(bench.engine.cu.stream_end_capture(other, &captured), CuResult::success);
        EXPECT_NE(captured, nullptr);
    });
    capturing.join();
    EXPECT_GE(bench.samples.size(), 24u);
    expect_undisturbed();
}

TEST(Probes, a_launch_into_a_capture_is_plain_and_no_replay_of_its_own) {
    ProbeOptions options;
    options.every = 1;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 8, [&] { return false; });
    bench.recorder.take();
    const std::uint64_t sampled = bench.row(7).instrumented;
    ASSERT_EQ(bench.engine.cu.stream_begin_capture(bench.stream, vgpu::CaptureMode::global), CuResult::success);
    static_cast<void>(probe->launch(graph.exec, bench.stream)); // the driver's own answer, whatever it is
    vgpu::Graph outer = nullptr;
    ASSERT_EQ(bench.engine.cu.stream_end_capture(bench.stream, &outer), CuResult::success);
    EXPECT_EQ(bench.row(7).instrumented, sampled);
    EXPECT_EQ(bench.recorder.take(), record::Words{});
    expect_undisturbed();
}

TEST(Probes, launches_are_recorded_with_what_they_were) {
    ProbeOptions options;
    options.every = 4;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    bench.recorder.take();
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
        if (i == 2) {
            bench.settle();
        }
    }
    record::Words launches;
    for (const std::string& word : bench.recorder.take()) {
        if (word.rfind("graph_launch", 0) == 0) {
            const std::size_t at = word.find("flags=") + 6;
            // Whether the twin was built before or after the third launch is the worker's business.
            launches.push_back(word.substr(0, at) + std::to_string(std::stoi(word.substr(at)) & ~launch_beside_build));
        }
    }
    EXPECT_EQ(launches,
              (record::Words{"graph_launch key=7 flags=2", "graph_launch key=7 flags=0", "graph_launch key=7 flags=0",
                             "graph_launch key=7 flags=3", "graph_launch key=7 flags=0"}));
}

TEST(Probes, a_handle_of_nothing_launches_plainly) {
    ProbeBench bench;
    const KnownGraph graph = capture_layers(bench, 1);
    EXPECT_TRUE(GraphProbe().launch(graph.exec, bench.stream).ok());
    const Status refused = GraphProbe().launch(nullptr, bench.stream);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("cuGraphLaunch"), std::string::npos);
}

TEST(Probes, off_counts_replays_and_looks_into_none) {
    ProbeOptions options;
    options.kind = ProbeKind::off;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_layers(bench, 1);
    const auto probe = bench.captured(7, graph);
    for (int i = 0; i < 130; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.replays, 130u);
    EXPECT_EQ(row.instrumented, 0u);
    EXPECT_EQ(row.twin_reason, "n/a (graph.stamps=off)");
    EXPECT_EQ(vgpu::alive().graphs, 1u);
}

} // namespace
} // namespace plumb::cudagraph

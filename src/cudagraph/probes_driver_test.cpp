// SPDX-License-Identifier: Apache-2.0
// Probes on a device and a driver that are as inconvenient as they may be: blocks that hold places, loads that wait, two
// streams, two devices, flags, nodes that the device changes.
#include <set>
#include <string_view>
#include <thread>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

/// A stamp kernel beside a programmatic launch finds no place until that kernel is over; an event needs none.
TEST(ProbesDriver, scopes_of_programmatic_launches_end_when_their_kernel_did) {
    vgpu::Config config;
    config.programmatic_holds_slots = true;
    ProbeOptions options;
    options.kind = ProbeKind::stamp;
    ProbeBench bench(config, options);
    vgpu::LaunchAttribute attribute{};
    attribute.id = vgpu::attribute_programmatic_serialization;
    attribute.value.programmatic_allowed = 1;
    bench.begin_capture();
    for (const char* const name : {"a", "b", "c", "d", "e", "f"}) {
        vgpu::KernelModel model;
        model.min_ns = model.max_ns = 30'000;
        vgpu::kernel(name, model);
        bench.scope([&] {
            const vgpu::LaunchConfig launch{1, 1, 1, 1, 1, 1, 0, bench.stream, &attribute, 1};
            ASSERT_EQ(bench.engine.cu.launch_kernel_ex(&launch, bench.engine.function(name), nullptr, nullptr),
                      CuResult::success);
        });
    }
    const KnownGraph graph = bench.end_capture();
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 24; });
    ASSERT_GE(bench.samples.size(), 24u) << bench.row(7).twin_reason;
    for (const drain::DeviceSample& sample : bench.samples) {
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), 30'000, 2'500) << sample.name;
    }
    EXPECT_EQ(bench.row(7).twin, "event");
    EXPECT_NE(bench.row(7).twin_reason.find("programmatic"), std::string::npos);
}

/// A collective that waits for another rank must not be waited for by a thread of ours.
TEST(ProbesDriver, nothing_that_waits_for_the_device_is_left_to_our_thread) {
    for (const ProbeKind kind : {ProbeKind::automatic, ProbeKind::stamp, ProbeKind::event}) {
        vgpu::Config config;
        config.loading_synchronises = true;
        ProbeOptions options;
        options.kind = kind;
        ProbeBench bench(config, options);
        vgpu::KernelModel model;
        model.min_ns = model.max_ns = 50'000'000;
        vgpu::kernel("collective", model);
        std::vector<KnownGraph> graphs;
        std::vector<std::shared_ptr<Probe>> probes;
        for (std::uint64_t key = 0; key < 3; ++key) {
            graphs.push_back(capture_scopes(bench, 6));
            probes.push_back(bench.captured(key, graphs.back()));
        }
        ASSERT_EQ(bench.engine.launch("collective", bench.side), CuResult::success);
        for (int i = 0; i < 20; ++i) {
            for (std::size_t key = 0; key < 3; ++key) {
                ASSERT_TRUE(probes[key]->launch(graphs[key].exec, bench.stream).ok());
            }
            bench.settle();
            bench.collect();
        }
        EXPECT_EQ(vgpu::alive().execs, 6u) << "no twin was built while it ran";
        for (const vgpu::Synchronisation& one : vgpu::synchronisations()) {
            EXPECT_TRUE(one.thread == std::this_thread::get_id() || one.waited_ns == 0)
                << one.call << " of our thread waited " << one.waited_ns << " ns";
        }
        vgpu::run_dry();
        bench.collect();
    }
}

TEST(ProbesDriver, steps_beside_the_building_of_a_twin_are_marked) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 4);
    const auto probe = bench.captured(7, graph);
    const auto flags = [&] { // of the launches since the last time
        std::vector<int> all;
        for (const std::string& word : bench.recorder.take()) {
            if (word.rfind("graph_launch", 0) == 0) {
                all.push_back(std::stoi(word.substr(word.find("flags=") + 6)));
            }
        }
        return all;
    };
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    bench.settle();
    static_cast<void>(flags());
    vgpu::Hold hold("cuGraphInstantiateWithFlags");
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    hold.wait_until_inside();
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    hold.release();
    bench.settle();
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    ASSERT_TRUE(bench.replay(*probe, graph).ok());
    std::vector<int> seen = flags();
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_NE(seen[1] & launch_beside_build, 0) << "while it was built";
    EXPECT_NE(seen[2] & launch_beside_build, 0) << "built since the launch before";
    EXPECT_EQ(seen[3] & launch_beside_build, 0);
}

/// The driver serialises launches of one executable; plain and twin are two.
TEST(ProbesDriver, the_building_of_a_twin_is_a_part_of_our_own_cost) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 64);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 100, [&] { return bench.row(7).instrumented != 0; });
    bench.settle();
    bench.collect();
    EXPECT_GT(bench.cpu_ns, 10'000u) << "more than rounds without work take";
    const std::uint64_t built = bench.cpu_ns;
    bench.collect();
    EXPECT_LT(bench.cpu_ns - built, built) << "what was told once is not told again";
}

TEST(ProbesDriver, replays_of_one_graph_on_two_streams_do_not_overlap) {
    ProbeOptions options;
    options.every = 3;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_scopes(bench, 4, 50'000);
    const auto probe = bench.captured(7, graph);
    for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
        bench.settle();
    }
    for (int i = 0; i < 120; ++i) {
        ASSERT_TRUE(probe->launch(graph.exec, i % 4 < 2 ? bench.stream : bench.side).ok());
        if (i % 6 == 5) {
            vgpu::run_dry();
            bench.collect();
        }
    }
    vgpu::run_dry();
    bench.collect();
    EXPECT_GT(bench.row(7).instrumented, 5u);
    std::int64_t end = 0;
    for (const vgpu::Operation& operation : vgpu::operations()) {
        if (operation.kind == vgpu::OpKind::graph && operation.end_ns - operation.start_ns > 150'000) {
            EXPECT_GE(operation.start_ns, end) << "two replays ran at once";
            end = operation.end_ns;
        }
    }
}

/// Device code changes the nodes of the plain executable alone: here the host does it in its place.
TEST(ProbesDriver, C15_a_graph_whose_nodes_the_device_may_change_is_always_launched_plainly) {
    ProbeBench bench;
    vgpu::kernel("store", {{8, 4}, 20'000, 20'000, [](const vgpu::KernelRun& run) {
                               *vgpu::at<unsigned>(run.param<vgpu::DevicePointer>(0)) = run.param<unsigned>(1);
                           }});
    vgpu::DevicePointer memory = 0;
    ASSERT_EQ(bench.engine.cu.mem_alloc(&memory, 64), CuResult::success);
    unsigned value = 1;
    void* params[] = {&memory, &value};
    vgpu::LaunchAttribute attribute{};
    attribute.id = vgpu::attribute_device_updatable;
    attribute.value.device_updatable.updatable = 1;
    const vgpu::Function function = bench.engine.function("store");
    bench.begin_capture();
    bench.scope([&] {
        const vgpu::LaunchConfig config{1, 1, 1, 32, 1, 1, 0, bench.stream, &attribute, 1};
        ASSERT_EQ(bench.engine.cu.launch_kernel_ex(&config, function, params, nullptr), CuResult::success);
    });
    const KnownGraph graph = bench.end_capture();
    const auto probe = bench.captured(7, graph);
    vgpu::GraphNode node = nullptr;
    std::size_t one = 1;
    ASSERT_EQ(bench.engine.cu.graph_get_nodes(graph.graph, &node, &one), CuResult::success);
    value = 2;
    vgpu::KernelNodeParams changed{function, 1, 1, 1, 32, 1, 1, 0, params, nullptr, nullptr, nullptr};
    ASSERT_EQ(bench.engine.cu.graph_exec_kernel_node_set_params(graph.exec, node, &changed), CuResult::success);
    int stale = 0;
    bench.replay_until(*probe, graph, 300, [&] {
        stale += *vgpu::at<unsigned>(memory) == 1 ? 1 : 0;
        *vgpu::at<unsigned>(memory) = 2;
        return false;
    });
    EXPECT_EQ(stale, 0) << "replays that computed with parameters of the capture";
    EXPECT_EQ(bench.row(7).twin_reason, "n/a (device-updatable nodes)");
    EXPECT_EQ(bench.row(7).instrumented, 0u);
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

/// One thread, two devices: whichever is current when the graph is handed over, the graph is that of its streams.
TEST(ProbesDriver, a_graph_is_timed_on_the_device_that_it_was_captured_on) {
    for (const bool with_scope : {true, false}) {
        vgpu::Config config;
        config.devices = 2;
        ProbeOptions options;
        options.kind = ProbeKind::stamp;
        ProbeBench bench(config, options);
        const vgpu::EngineDriver& cu = bench.engine.cu;
        vgpu::Context second = nullptr;
        vgpu::Context popped = nullptr;
        ASSERT_EQ(cu.primary_ctx_retain(&second, 1), CuResult::success);
        ASSERT_EQ(cu.ctx_push_current(second), CuResult::success);
        vgpu::Module module = nullptr;
        vgpu::Function function = nullptr;
        ASSERT_EQ(cu.module_load_data(&module, "an image"), CuResult::success);
        ASSERT_EQ(cu.module_get_function(&function, module, "k"), CuResult::success);
        const vgpu::Stream stream = bench.engine.stream();
        KnownGraph graph;
        ASSERT_EQ(cu.stream_begin_capture(stream, vgpu::CaptureMode::relaxed), CuResult::success);
        for (int i = 0; i < 3; ++i) {
            const Scope brick = with_scope ? bench.recorder.scope(plumb::cuda(stream), Name{first_name}) : Scope();
            ASSERT_EQ(cu.launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr), CuResult::success);
        }
        ASSERT_EQ(cu.stream_end_capture(stream, &graph.graph), CuResult::success);
        ASSERT_EQ(cu.graph_instantiate(&graph.exec, graph.graph, 0), CuResult::success);
        ASSERT_EQ(cu.ctx_pop_current(&popped), CuResult::success);
        const auto probe = bench.captured(7, graph); // device 0 is current
        ASSERT_EQ(cu.ctx_push_current(second), CuResult::success);
        for (int i = 0; i < 1000 && bench.row(7).instrumented < 3; ++i) {
            ASSERT_TRUE(probe->launch(graph.exec, stream).ok());
            vgpu::run_dry();
            bench.collect();
            if (i == 2) {
                bench.settle();
            }
        }
        EXPECT_GE(bench.row(7).instrumented, 3u) << bench.row(7).twin_reason;
        std::size_t stamps = 0;
        for (const vgpu::Operation& operation : vgpu::operations()) {
            if (operation.kind == vgpu::OpKind::kernel) {
                EXPECT_EQ(operation.device, 1) << operation.name;
                stamps += std::string_view(operation.name).rfind("plumb_stamp", 0) == 0 ? 1 : 0;
            }
        }
        EXPECT_GT(stamps, 0u);
        bench.probes.reset();
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        ASSERT_EQ(cu.ctx_pop_current(&popped), CuResult::success);
    }
}

TEST(ProbesDriver, replays_in_another_context_than_the_captures_are_plain_and_the_row_says_so) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 3);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 300, [&] { return bench.row(7).instrumented >= 2; });
    vgpu::Context other = nullptr;
    vgpu::Context popped = nullptr;
    ASSERT_EQ(bench.engine.cu.ctx_create(&other, 0, 0), CuResult::success);
    const vgpu::Stream stream = bench.engine.stream();
    const std::uint64_t before = bench.row(7).instrumented;
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(probe->launch(graph.exec, stream).ok());
        vgpu::run_dry();
    }
    EXPECT_EQ(bench.row(7).instrumented, before);
    EXPECT_NE(bench.row(7).twin_reason.find("another context"), std::string::npos) << bench.row(7).twin_reason;
    ASSERT_EQ(bench.engine.cu.ctx_pop_current(&popped), CuResult::success);
}

/// An engine whose kernels have priorities, which count because its executable says so.
KnownGraph capture_with_priorities(ProbeBench& bench, unsigned long long flags) {
    KnownGraph graph = capture_scopes(bench, 6);
    EXPECT_EQ(bench.engine.cu.graph_exec_destroy(graph.exec), CuResult::success);
    std::size_t count = 0;
    EXPECT_EQ(bench.engine.cu.graph_get_nodes(graph.graph, nullptr, &count), CuResult::success);
    std::vector<vgpu::GraphNode> nodes(count);
    EXPECT_EQ(bench.engine.cu.graph_get_nodes(graph.graph, nodes.data(), &count), CuResult::success);
    for (const vgpu::GraphNode node : nodes) {
        vgpu::LaunchAttributeValue value{};
        value.priority = -2;
        static_cast<void>(bench.engine.cu.graph_kernel_node_set_attribute(node, vgpu::attribute_priority, &value));
    }
    EXPECT_EQ(bench.engine.cu.graph_instantiate(&graph.exec, graph.graph, flags), CuResult::success);
    return graph;
}

TEST(ProbesDriver, C6_a_twin_runs_at_the_priorities_of_the_executable_and_stamps_at_the_highest) {
    for (const unsigned long long flags : {vgpu::instantiate_use_node_priority, vgpu::instantiate_device_launch}) {
        ProbeOptions options;
        options.kind = ProbeKind::stamp;
        ProbeBench bench({}, options);
        const KnownGraph graph = capture_with_priorities(bench, flags);
        const auto probe = bench.captured(7, graph);
        bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 3; });
        ASSERT_GE(bench.row(7).instrumented, 3u);
        const auto is_stamp = [](const vgpu::Operation& operation) {
            return std::string_view(operation.name).rfind("plumb_stamp", 0) == 0;
        };
        std::set<std::uint64_t> of_the_engine; // and not of a calibration
        for (const vgpu::Operation& operation : vgpu::operations()) {
            if (operation.kind == vgpu::OpKind::kernel && !is_stamp(operation)) {
                of_the_engine.insert(operation.graph_id);
            }
        }
        EXPECT_EQ(of_the_engine.size(), 2u) << "plain and twin";
        std::size_t stamps = 0;
        for (const vgpu::Operation& operation : vgpu::operations()) {
            if (operation.kind != vgpu::OpKind::kernel || of_the_engine.count(operation.graph_id) == 0) {
                continue;
            }
            const bool stamp = is_stamp(operation);
            stamps += stamp ? 1 : 0;
            const int wanted = flags != vgpu::instantiate_use_node_priority ? 0 : stamp ? -5 : -2;
            ASSERT_EQ(operation.priority, wanted) << operation.name;
        }
        EXPECT_GT(stamps, 10u);
    }
}

TEST(ProbesDriver, an_executable_with_other_flags_than_the_twins_is_launched_plainly) {
    ProbeBench bench;
    const KnownGraph graph = capture_with_priorities(bench, 0);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 3; });
    KnownGraph other = graph;
    ASSERT_EQ(bench.engine.cu.graph_instantiate(&other.exec, graph.graph, vgpu::instantiate_use_node_priority),
              CuResult::success);
    const std::uint64_t before = bench.row(7).instrumented;
    bench.replay_until(*probe, other, 200, [] { return false; });
    EXPECT_EQ(bench.row(7).instrumented, before);
    bench.replay_until(*probe, graph, 200, [&] { return bench.row(7).instrumented > before; });
    EXPECT_GT(bench.row(7).instrumented, before);
}

} // namespace
} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// Replays, stamps and clocks on the virtual GPU, to the nanosecond.
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

// A chain by hand: kernels and event record nodes, each after the one before.
struct Chain {
    explicit Chain(const Config& config = {}) : engine(config), cu(engine.cu), stream(engine.stream()) {
        cu.graph_create(&graph, 0);
    }
    GraphNode kernel(const char* name, void** params = nullptr) {
        const KernelNodeParams p{engine.function(name), 1, 1, 1, 32, 1, 1, 0, params, nullptr, nullptr, nullptr};
        GraphNode node = nullptr;
        EXPECT_EQ(cu.graph_add_kernel_node(&node, graph, &last, last == nullptr ? 0 : 1, &p), ok);
        return last = node;
    }
    GraphNode record(Event event) {
        GraphNode node = nullptr;
        EXPECT_EQ(cu.graph_add_event_record_node(&node, graph, &last, last == nullptr ? 0 : 1, event), ok);
        return last = node;
    }
    GraphExec instantiate() {
        EXPECT_EQ(cu.graph_instantiate(&exec, graph, 0), ok);
        return exec;
    }
    void launch() { EXPECT_EQ(cu.graph_launch(exec, stream), ok); }
    CuResult elapsed(Event begin, Event end, double* ns) {
        float ms = 0;
        const CuResult result = cu.event_elapsed_time_v12080(&ms, begin, end);
        *ns = ms * 1e6;
        return result;
    }

    Engine engine;
    EngineDriver& cu;
    Stream stream;
    Graph graph = nullptr;
    GraphNode last = nullptr;
    GraphExec exec = nullptr;
};

std::vector<Operation> named(const std::string& name) {
    std::vector<Operation> found;
    for (const Operation& operation : operations()) {
        if (name == operation.name) {
            found.push_back(operation);
        }
    }
    return found;
}

TEST(Replays, take_what_their_nodes_cost) {
    Chain c;
    const Event begin = c.engine.event(), end = c.engine.event();
    c.kernel("a");
    c.record(begin);
    c.kernel("b");
    c.kernel("c");
    c.record(end);
    c.instantiate();
    c.launch();
    run_dry();
    double ns = 0;
    ASSERT_EQ(c.elapsed(begin, end, &ns), ok);
    const Config config = vgpu::config();
    // The event node's own cost, and both kernels with the gaps before them.
    EXPECT_NEAR(ns, static_cast<double>(config.event_node_ns + 2 * (5'000 + config.graph_gap_ns)), 32);
}

TEST(Replays, are_numbered_and_stamp_their_events_anew) {
    Config config;
    config.kernel_min_ns = 1'000;
    config.kernel_max_ns = 90'000;
    Chain c(config);
    const Event begin = c.engine.event(), end = c.engine.event();
    c.record(begin);
    c.kernel("k");
    c.record(end);
    c.instantiate();
    for (std::size_t replay = 0; replay < 3; ++replay) {
        c.launch();
        run_dry();
        double ns = 0;
        ASSERT_EQ(c.elapsed(begin, end, &ns), ok);
        const Operation run = named("k")[replay];
        EXPECT_NEAR(ns, static_cast<double>(run.end_ns - run.start_ns + 1'800), 32);
        EXPECT_EQ(run.replay, replay + 1);
    }
}

TEST(Replays, may_mix_the_events_of_two_replays_if_so_configured) {
    Config config;
    config.overwrite = Overwrite::at_execution;
    Chain c(config);
    vgpu::kernel("k", {{}, 50'000, 50'000, {}});
    const Event begin = c.engine.event(), end = c.engine.event();
    c.record(begin);
    c.kernel("k");
    c.record(end);
    c.instantiate();
    c.launch();
    run_dry();
    c.launch();
    double first = 0, mixed = 0;
    ASSERT_EQ(c.elapsed(begin, end, &first), ok); // the old pair
    advance(30'000);                              // the second replay has begun, and not ended
    ASSERT_EQ(c.elapsed(begin, end, &mixed), ok);
    EXPECT_LT(mixed, 0);
}

TEST(Replays, of_destroyed_executables_are_counted) {
    Chain c;
    int runs = 0;
    vgpu::kernel("k", {{}, 50'000, 50'000, [&runs](const KernelRun&) {
                           ++runs;
                       }});
    c.kernel("k");
    c.instantiate();
    c.launch();
    EXPECT_EQ(c.cu.graph_exec_destroy(c.exec), ok);
    EXPECT_EQ(runs, 0);
    run_dry();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(destroyed_in_flight(), 1u);
    EXPECT_EQ(alive().execs, 0u);
}

TEST(Replays, run_the_nodes_that_were_enabled_at_their_launch) {
    Chain c;
    int runs = 0;
    vgpu::kernel("k", {{}, 50'000, 50'000, [&runs](const KernelRun&) {
                           ++runs;
                       }});
    c.kernel("a");
    const GraphNode off = c.kernel("k");
    c.kernel("b");
    c.instantiate();
    ASSERT_EQ(c.cu.graph_node_set_enabled(c.exec, off, 0), ok);
    c.launch();
    ASSERT_EQ(c.cu.graph_node_set_enabled(c.exec, off, 1), ok);
    c.launch();
    run_dry();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(named("b").size(), 2u);
    EXPECT_GE(named("b")[0].start_ns, named("a")[0].end_ns);
    EXPECT_LT(named("b")[0].start_ns - named("a")[0].end_ns, 50'000);
}

TEST(Replays, take_longer_by_each_event_node) {
    const auto length = [](int events) {
        Chain c;
        c.kernel("a");
        for (int i = 0; i < events; ++i) {
            c.record(c.engine.event());
        }
        c.kernel("b");
        c.instantiate();
        c.launch();
        const Operation graph = named("graph")[0];
        return graph.end_ns - graph.start_ns;
    };
    EXPECT_EQ(length(3) - length(0), 3 * Config{}.event_node_ns);
}

TEST(Replays, cost_the_host_their_upload_once) {
    const auto cost_of = [](bool upload, int launches) {
        Chain c;
        for (int i = 0; i < 100; ++i) {
            c.kernel("k");
        }
        c.instantiate();
        if (upload) {
            EXPECT_EQ(c.cu.graph_upload(c.exec, c.stream), ok);
        }
        std::int64_t cost = 0;
        for (int i = 0; i < launches; ++i) {
            const std::int64_t before = now_ns();
            c.launch();
            cost = now_ns() - before;
        }
        return cost;
    };
    EXPECT_EQ(cost_of(true, 1), cost_of(false, 2));
    EXPECT_EQ(cost_of(false, 1) - cost_of(true, 1), 100 * Config{}.upload_node_ns);
}

struct StampRing {
    explicit StampRing(Chain& chain, std::uint32_t slots, std::uint32_t capacity) : slots_(slots), mask_(capacity - 1) {
        chain.cu.mem_alloc(&ring, slots * capacity * 8);
        chain.cu.mem_alloc(&counter, 8);
    }
    GraphNode stamp(Chain& chain, std::uint32_t slot) {
        void* params[] = {&ring, &counter, &slot, &slots_, &mask_, &stays_};
        return chain.kernel("plumb_stamp", params);
    }
    void advance(Chain& chain) {
        void* params[] = {&counter};
        chain.kernel("plumb_stamp_advance", params);
    }
    std::uint64_t value(std::size_t index) const { return *at<std::uint64_t>(ring + index * 8); }

    DevicePointer ring = 0, counter = 0;
    std::uint32_t slots_, mask_, stays_ = 0;
};

TEST(Stamps, read_the_timer_at_their_start_in_whole_ticks) {
    Config config;
    config.globaltimer_tick_ns = 1'024;
    Chain c(config);
    StampRing ring(c, 2, 4);
    ring.stamp(c, 0);
    c.kernel("k");
    ring.stamp(c, 1);
    ring.advance(c);
    c.instantiate();
    for (int i = 0; i < 3; ++i) {
        c.launch();
    }
    run_dry();
    const auto stamps = named("plumb_stamp");
    ASSERT_EQ(stamps.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(ring.value(i), globaltimer_ns(stamps[i].start_ns));
        EXPECT_EQ(ring.value(i) % 1'024, 0u);
        EXPECT_EQ(stamps[i].end_ns - stamps[i].start_ns, config.stamp_node_ns);
    }
    EXPECT_EQ(ring.value(6), 0u);
}

TEST(Stamps, agree_with_events_to_a_tick_each) {
    Config config;
    config.clock_drift_ppm = 24;
    Chain c(config);
    StampRing ring(c, 2, 1);
    const Event begin = c.engine.event(), end = c.engine.event();
    c.record(begin);
    ring.stamp(c, 0);
    c.kernel("k");
    c.record(end);
    ring.stamp(c, 1);
    c.instantiate();
    c.launch();
    run_dry();
    double ns = 0;
    ASSERT_EQ(c.elapsed(begin, end, &ns), ok);
    EXPECT_NEAR(static_cast<double>(ring.value(1) - ring.value(0)), ns,
                static_cast<double>(2 * 32 + config.event_node_ns));
}

TEST(Stamps, take_a_way_over_the_bus_for_each_parameter_in_mapped_memory) {
    Config config;
    config.mapped_access_ns = 1'200;
    Chain c(config);
    StampRing near(c, 2, 1);
    StampRing far(c, 2, 1);
    void* host = nullptr;
    ASSERT_EQ(c.cu.mem_host_alloc(&host, 4'096, 0), ok);
    ASSERT_EQ(c.cu.mem_host_get_device_pointer(&far.counter, host, 0), ok);
    far.ring = far.counter + 64;
    near.stamp(c, 0);
    far.stamp(c, 0);
    near.stamp(c, 1);
    c.instantiate();
    c.launch();
    run_dry();
    const auto stamps = named("plumb_stamp");
    ASSERT_EQ(stamps.size(), 3u);
    EXPECT_EQ(stamps[0].end_ns - stamps[0].start_ns, config.stamp_node_ns);
    EXPECT_EQ(stamps[1].end_ns - stamps[1].start_ns, config.stamp_node_ns + 2 * 1'200);
    EXPECT_NE(far.value(0), 0u);
}

TEST(Clock, of_stamps_may_tick_differently_from_some_moment_on) {
    Config config;
    config.globaltimer_change_ns = 10'000'000;
    Chain c(config);
    StampRing ring(c, 1, 2);
    ring.stamp(c, 0);
    ring.advance(c);
    c.instantiate();
    c.launch();
    run_dry();
    advance(20'000'000);
    c.launch();
    run_dry();
    const auto stamps = named("plumb_stamp");
    EXPECT_EQ(ring.value(0), static_cast<std::uint64_t>(device_ns(stamps[0].start_ns)) / 32 * 32);
    EXPECT_EQ(ring.value(1), static_cast<std::uint64_t>(device_ns(stamps[1].start_ns)) / 1'024 * 1'024);
}

TEST(Clock, is_slow_for_kernels_until_the_device_was_busy_for_a_while) {
    Config config;
    config.idle_slowdown = 4;
    Chain c(config);
    c.kernel("k");
    c.kernel("k");
    c.instantiate();
    const auto length = [&] {
        c.launch();
        run_dry();
        const Operation last = named("k").back();
        return last.end_ns - last.start_ns;
    };
    EXPECT_EQ(length(), 4 * 5'000);
    for (int i = 0; i < 10; ++i) {
        length();
    }
    EXPECT_EQ(length(), 5'000);
    advance(2'000'000);
    EXPECT_EQ(length(), 4 * 5'000);
}

TEST(Streams, wait_for_a_place_where_blocks_have_a_bound) {
    Config config;
    config.sm_slots = 2;
    Chain c(config);
    const Stream other = c.engine.stream();
    vgpu::kernel("long", {{}, 700'000, 700'000, {}});
    EXPECT_EQ(c.engine.cu.launch_kernel(c.engine.function("long"), 8, 1, 1, 32, 1, 1, 0, other, nullptr, nullptr), ok);
    c.engine.launch("k", c.stream);
    EXPECT_GE(named("k")[0].start_ns, named("long")[0].end_ns);
    run_dry();
    c.engine.launch("long", other);
    c.engine.launch("k", c.stream); // one block each: both have a place
    EXPECT_LT(named("k")[1].end_ns, named("long")[1].end_ns);
}

TEST(Replays, start_later_the_more_nodes_they_have) {
    const auto begins_after = [](int kernels) {
        Config config;
        config.graph_start_node_ns = 20;
        Chain c(config);
        for (int i = 0; i < kernels; ++i) {
            c.kernel("k");
        }
        c.instantiate();
        c.launch();
        return named("k")[0].start_ns - named("graph")[0].start_ns;
    };
    EXPECT_EQ(begins_after(101) - begins_after(1), 100 * 20);
}

TEST(Replays, cost_the_host_more_where_they_branch) {
    const auto cost_of = [](bool branch) {
        Config config;
        config.branch_launch_node_ns = 100;
        Chain c(config);
        const GraphNode first = c.kernel("k");
        c.kernel("k");
        c.last = branch ? first : c.last;
        c.kernel("k");
        c.instantiate();
        const std::int64_t before = now_ns();
        c.launch();
        return now_ns() - before;
    };
    EXPECT_EQ(cost_of(true) - cost_of(false), 3 * 100);
}

TEST(Replays, are_longer_by_marks_before_work_and_beside_a_memset) {
    const auto length = [](bool memset, std::int64_t before, std::int64_t apart) {
        Config config;
        config.stamp_before_work_ns = before;
        config.memset_apart_ns = apart;
        Chain c(config);
        DevicePointer memory = 0;
        c.cu.mem_alloc(&memory, 64);
        c.kernel("k");
        if (memset) {
            const MemsetNodeParams params{memory, 0, 0, 4, 16, 1};
            GraphNode node = nullptr;
            EXPECT_EQ(c.cu.graph_add_memset_node(&node, c.graph, &c.last, 1, &params, c.engine.context), ok);
            c.last = node;
        }
        c.record(c.engine.event());
        c.record(c.engine.event());
        c.kernel("k");
        c.instantiate();
        c.launch();
        const Operation graph = named("graph")[0];
        return graph.end_ns - graph.start_ns;
    };
    EXPECT_EQ(length(false, 600, 0) - length(false, 0, 0), 600) << "a mark follows the first one";
    EXPECT_EQ(length(true, 0, 900) - length(true, 0, 0), 900);
    EXPECT_EQ(length(false, 0, 900) - length(false, 0, 0), 0);
}

TEST(Clock, drifts_at_the_rate_that_was_set) {
    Config config;
    config.clock_drift_ppm = 24;
    Chain c(config);
    const Event begin = c.engine.event(), end = c.engine.event();
    c.cu.event_record(begin, c.stream);
    advance(1'000'000'000);
    c.cu.event_record(end, c.stream);
    run_dry();
    double ns = 0;
    ASSERT_EQ(c.elapsed(begin, end, &ns), ok);
    const auto events = named("event");
    const auto true_ns = static_cast<double>(events[1].start_ns - events[0].start_ns);
    EXPECT_NEAR(ns - true_ns, 24e-6 * true_ns, 32 + 64);
}

TEST(Replays, overlap_a_kernel_and_its_programmatic_successor) {
    Chain c;
    const GraphNode a = c.kernel("a");
    c.last = nullptr;
    const GraphNode b = c.kernel("b");
    const EdgeData edge{edge_port_programmatic, 0, edge_type_programmatic, {}};
    ASSERT_EQ(c.cu.graph_add_dependencies_v12030(c.graph, &a, &b, &edge, 1), ok);
    c.instantiate();
    c.launch();
    EXPECT_EQ(named("a")[0].end_ns - named("b")[0].start_ns, Config{}.programmatic_overlap_ns);
}

TEST(Replays, wait_for_the_events_of_wait_nodes) {
    Chain c;
    vgpu::kernel("elsewhere", {{}, 700'000, 700'000, {}});
    const Event event = c.engine.event();
    const Stream other = c.engine.stream();
    GraphNode wait = nullptr;
    ASSERT_EQ(c.cu.graph_add_event_wait_node(&wait, c.graph, nullptr, 0, event), ok);
    c.last = wait;
    c.kernel("k");
    c.instantiate();
    c.engine.launch("elsewhere", other);
    c.cu.event_record(event, other);
    c.launch();
    EXPECT_GE(named("k")[0].start_ns, named("elsewhere")[0].end_ns);
}

TEST(Replays, record_into_no_event_that_was_destroyed) {
    Chain c;
    const Event event = c.engine.event();
    c.kernel("k");
    c.record(event);
    c.instantiate();
    c.launch();
    c.cu.event_destroy(event);
    EXPECT_EQ(errors().size(), 1u); // the replay in flight records it
    run_dry();
    c.launch();
    EXPECT_EQ(errors().size(), 2u); // and this one has no event to record
}

} // namespace
} // namespace plumb::vgpu

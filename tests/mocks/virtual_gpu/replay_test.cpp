// SPDX-License-Identifier: Apache-2.0
// Replays, stamps and clocks on the virtual GPU, to the nanosecond.
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

constexpr CuResult ok = CuResult::success;

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
    explicit StampRing(Chain& chain, std::uint32_t slots, std::uint32_t capacity) : slots_(slots), capacity_(capacity) {
        chain.cu.mem_alloc(&ring, slots * capacity * 8);
        chain.cu.mem_alloc(&counter, 8);
    }
    GraphNode stamp(Chain& chain, std::uint32_t slot) {
        void* params[] = {&ring, &counter, &slot, &slots_, &capacity_};
        return chain.kernel("plumb_stamp", params);
    }
    void advance(Chain& chain) {
        void* params[] = {&counter};
        chain.kernel("plumb_stamp_advance", params);
    }
    std::uint64_t value(std::size_t index) const { return *at<std::uint64_t>(ring + index * 8); }

    DevicePointer ring = 0, counter = 0;
    std::uint32_t slots_, capacity_;
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

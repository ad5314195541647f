// SPDX-License-Identifier: Apache-2.0
// What graphs are tied to outside of themselves: clones and twins hold the user objects of the caller's graph, and a
// communicator cannot be destroyed while somebody holds its own.
#include <atomic>
#include <thread>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using vgpu::CuResult;

/// As collectives libraries do it: each graph that was captured with it holds a reference, and its end waits, spinning,
/// until all of them are back.
class Communicator {
  public:
    explicit Communicator(ProbeBench& bench) : bench_(bench) {}

    void tie(const KnownGraph& graph) {
        vgpu::UserObject object = nullptr;
        ++held_;
        EXPECT_EQ(bench_.engine.cu.user_object_create(
                      &object, this, [](void* self) { --static_cast<Communicator*>(self)->held_; }, 1,
                      vgpu::user_object_no_destructor_sync),
                  CuResult::success);
        EXPECT_EQ(bench_.engine.cu.graph_retain_user_object(graph.graph, object, 1, vgpu::graph_user_object_move),
                  CuResult::success);
    }
    /// False: it would have hung.
    [[nodiscard]] bool destroy() {
        const auto end = steady_clock::now() + milliseconds(500);
        while (held_ != 0 && steady_clock::now() < end) {
            vgpu::advance(1'000);
        }
        return held_ == 0;
    }
    [[nodiscard]] int held() const { return held_; }

  private:
    ProbeBench& bench_;
    std::atomic<int> held_{0};
};

KnownGraph capture_layered_scopes(ProbeBench& bench, int scopes, std::int64_t ns = 20'000) {
    bench.begin_capture();
    for (int i = 0; i < scopes; ++i) {
        bench.layer(static_cast<std::uint32_t>(i), [&] { bench.scope([&] { bench.named_kernel("work", ns); }); });
    }
    KnownGraph graph = bench.end_capture();
    return graph;
}

/// Ties a communicator to the graph as it is captured, before it is instantiated.
KnownGraph capture_tied(ProbeBench& bench, Communicator& communicator, int scopes = 4) {
    KnownGraph graph = capture_layered_scopes(bench, scopes);
    EXPECT_EQ(bench.engine.cu.graph_exec_destroy(graph.exec), CuResult::success);
    communicator.tie(graph);
    EXPECT_EQ(bench.engine.cu.graph_instantiate(&graph.exec, graph.graph, 0), CuResult::success);
    return graph;
}

TEST(Release, C1_a_communicator_ends_after_all_graphs_were_evicted) {
    ProbeBench bench;
    Communicator communicator(bench);
    std::vector<std::shared_ptr<Probe>> probes;
    for (std::uint64_t key = 1; key <= 3; ++key) {
        const KnownGraph graph = capture_tied(bench, communicator);
        probes.push_back(bench.captured(key, graph));
        if (key != 3) { // one is never replayed
            bench.replay_until(*probes.back(), graph, 400, [&] { return bench.row(key).instrumented >= 3; });
            EXPECT_GE(bench.row(key).instrumented, 3u);
        }
        bench.destroy(graph);
    }
    EXPECT_EQ(communicator.held(), 3);
    EXPECT_TRUE(bench.probes->evicted_all(milliseconds(20'000)).ok());
    EXPECT_EQ(communicator.held(), 0) << "at the return, not some time later";
    EXPECT_TRUE(communicator.destroy());
    EXPECT_EQ(vgpu::alive().execs, 0u);
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_EQ(bench.row(1).evictions, 1u);
    EXPECT_EQ(vgpu::destroyed_in_flight(), 0u);
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

/// Leaves a replay of the twin in flight, behind a kernel of ten milliseconds.
void replay_twin_behind_a_long_kernel(ProbeBench& bench, Probe& probe, const KnownGraph& graph) {
    vgpu::KernelModel model;
    model.min_ns = model.max_ns = 10'000'000;
    vgpu::kernel("long", model);
    const std::uint64_t before = bench.row(7).instrumented;
    while (bench.row(7).instrumented == before) {
        vgpu::run_dry();
        bench.collect();
        ASSERT_EQ(bench.engine.launch("long", bench.stream), CuResult::success);
        ASSERT_TRUE(probe.launch(graph.exec, bench.stream).ok());
    }
}

TEST(Release, evicting_all_waits_for_a_twin_in_flight_and_says_when_that_takes_too_long) {
    ProbeBench bench;
    Communicator communicator(bench);
    const KnownGraph graph = capture_tied(bench, communicator);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 3; });
    bench.destroy(graph);
    // The callers' executable is gone: what is in flight is the twin alone.
    const KnownGraph other = capture_tied(bench, communicator);
    const auto second = bench.captured(7, other);
    bench.replay_until(*second, other, 400, [&] { return bench.row(7).instrumented >= 3; });
    replay_twin_behind_a_long_kernel(bench, *second, other);
    bench.destroy(other);
    const Status status = bench.probes->evicted_all(milliseconds(20));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::pending);
    EXPECT_NE(status.error().message.find("1 captured graph"), std::string::npos) << status.error().message;
    EXPECT_EQ(communicator.held(), 1);
    std::atomic<bool> done{false};
    std::thread device([&] { // its time goes on
        while (!done) {
            vgpu::advance(100'000);
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    EXPECT_TRUE(bench.probes->evicted_all(milliseconds(20'000)).ok());
    done = true;
    device.join();
    EXPECT_EQ(communicator.held(), 0);
    EXPECT_EQ(vgpu::destroyed_in_flight(), 0u);
}

TEST(Release, C1_an_evicted_graph_that_is_not_in_flight_is_let_go_before_the_call_returns) {
    ProbeBench bench;
    Communicator communicator(bench);
    const KnownGraph graph = capture_tied(bench, communicator);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 3; });
    bench.destroy(graph);
    bench.settle();
    vgpu::Hold hold("cuGraphExecDestroy"); // the driver takes its time
    std::thread slow([&] {
        hold.wait_until_inside();
        std::this_thread::sleep_for(milliseconds(30));
        hold.release();
    });
    bench.probes->evicted(7);
    EXPECT_EQ(communicator.held(), 0);
    slow.join();
}

TEST(Release, a_twin_in_flight_does_not_hold_up_whoever_evicts_it) {
    ProbeBench bench;
    const KnownGraph graph = capture_layered_scopes(bench, 4);
    const auto probe = bench.captured(7, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= 3; });
    replay_twin_behind_a_long_kernel(bench, *probe, graph);
    const std::int64_t before = vgpu::now_ns();
    bench.probes->evicted(7);
    EXPECT_LT(vgpu::now_ns() - before, 5'000'000) << "it waited for the device";
    EXPECT_EQ(vgpu::alive().execs, 2u);
    vgpu::run_dry();
    bench.settle();
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

/// Three holders (the clone, its clone and the executable) become one as soon as the twin is there.
TEST(Release, C1_the_clones_go_when_the_twin_is_there_and_nothing_asks_for_their_nodes_any_more) {
    for (const ProbeKind kind : {ProbeKind::event, ProbeKind::stamp}) {
        ProbeOptions options;
        options.kind = kind;
        ProbeBench bench({}, options);
        const KnownGraph graph = capture_layered_scopes(bench, 4);
        const auto probe = bench.captured(7, graph);
        EXPECT_EQ(vgpu::alive().graphs, 2u);
        bench.replay_until(*probe, graph, 800, [&] { // through the frames, and the twin made after them
            bench.settle();
            return vgpu::alive().graphs == 1;
        });
        EXPECT_EQ(vgpu::alive().graphs, 1u) << "the caller's own";
        EXPECT_EQ(vgpu::alive().execs, 2u);
        const std::uint64_t before = bench.row(7).instrumented;
        bench.replay_until(*probe, graph, 400, [&] { return bench.row(7).instrumented >= before + 6; });
        EXPECT_GE(bench.row(7).instrumented, before + 6);
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
}

TEST(Release, a_graph_whose_layers_take_turns_keeps_what_its_next_turn_is_made_of) {
    for (const ProbeKind kind : {ProbeKind::event, ProbeKind::stamp}) {
        ProbeOptions options;
        options.kind = kind;
        options.max_stamps = 16;
        options.samples_per_turn = 2;
        ProbeBench bench({}, options);
        const KnownGraph graph = capture_layered_scopes(bench, 40);
        const auto probe = bench.captured(7, graph);
        for (int i = 0; i < 400; ++i) {
            ASSERT_TRUE(bench.replay(*probe, graph).ok());
            if (i % 8 == 0) {
                bench.settle();
            }
        }
        EXPECT_GT(bench.row(7).instrumented, 6u);
        EXPECT_TRUE(bench.row(7).twin_reason.empty()) << bench.row(7).twin_reason;
        bench.probes->evicted(7);
        EXPECT_EQ(vgpu::alive().graphs, 1u);
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
}

TEST(Release, a_twin_that_was_given_up_leaves_no_clone) {
    ProbeBench bench;
    const KnownGraph graph = capture_layered_scopes(bench, 4);
    const auto probe = bench.captured(7, graph);
    vgpu::fail("cuGraphInstantiateWithFlags", CuResult::out_of_memory, 1, 100);
    bench.replay_until(*probe, graph, 20, [] { return false; });
    bench.settle();
    EXPECT_NE(bench.row(7).twin_reason, "");
    EXPECT_EQ(vgpu::alive().graphs, 1u);
}

} // namespace
} // namespace plumb::cudagraph

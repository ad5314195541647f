// SPDX-License-Identifier: Apache-2.0
// Every driver call of a probe's life fails once at each of its uses; the device is lost at any moment.
#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

KnownGraph capture_small(ProbeBench& bench) {
    bench.begin_capture();
    bench.scope([&] { bench.kernel(20'000); });
    bench.scope([&] { bench.kernel(30'000); });
    return bench.end_capture();
}

struct Life {
    Status captured;
    Status launched; // the first launch that failed
    recording::GraphInfo row;
    std::size_t samples = 0;
    bool struck = false;
};

/// Captured twice, replayed, sampled, evicted, closed; `arm` is called when all that follows are calls of ours.
template <class Arm>
Life live(ProbeBench& bench, ProbeOptions options, Arm arm) {
    options.every = 4;
    Life life;
    const KnownGraph first = capture_small(bench);
    const KnownGraph second = capture_small(bench);
    bench.probes = std::make_unique<GraphProbes>(bench.recorder, options);
    bench.samples.clear();
    bench.rows.clear();
    arm();
    for (const KnownGraph* const graph : {&first, &second}) {
        const Result<std::shared_ptr<Probe>> probe = bench.probes->captured(1, graph->graph);
        if (!probe) {
            life.captured = life.captured.ok() ? Status(probe.error()) : life.captured;
            continue;
        }
        for (int i = 0; i < 24; ++i) {
            const Status launched = bench.replay(**probe, *graph);
            life.launched = life.launched.ok() ? launched : life.launched;
            if (i == 2) {
                bench.settle();
            }
        }
    }
    bench.probes->evicted(1);
    bench.settle();
    life.row = bench.row(1);
    life.samples = bench.samples.size();
    bench.probes.reset();
    life.struck = vgpu::all_failures_struck();
    vgpu::clear_failures();
    bench.destroy(first);
    bench.destroy(second);
    return life;
}

class ProbesFailure : public testing::TestWithParam<ProbeKind> {};

TEST_P(ProbesFailure, each_call_may_fail_once_and_nothing_leaks_or_lies) {
    ProbeBench bench;
    ProbeOptions options;
    options.kind = GetParam();
    const auto nothing = [] {
    };
    std::map<std::string, std::uint64_t> before;
    const auto count = [&] {
        for (const std::string& call : vgpu::called()) {
            before[call] = vgpu::calls(call);
        }
    };
    const Life good = live(bench, options, count);
    ASSERT_TRUE(good.captured.ok() && good.launched.ok());
    ASSERT_GE(good.samples, 4u);
    std::map<std::string, std::uint64_t> uses;
    for (const std::string& call : vgpu::called()) {
        uses[call] = vgpu::calls(call) - before[call];
    }
    live(bench, options, nothing); // what stays for good is there now
    const vgpu::Alive alive = vgpu::alive();
    std::size_t struck = 0;
    for (const auto& [call, times] : uses) {
        for (std::uint64_t n = 1; n <= std::min<std::uint64_t>(times, 48); ++n) {
            SCOPED_TRACE(call + " number " + std::to_string(n));
            const CuResult error = n % 2 == 0 ? CuResult::out_of_memory : CuResult::unknown;
            const Life life = live(bench, options, [&, name = call] { vgpu::fail(name, error, n); });
            struck += life.struck ? 1 : 0;
            for (const Status* const status : {&life.captured, &life.launched}) {
                if (!status->ok()) {
                    EXPECT_NE(status->error().message.find("cu"), std::string::npos) << status->error().message;
                }
            }
            EXPECT_TRUE(life.launched.ok() || call == "cuGraphLaunch") << life.launched.error().message;
            for (const drain::DeviceSample& sample : bench.samples) {
                const double truth = sample.name == first_name ? 20'000 : 30'000;
                EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), truth, 2'000);
            }
            EXPECT_EQ(vgpu::alive().graphs, alive.graphs);
            EXPECT_EQ(vgpu::alive().execs, alive.execs);
            EXPECT_EQ(vgpu::alive().host_allocations, alive.host_allocations);
            EXPECT_EQ(vgpu::alive().streams, alive.streams);
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(struck, uses.size());
    // None stays behind for each failure. The pool itself grows, by 64, where what was measured is read late.
    ASSERT_GE(struck, 256u);
    EXPECT_LE(vgpu::alive().events, alive.events + struck / 2);
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    const Life after = live(bench, options, nothing);
    EXPECT_GE(after.samples, 4u);
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Kinds, ProbesFailure, testing::Values(ProbeKind::event, ProbeKind::stamp));

TEST(ProbesFailure, a_lost_device_ends_our_calls_and_what_stayed_is_listed) {
    ProbeBench bench;
    ProbeOptions options;
    options.every = 4;
    bench.probes = std::make_unique<GraphProbes>(bench.recorder, options);
    const KnownGraph graph = capture_small(bench);
    const auto probe = bench.captured(3, graph);
    bench.replay_until(*probe, graph, 40, [&] { return !bench.samples.empty(); });
    ASSERT_FALSE(bench.probes->lost());
    vgpu::lose_device();
    Status answer;
    for (int i = 0; i < 8; ++i) {
        answer = probe->launch(graph.exec, bench.stream);
        bench.collect();
    }
    ASSERT_FALSE(answer.ok());
    EXPECT_NE(answer.error().message.find("cuGraphLaunch"), std::string::npos) << answer.error().message;
    bench.settle();
    EXPECT_TRUE(bench.probes->lost());
    const std::uint64_t calls = vgpu::calls("*");
    bench.probes->evicted(3);
    bench.settle();
    bench.collect(true);
    EXPECT_EQ(vgpu::calls("*"), calls);
    EXPECT_FALSE(bench.probes->captured(4, graph.graph).ok());
    EXPECT_EQ(vgpu::calls("*"), calls);
    const Status status = bench.probes->status();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("1 instrumented executable"), std::string::npos) << status.error().message;
    bench.probes.reset();
    EXPECT_EQ(vgpu::calls("*"), calls);
    EXPECT_FALSE(probe->launch(graph.exec, bench.stream).ok()); // still the driver's answer
}

TEST(ProbesFailure, no_memory_for_the_twin_drops_the_twin_and_not_the_graph) {
    ProbeBench bench;
    const KnownGraph graph = capture_small(bench);
    const auto probe = bench.captured(3, graph);
    vgpu::fail("cuGraphInstantiateWithFlags", CuResult::out_of_memory, 1, 100);
    for (int i = 0; i < 80; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
        if (i == 2) {
            bench.settle();
        }
    }
    const recording::GraphInfo row = bench.row(3);
    EXPECT_EQ(row.replays, 80u);
    EXPECT_EQ(row.instrumented, 0u);
    EXPECT_EQ(row.twin, "");
    EXPECT_EQ(row.twin_reason.rfind("n/a (out of memory)", 0), 0u) << row.twin_reason;
    bench.replay_in_a_row(*probe, graph, 200);
    EXPECT_GT(bench.row(3).plain_span_ns, 50'000);
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

/// Samples that stamp kernels gave before they did `instead`, and those after; then the ones that are missing.
void expect_samples_missing(const vgpu::KernelFunction& instead) {
    ProbeOptions options;
    options.every = 4;
    options.kind = ProbeKind::stamp;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_small(bench);
    const auto probe = bench.captured(3, graph);
    bench.replay_until(*probe, graph, 100, [&] { return bench.samples.size() >= 12; }); // every slot was written
    ASSERT_GE(bench.samples.size(), 12u);
    EXPECT_EQ(bench.probes->unresolved(), 0u);
    const std::size_t before = bench.samples.size();
    const std::uint64_t instrumented = bench.row(3).instrumented;
    vgpu::KernelModel model;
    model.function = instead;
    vgpu::kernel("plumb_stamp", model);
    for (int i = 0; i < 16; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    EXPECT_EQ(bench.samples.size(), before);
    EXPECT_EQ(bench.row(3).instrumented, instrumented + 4);
    EXPECT_EQ(bench.probes->unresolved(), 4 * 2u);
}

TEST(ProbesFailure, a_stamp_that_wrote_nothing_is_no_reading_of_an_older_replay) {
    expect_samples_missing([](const vgpu::KernelRun&) {});
}

TEST(ProbesFailure, M4_a_span_of_less_than_nothing_is_left_out_and_counted_never_zero) {
    expect_samples_missing([](const vgpu::KernelRun& run) {
        auto* const ring = vgpu::at<std::uint64_t>(run.param<vgpu::DevicePointer>(0));
        const std::uint64_t replay = *vgpu::at<std::uint64_t>(run.param<vgpu::DevicePointer>(1));
        const std::uint64_t slots = run.param<std::uint32_t>(3);
        ring[(replay & run.param<std::uint32_t>(4)) * slots + run.param<std::uint32_t>(2)] = ~run.globaltimer;
    });
}

TEST_P(ProbesFailure, without_stamp_kernels_the_row_says_so) {
    ProbeOptions options;
    options.kind = GetParam() == ProbeKind::event ? ProbeKind::automatic : ProbeKind::stamp;
    ProbeBench bench({}, options);
    const KnownGraph graph = capture_small(bench);
    vgpu::fail("cuModuleLoadData", CuResult::jit_compiler_not_found, 1, 1'000);
    const auto probe = bench.captured(3, graph);
    bench.replay_until(*probe, graph, 80, [] { return false; });
    const recording::GraphInfo row = bench.row(3);
    EXPECT_EQ(row.twin, options.kind == ProbeKind::stamp ? "" : "event");
    EXPECT_NE(row.twin_reason.find("no stamp kernels: "), std::string::npos) << row.twin_reason;
    EXPECT_EQ(bench.samples.empty(), options.kind == ProbeKind::stamp);
}

/// A graph of a kernel in a scope, on a stream of a context that is made for it and current from then on.
KnownGraph capture_in(vgpu::Context& context, ProbeBench& bench) {
    EXPECT_EQ(bench.engine.cu.ctx_create(&context, 0, 0), CuResult::success);
    bench.stream = bench.engine.stream();
    bench.queue = plumb::cuda(bench.stream);
    const vgpu::Stream stream = bench.stream;
    vgpu::Module module = nullptr;
    vgpu::Function function = nullptr;
    EXPECT_EQ(bench.engine.cu.module_load_data(&module, "an image"), CuResult::success);
    EXPECT_EQ(bench.engine.cu.module_get_function(&function, module, "kernel"), CuResult::success);
    bench.begin_capture();
    bench.scope([&] {
        ASSERT_EQ(bench.engine.cu.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                  CuResult::success);
    });
    return bench.end_capture();
}

TEST(ProbesFailure, after_a_context_ended_graphs_of_a_new_one_are_timed) {
    ProbeBench bench;
    for (std::uint64_t key = 1; key <= 3; ++key) {
        SCOPED_TRACE(key);
        vgpu::Context context = nullptr;
        const KnownGraph graph = capture_in(context, bench);
        const auto probe = bench.captured(key, graph);
        ASSERT_NE(probe, nullptr);
        bench.samples.clear();
        bench.replay_until(*probe, graph, 400, [&] { return !bench.samples.empty(); });
        EXPECT_FALSE(bench.samples.empty()) << bench.row(key).twin_reason;
        ASSERT_EQ(bench.engine.cu.ctx_destroy(context), CuResult::success);
        bench.probes->evicted(key);
        bench.settle();
        EXPECT_TRUE(bench.probes->lost());
        EXPECT_NE(bench.probes->status().error().message.find("this CUDA context has ended"), std::string::npos);
    }
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(ProbesFailure, a_context_that_went_first_takes_the_twin_along) {
    ProbeBench bench;
    vgpu::Context context = nullptr;
    const KnownGraph graph = capture_in(context, bench);
    const auto probe = bench.captured(3, graph);
    bench.replay_until(*probe, graph, 400, [&] { return !bench.samples.empty(); });
    ASSERT_FALSE(bench.samples.empty()) << bench.row(3).twin_reason;
    ASSERT_EQ(bench.engine.cu.ctx_destroy(context), CuResult::success);
    bench.probes->evicted(3);
    bench.settle();
    bench.collect(true);
    EXPECT_TRUE(bench.probes->lost());
    EXPECT_FALSE(bench.probes->status().ok());
    bench.probes.reset();
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(ProbesFailure, a_launch_of_the_twin_that_fails_is_a_plain_one_and_drops_the_twin) {
    ProbeBench bench;
    ProbeOptions options;
    options.every = 4;
    bench.probes = std::make_unique<GraphProbes>(bench.recorder, options);
    const KnownGraph graph = capture_small(bench);
    const auto probe = bench.captured(3, graph);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    bench.settle();
    vgpu::fail("cuGraphLaunch", CuResult::out_of_memory, 1);
    EXPECT_TRUE(bench.replay(*probe, graph).ok()); // the fourth: the twin's turn
    EXPECT_TRUE(vgpu::all_failures_struck());
    bench.settle();
    const recording::GraphInfo row = bench.row(3);
    EXPECT_EQ(row.instrumented, 0u);
    EXPECT_EQ(row.twin_reason.rfind("its launch failed", 0), 0u) << row.twin_reason;
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

} // namespace
} // namespace plumb::cudagraph

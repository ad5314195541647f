// SPDX-License-Identifier: Apache-2.0
// Random graphs on the virtual GPU: what probes say against what happened.
#include <cmath>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

class RandomGraph {
  public:
    RandomGraph(ProbeBench& bench, std::uint64_t seed, bool branches)
        : bench_(bench), random_(seed), branches_(branches) {}

    KnownGraph capture() {
        bench_.begin_capture();
        const int layers = between(1, 4);
        scoped(0);
        for (int i = 0; i < layers; ++i) {
            bench_.layer(static_cast<std::uint32_t>(i), [&] {
                for (int brick = between(1, 3); brick > 0; --brick) {
                    scoped(0);
                }
            });
        }
        return bench_.end_capture();
    }

  private:
    int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
    void kernel(bool aside = false) { bench_.kernel(between(2'000, 60'000), aside); }

    void scoped(int depth) {
        bench_.scope([&] { inside(depth + 1); });
    }
    void inside(int depth) {
        for (int item = between(1, 3); item > 0; --item) {
            switch (between(0, depth < 4 ? 5 : 2)) {
            case 3:
                scoped(depth);
                break;
            case 4:
                bench_.laps(between(1, 4), [&](int) { kernel(); });
                break;
            case 5:
                branches_ ? branch() : kernel();
                break;
            default:
                kernel();
            }
        }
    }
    /// Some kernels beside others, with a scope of their own now and then.
    void branch() {
        kernel();
        const bool named = between(0, 1) == 0;
        bench_.fork([&] {
            const auto body = [&] {
                for (int i = between(1, 3); i > 0; --i) {
                    kernel(true);
                }
            };
            named ? bench_.scope(body, true) : body();
        });
        if (between(0, 1) == 0) {
            bench_.scope([&] { kernel(); });
        } else {
            kernel();
        }
        bench_.join();
        kernel();
    }

    ProbeBench& bench_;
    std::mt19937_64 random_;
    bool branches_;
};

struct Outcome {
    double worst_ns = 0;
    double worst_closure = 0;
    std::size_t scopes = 0;
};

struct Kind {
    bool branches = false;
    unsigned tick = 32;
    ProbeKind stamps = ProbeKind::event;
    const char* word = "event";
};

void check_graph(ProbeBench& bench, std::uint64_t seed, const Kind& kind, Outcome& outcome) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KnownGraph graph = RandomGraph(bench, seed, kind.branches).capture();
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(seed, graph);
    bench.samples.clear();
    std::size_t measured = 0; // scopes that hold a kernel
    for (const KnownScope& scope : graph.scopes) {
        measured += scope.kernels.empty() ? 0 : 1;
    }
    bench.replay_until(*probe, graph, 600,
                       [&] { return bench.samples.size() >= 4 * measured && !std::isnan(bench.row(seed).closure); });
    const recording::GraphInfo row = bench.row(seed);
    ASSERT_EQ(row.twin, kind.word) << row.twin_reason;
    EXPECT_TRUE(row.unattributed.empty());
    std::uint64_t nodes = 0;
    for (const recording::GraphSite& site : row.sites) {
        nodes += site.nodes;
    }
    EXPECT_EQ(nodes, graph.kernels);
    ASSERT_GE(bench.samples.size(), 4 * measured);
    for (const drain::DeviceSample& sample : bench.samples) {
        const KnownScope& scope = graph.scopes.at(sample.name - first_name);
        const Truth expected = ProbeBench::truth_of(scope, truth);
        const double off = static_cast<double>(sample.end_ticks - sample.begin_ticks) -
                           static_cast<double>(expected.end_ns - expected.begin_ns);
        EXPECT_LE(std::abs(off), kind.tick + 1'000 + row.site_cost_ns) << "scope " << sample.name;
        EXPECT_EQ(sample.layer_plus_one, scope.layer_plus_one);
        outcome.worst_ns = std::max(outcome.worst_ns, std::abs(off));
    }
    outcome.scopes += bench.samples.size();
    // The shortest of these graphs take some 10 us: there one gap between kernels is more than 5 %.
    EXPECT_LE(std::abs(row.closure), 0.05 + 1'000 / row.plain_span_ns) << row.closure_raw;
    outcome.worst_closure = std::max(outcome.worst_closure, std::abs(row.closure));
    bench.probes->evicted(seed);
    bench.settle();
    bench.destroy(graph);
}

void check_many(std::uint64_t first, std::uint64_t count, const Kind& kind) {
    vgpu::Config config;
    config.seed = first;
    config.event_tick_ns = kind.tick;
    ProbeOptions options;
    options.kind = kind.stamps;
    ProbeBench bench(config, options);
    Outcome outcome;
    for (std::uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
        check_graph(bench, seed, kind, outcome);
    }
    testing::Test::RecordProperty("worst_ns", std::to_string(outcome.worst_ns));
    testing::Test::RecordProperty("worst_closure", std::to_string(outcome.worst_closure));
    EXPECT_GT(outcome.scopes, 10 * count);
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_EQ(vgpu::alive().execs, 0u);
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    EXPECT_TRUE(vgpu::invalidations().empty());
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(ProbesRandom, scopes_of_chains_are_within_tick_and_stamp_cost_of_the_truth) { check_many(1, 1000, {}); }
TEST(ProbesRandom, scopes_of_branching_graphs_are_within_tick_and_stamp_cost_of_the_truth) {
    check_many(10'001, 1000, {.branches = true});
}
TEST(ProbesRandom, a_coarse_event_clock_is_within_its_tick) {
    check_many(20'001, 300, {.branches = true, .tick = 1'024});
}
TEST(ProbesRandom, stamp_kernels_are_within_their_tick_and_cost) {
    check_many(30'001, 500, {.branches = true, .stamps = ProbeKind::stamp, .word = "stamp"});
}

} // namespace
} // namespace plumb::cudagraph

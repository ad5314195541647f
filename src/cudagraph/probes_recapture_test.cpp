// SPDX-License-Identifier: Apache-2.0
// A key that is captured anew: what was measured of the old graph is no figure of the new one.
#include <cmath>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

void expect_nothing_measured(const recording::GraphInfo& row) {
    EXPECT_EQ(row.twin, "");
    EXPECT_EQ(row.track, 0u);
    EXPECT_EQ(row.every, 0u);
    for (const double figure :
         {row.twin_build_ns, row.twin_bytes, row.site_cost_ns, row.plain_span_ns, row.closure_raw, row.closure}) {
        EXPECT_TRUE(std::isnan(figure)) << figure;
    }
}

void replay_until_closed(ProbeBench& bench, Probe& probe, const KnownGraph& graph) {
    bench.replay_until(probe, graph, 800, [&] { return !std::isnan(bench.row(7).closure); });
    EXPECT_FALSE(std::isnan(bench.row(7).closure));
}

TEST(Recapture, figures_of_a_replaced_graph_do_not_outlive_it_though_its_last_samples_come_late) {
    ProbeBench bench;
    const KnownGraph first = capture_scopes(bench, 4, 20'000);
    const auto old = bench.captured(7, first);
    bench.probes->ledger().account(7)->measure([](recording::GraphInfo& info) { info.bytes = 1e6; });
    replay_until_closed(bench, *old, first);
    const std::uint32_t old_track = bench.row(7).track;
    const std::uint64_t instrumented = bench.row(7).instrumented;
    while (bench.row(7).instrumented == instrumented) {
        ASSERT_TRUE(old->launch(first.exec, bench.stream).ok()); // the last one is not read yet
    }
    const std::size_t before = bench.samples.size();
    const KnownGraph second = capture_scopes(bench, 2, 90'000);
    const auto now = bench.captured(7, second);
    expect_nothing_measured(bench.row(7));
    vgpu::run_dry();
    bench.collect();
    bench.settle();
    ASSERT_GT(bench.samples.size(), before);
    EXPECT_EQ(bench.samples.back().track, old_track);
    expect_nothing_measured(bench.row(7));
    replay_until_closed(bench, *now, second);
    const recording::GraphInfo row = bench.row(7);
    EXPECT_NE(row.track, old_track);
    EXPECT_EQ(bench.samples.back().track, row.track);
    EXPECT_EQ(bench.tracks.size(), 2u);
    EXPECT_NEAR(row.plain_span_ns, 2 * 90'000, 10'000);
}

TEST(Recapture, the_same_graph_captured_again_and_again_has_one_track) {
    ProbeBench bench;
    for (int i = 0; i < 5; ++i) {
        const KnownGraph graph = capture_scopes(bench, 4, 20'000);
        const auto probe = bench.captured(7, graph);
        EXPECT_TRUE(std::isnan(bench.row(7).closure));
        const std::size_t before = bench.samples.size();
        bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() > before; });
        ASSERT_GT(bench.samples.size(), before);
    }
    ASSERT_EQ(bench.tracks.size(), 1u);
    EXPECT_EQ(bench.row(7).track, bench.tracks[0].info.id);
    EXPECT_EQ(bench.samples.back().track, bench.tracks[0].info.id);
}

TEST(Recapture, a_graph_that_was_given_up_keeps_its_figures_and_takes_no_memory) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 4, 20'000);
    const auto probe = bench.captured(7, graph);
    bench.probes->ledger().account(7)->measure([](recording::GraphInfo& info) { info.bytes = 1e6; });
    replay_until_closed(bench, *probe, graph);
    EXPECT_GT(bench.row(7).twin_bytes, 1e6);
    bench.probes->evicted(7);
    bench.settle();
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.twin, "event") << "samples in the recording are of a twin";
    EXPECT_FALSE(std::isnan(row.closure));
    EXPECT_TRUE(std::isnan(row.twin_bytes)) << row.twin_bytes;
}

TEST(Recapture, a_twin_that_failed_takes_no_memory) {
    ProbeBench bench;
    const KnownGraph graph = capture_scopes(bench, 4, 20'000);
    const auto probe = bench.captured(7, graph);
    bench.probes->ledger().account(7)->measure([](recording::GraphInfo& info) { info.bytes = 1e6; });
    bench.replay_until(*probe, graph, 400, [&] { return !bench.samples.empty(); });
    ASSERT_GT(bench.row(7).twin_bytes, 1e6);
    const std::uint64_t instrumented = bench.row(7).instrumented;
    // Its next launch fails: plain ones are asked for one by one until it is its turn.
    for (int i = 0; i < 400 && !bench.row(7).twin.empty(); ++i) {
        if ((bench.row(7).replays + 1) % bench.row(7).every == 0) {
            vgpu::fail("cuGraphLaunch", vgpu::CuResult::invalid_value);
        }
        ASSERT_TRUE(bench.replay(*probe, graph).ok());
    }
    const recording::GraphInfo row = bench.row(7);
    EXPECT_EQ(row.instrumented, instrumented);
    EXPECT_EQ(row.twin, "");
    EXPECT_TRUE(std::isnan(row.twin_bytes)) << row.twin_bytes;
}

TEST(Recapture, tracks_of_one_key_are_bounded_and_the_row_says_when_they_ran_out) {
    GraphLedger ledger(1);
    const std::shared_ptr<GraphAccount> account = ledger.account(7);
    std::uint32_t made = 0;
    std::uint64_t number = 0;
    const auto choose = [&](std::uint64_t of, const std::string& clock) {
        return account->choose_track(of, "cuda_graph_event", clock, [&] { return ++made; });
    };
    const auto capture = [&](const std::string& clock) {
        number = account->captured();
        return choose(number, clock);
    };
    const auto reason = [&] {
        std::vector<recording::GraphInfo> infos;
        account->change([](recording::GraphInfo&) {});
        ledger.collect(infos, 0, true);
        return infos.at(0).twin_reason;
    };
    for (std::uint32_t i = 1; i <= GraphAccount::most_tracks; ++i) {
        const TrackChoice choice = capture("cuda:0");
        EXPECT_TRUE(choice.is_new);
        EXPECT_EQ(choice.id, i);
    }
    EXPECT_EQ(reason(), "");
    EXPECT_EQ(capture("cuda:1").id, 0u); // no track of that clock: none of another's
    EXPECT_EQ(reason(), "");
    const TrackChoice last = capture("cuda:0");
    EXPECT_FALSE(last.is_new);
    EXPECT_EQ(last.id, GraphAccount::most_tracks);
    EXPECT_EQ(made, GraphAccount::most_tracks);
    EXPECT_NE(reason().find("not told apart"), std::string::npos);
    EXPECT_EQ(choose(number - 1, "cuda:0").id, 0u);
}

} // namespace
} // namespace plumb::cudagraph

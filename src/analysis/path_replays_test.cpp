// SPDX-License-Identifier: Apache-2.0
// Captured graphs in the graph of a step: what they consist of is there with names, bricks, layers and edges; time only where
// it was measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/path_testing.hpp"
#include "recording/graph_content_codec.hpp"

namespace plumb::analysis::path_test {
namespace {

using planted::Tape;
using planted::us;
using recording::CapturedNode;
using recording::GraphContent;
using recording::GraphInfo;

constexpr std::uint32_t former_track = 0x80000003;

void add_tracks(Tape& source) {
    source.track(host);
    add_queue(source);
    for (const std::uint32_t id : {graph_track, former_track}) {
        recording::TrackInfo info;
        info.id = id;
        info.kind = recording::TrackKind::captured_graph;
        info.source = "cuda_graph_event";
        info.graph_key = 64;
        source.device_track(info);
    }
}

/// Kernels named by letters, each in the site of that number (from 1; 0: in none).
GraphInfo graph_of(const std::string& sites, std::vector<std::pair<std::uint32_t, std::uint32_t>> edges) {
    GraphContent content;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        recording::CapturedKind kind;
        kind.name = std::string(1, static_cast<char>('a' + i));
        kind.shaped = true;
        kind.grid[0] = static_cast<std::uint32_t>(i + 1);
        content.kinds.push_back(kind);
        content.nodes.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(sites[i] - '0'), 0});
    }
    content.edges = std::move(edges);
    GraphInfo info;
    info.key = 64;
    info.track = graph_track;
    info.captures = 1;
    info.content = std::make_shared<const GraphContent>(std::move(content));
    return info;
}

/// Two bricks of layer 4 with three kernels each: in the second, e and f run beside each other after d, and join in g.
GraphInfo forked() {
    GraphInfo info = graph_of("1112220", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 6}});
    info.sites = {{Name(Brick::rms_norm).id, 5, 0, 3, true, false}, {Name(Brick::attention).id, 5, 0, 3, true, false}};
    return info;
}

template <class Inside>
PathReport step_with(Tape& source, GraphInfo info, Inside inside) {
    add_tracks(source);
    source.graphs_ = {std::move(info)};
    source.step_begin(host, 1, Phase::decode, 0);
    source.step_value(host, StepValue::decode_tokens, 1);
    inside();
    source.step_end(host, Phase::decode, 0, 300 * us);
    return path_of(source);
}

PathReport sampled_step(Tape& source) {
    return step_with(source, forked(), [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 4, 20 * us, 50 * us);
        source.device_scope(graph_track, Brick::attention, 1, 4, 50 * us, 150 * us);
    });
}

TEST(PathReplays, F6_kernels_of_a_sampled_replay_have_name_brick_layer_shape_and_edges) {
    Tape source;
    const PathReport report = sampled_step(source);
    const char* const bricks[] = {"rms_norm", "rms_norm", "rms_norm", "attention", "attention", "attention"};
    for (std::size_t i = 0; i < 6; ++i) {
        const auto found = nodes(report, std::string(1, static_cast<char>('a' + i)));
        ASSERT_EQ(found.size(), 1u);
        const GraphNode& kernel = report.graph[found[0]];
        EXPECT_EQ(kernel.layer, 4u);
        EXPECT_TRUE(kernel.device);
        EXPECT_FALSE(kernel.timed) << "it shares the time of its brick";
        EXPECT_EQ(report.graph.name_of(kernel.parent), bricks[i]);
        EXPECT_EQ(report.graph[report.graph[kernel.parent].parent].kind, NodeKind::layer);
        EXPECT_EQ(report.graph.launch_of(found[0])->grid[0], i + 1);
    }
    const auto node = [&](const char* name) {
        return nodes(report, name).at(0);
    };
    EXPECT_TRUE(depends(report.graph, node("a"), node("b")));
    EXPECT_TRUE(depends(report.graph, node("d"), node("e"))) << "the fork";
    EXPECT_TRUE(depends(report.graph, node("d"), node("f")));
    EXPECT_TRUE(depends(report.graph, node("c"), node("d"))) << "from one brick to the next";
    EXPECT_TRUE(depends(report.graph, node("e"), node("g"))) << "the join";
    EXPECT_TRUE(depends(report.graph, node("f"), node("g")));
    EXPECT_FALSE(depends(report.graph, node("e"), node("f")));
    EXPECT_EQ(report.graph[node("g")].parent, nodes(report, "step 1", NodeKind::step).at(0)) << "in no scope";
    EXPECT_FALSE(noted(report, "left out"));
}

TEST(PathReplays, T10_a_brick_of_a_replay_and_its_kernels_never_both_count) {
    Tape source;
    const PathReport report = sampled_step(source);
    EXPECT_EQ(report.analysis.length_ns, 10 * us + 30 * us + 100 * us + 150 * us)
        << "launch, two bricks, and the host that waited for them";
    for (const PathRow& row : report.rows) {
        EXPECT_NE(row.kind, NodeKind::kernel) << row.name;
    }
    EXPECT_TRUE(report.slowest.empty()) << "a time that is not known is not the slowest";
    for (const NodeId id : report.analysis.path) {
        EXPECT_TRUE(report.graph[id].timed);
    }
}

TEST(PathReplays, T17_kernels_are_counted_by_brick_and_layer_and_those_of_the_host_are_told_apart) {
    Tape source;
    const PathReport report = step_with(source, forked(), [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.launch(host, 64, 0, queue, 10 * us, 20 * us);
        source.kernel(host, Name{300}, 30 * us);
        source.submit_scope(host, Brick::sampling, queue, 25 * us, 35 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 4, 20 * us, 50 * us);
        source.device_scope(graph_track, Brick::attention, 1, 4, 50 * us, 150 * us);
    });
    EXPECT_EQ(report.host_launches, 3u) << "two graphs and a kernel";
    EXPECT_EQ(report.graph_launches, 2u);
    EXPECT_EQ(report.graph_kernels, 14u);
    EXPECT_EQ(report.launches, 17u);
    EXPECT_DOUBLE_EQ(*report.launches_per_token.value, 17);
    EXPECT_DOUBLE_EQ(*report.host_launches_per_token.value, 3);
    std::map<std::string, const KernelRow*> rows;
    for (const KernelRow& row : report.kernels) {
        rows[row.name] = &row;
    }
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(*rows.at("attention")->kernels.value, 6);
    EXPECT_EQ(rows.at("attention")->in_graphs, 6u);
    EXPECT_EQ(rows.at("attention")->layer, 4u);
    EXPECT_EQ(*rows.at("outside any brick")->kernels.value, 2) << "g of each replay";
    EXPECT_EQ(rows.at("outside any brick")->layer, std::nullopt);
    EXPECT_EQ(*rows.at("sampling")->kernels.value, 1);
    EXPECT_EQ(rows.at("sampling")->in_graphs, 0u);
}

TEST(PathReplays, a_graph_that_was_never_sampled_is_there_without_any_time) {
    Tape source;
    const PathReport report = step_with(source, forked(), [&] { source.launch(host, 64, 0, queue, 0, 10 * us); });
    for (const char* name : {"a", "d", "g"}) {
        const auto found = nodes(report, name);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_FALSE(report.graph[found[0]].timed);
    }
    const auto bricks = nodes(report, "attention", NodeKind::brick);
    ASSERT_EQ(bricks.size(), 1u);
    EXPECT_FALSE(report.graph[bricks[0]].timed);
    EXPECT_EQ(report.graph[report.graph[bricks[0]].parent].layer, 4u);
    EXPECT_TRUE(depends(report.graph, nodes(report, "c").at(0), nodes(report, "d").at(0)));
    EXPECT_TRUE(
        depends(report.graph, nodes(report, "launch graph 64", NodeKind::task).at(0), nodes(report, "a").at(0)));
    EXPECT_EQ(report.analysis.length_ns, 300 * us);
    EXPECT_TRUE(noted(report, "1 replays of captured graphs in this step were not sampled"));
    EXPECT_EQ(report.graph_kernels, 7u);
}

TEST(PathReplays, a_kernel_alone_in_its_scope_has_its_time_and_its_work) {
    Tape source;
    GraphInfo info = graph_of("12", {{0, 1}});
    info.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false}, {Name(Brick::attention).id, 1, 0, 1, true, false}};
    const PathReport report = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 0, 20 * us, 50 * us);
        source.device_scope(graph_track, Brick::attention, 1, 0, 50 * us, 150 * us);
    });
    ASSERT_EQ(report.slowest.size(), 2u);
    EXPECT_EQ(report.graph.name_of(report.slowest[0].node), "b");
    EXPECT_EQ(report.graph[report.slowest[0].node].duration_ns, 100 * us);
    EXPECT_EQ(report.analysis.length_ns, 290 * us);
}

/// Two branches that ran one after the other by chance, and what joins them.
PathReport by_chance(bool with_nodes) {
    Tape source;
    GraphInfo info = graph_of("123", {{0, 2}, {1, 2}});
    info.sites = {{Name(Brick::gate_projection).id, 1, 0, 1, true, false},
                  {Name(Brick::up_projection).id, 1, 0, 1, true, false},
                  {Name(Brick::activation).id, 1, 0, 1, true, false}};
    if (!with_nodes) {
        info.content = nullptr;
    }
    return step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::gate_projection, 1, 0, 20 * us, 60 * us);
        source.device_scope(graph_track, Brick::up_projection, 1, 0, 60 * us, 110 * us);
        source.device_scope(graph_track, Brick::activation, 1, 0, 110 * us, 120 * us);
    });
}

TEST(PathReplays, T10_branches_of_a_graph_depend_on_its_edges_and_not_on_when_they_happened_to_run) {
    const PathReport known = by_chance(true), unknown = by_chance(false);
    EXPECT_EQ(unknown.analysis.length_ns, (10 + 40 + 50 + 10 + 180) * us) << "in order of time";
    EXPECT_EQ(known.analysis.length_ns, (10 + 50 + 10 + 180) * us);
    const auto slack_of = [&](const char* name) {
        return known.analysis.slack_ns[nodes(known, name, NodeKind::brick).at(0)];
    };
    EXPECT_EQ(slack_of("gate_projection"), 10 * us);
    EXPECT_EQ(slack_of("up_projection"), 0);
    EXPECT_TRUE(depends(known.graph, nodes(known, "gate_projection", NodeKind::brick).at(0),
                        nodes(known, "activation", NodeKind::brick).at(0)));
    EXPECT_FALSE(depends(known.graph, nodes(known, "gate_projection", NodeKind::brick).at(0),
                         nodes(known, "up_projection", NodeKind::brick).at(0)));
}

TEST(PathReplays, kernels_in_no_timed_scope_lead_from_one_brick_to_the_next) {
    Tape source;
    GraphInfo info = graph_of("1023", {{0, 1}, {1, 2}, {2, 3}}); // the third scope is not timed in this replay
    info.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false},
                  {Name(Brick::attention).id, 1, 0, 1, true, false},
                  {Name(Brick::lm_head).id, 0, 0, 1, true, false}};
    const PathReport report = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 0, 20 * us, 50 * us);
        source.device_scope(graph_track, Brick::attention, 1, 0, 70 * us, 150 * us);
    });
    EXPECT_EQ(report.analysis.length_ns, (10 + 30 + 80 + 150) * us);
    EXPECT_EQ(nodes(report, "lm_head", NodeKind::brick).size(), 1u);
    EXPECT_FALSE(report.graph[nodes(report, "d").at(0)].timed);
}

TEST(PathReplays, T10_a_fork_in_the_middle_of_a_scope_waits_for_all_that_came_before_that_scope) {
    Tape source;
    // a, then b and c in one scope; after b, beside c: d in no scope, and e in one of its own.
    GraphInfo info = graph_of("12203", {{0, 1}, {1, 2}, {1, 3}, {3, 4}});
    info.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false},
                  {Name(Brick::attention).id, 1, 0, 2, true, false},
                  {Name(Brick::gate_projection).id, 1, 0, 1, true, false}};
    const PathReport report = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 0, 20 * us, 50 * us);
        source.device_scope(graph_track, Brick::attention, 1, 0, 50 * us, 150 * us);
        source.device_scope(graph_track, Brick::gate_projection, 1, 0, 60 * us, 260 * us);
    });
    EXPECT_EQ(report.analysis.length_ns, (10 + 30 + 200 + 40) * us) << "launch, rms_norm, the longer branch, host";
    EXPECT_FALSE(noted(report, "left out"));
}

TEST(PathReplays, two_replays_of_a_graph_in_one_step_follow_each_other_with_nodes_of_their_own) {
    Tape source;
    const PathReport report = step_with(source, forked(), [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.launch(host, 64, launch_instrumented, queue, 10 * us, 15 * us);
        for (const std::int64_t begin : {20 * us, 150 * us}) {
            source.device_scope(graph_track, Brick::rms_norm, 1, 4, begin, begin + 30 * us);
            source.device_scope(graph_track, Brick::attention, 1, 4, begin + 30 * us, begin + 130 * us);
        }
    });
    EXPECT_EQ(nodes(report, "a").size(), 2u);
    EXPECT_EQ(report.analysis.length_ns, (10 + 130 + 130 + 20) * us);
}

TEST(PathReplays, nodes_of_a_graph_that_was_replaced_under_its_key_are_not_those_of_the_new_one) {
    Tape source;
    GraphInfo info = forked();
    info.captures = 2;
    const PathReport replaced = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(former_track, Brick::lm_head, 1, -1, 20 * us, 50 * us);
    });
    EXPECT_TRUE(nodes(replaced, "a").empty());
    EXPECT_TRUE(noted(replaced, "replaced under their keys"));
    Tape unsampled;
    const PathReport last = step_with(unsampled, info, [&] { unsampled.launch(host, 64, 0, queue, 0, 10 * us); });
    EXPECT_EQ(nodes(last, "a").size(), 1u);
    EXPECT_TRUE(noted(last, "Graph 64 was captured 2 times: its nodes are those of the last capture."));
}

TEST(PathReplays, edges_that_the_times_contradict_are_left_out_and_told) {
    Tape source;
    GraphInfo info = graph_of("12", {{0, 1}});
    info.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false}, {Name(Brick::attention).id, 1, 0, 1, true, false}};
    const PathReport report = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 0, 20 * us, 90 * us); // a programmatic launch: both ran
        source.device_scope(graph_track, Brick::attention, 1, 0, 50 * us, 150 * us);
    });
    EXPECT_TRUE(noted(report, "1 edges of captured graphs lead to what began before the earlier had ended"));
    EXPECT_EQ(report.analysis.length_ns, (10 + 100 + 150) * us);
}

TEST(PathReplays, T11_a_replay_too_large_for_the_step_is_shown_without_its_nodes_and_still_counted) {
    Tape source;
    GraphInfo info;
    info.key = 64;
    info.captures = 1;
    GraphContent large;
    large.kinds = {{recording::CapturedKind::kernel, "k"}};
    large.nodes.resize(recording::most_captured_nodes, CapturedNode{0, 0, 0});
    info.content = std::make_shared<const GraphContent>(std::move(large));
    const PathReport report = step_with(source, info, [&] {
        for (int i = 0; i < 40; ++i) {
            source.launch(host, 64, 0, queue, i * us, (i + 1) * us);
        }
    });
    EXPECT_TRUE(noted(report, "8 replays of captured graphs are shown without what they consist of"));
    EXPECT_LT(report.graph.size(), 1'100'000u);
    EXPECT_EQ(report.graph_kernels, 40u * recording::most_captured_nodes);
}

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>; // begin and end

/// A random graph of up to 10 kernels in up to 5 scopes; `times_of` gives each scope its time, none where it has no length.
template <class TimesOf>
PathReport random_replay(std::mt19937& random, TimesOf times_of) {
    const auto below = [&](std::uint32_t bound) {
        return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
    };
    const std::uint32_t sites = 1 + below(5), count = 1 + below(10);
    std::string of_site;
    for (std::uint32_t i = 0; i < count; ++i) {
        of_site += static_cast<char>('0' + below(sites + 1));
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t i = below(2 * count); i > 0 && count > 1; --i) {
        const std::uint32_t to = 1 + below(count - 1);
        edges.emplace_back(below(to), to);
    }
    GraphInfo info = graph_of(of_site, edges);
    for (std::uint32_t i = 0; i < sites; ++i) {
        info.sites.push_back({static_cast<std::uint16_t>(1 + i), 1, 0, 1, true, false});
    }
    const Times times = times_of(info);
    Tape source;
    const PathReport report = step_with(source, info, [&] {
        source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
        for (std::uint32_t i = 0; i < sites; ++i) {
            if (times[i].first <= times[i].second && below(4) != 0) {
                source.device_scope(graph_track, Name{static_cast<std::uint16_t>(1 + i)}, 1, 0, times[i].first,
                                    times[i].second);
            }
        }
    });
    EXPECT_EQ(report.graph_kernels, count);
    return report;
}

TEST(PathReplays, T10_the_path_is_no_longer_than_what_was_measured_though_times_and_edges_are_nonsense) {
    std::mt19937 random(5);
    const auto below = [&](std::uint32_t bound) {
        return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random);
    };
    for (int round = 0; round < 3000; ++round) {
        const PathReport report = random_replay(random, [&](const GraphInfo& info) {
            Times times;
            for (std::size_t i = 0; i < info.sites.size(); ++i) {
                const std::int64_t begin = below(6) * 10 * us + 20 * us;
                times.emplace_back(begin, begin + below(5) * 10 * us);
            }
            return times;
        });
        ASSERT_LE(static_cast<double>(report.analysis.length_ns), report.span_ns) << "round " << round;
    }
}

TEST(PathReplays, T10_times_that_a_device_can_have_contradict_no_edges_however_scopes_lie) {
    std::mt19937 random(6);
    for (int round = 0; round < 3000; ++round) {
        const PathReport report = random_replay(random, [&](const GraphInfo& info) {
            const GraphContent& content = *info.content;
            std::vector<std::int64_t> end(content.nodes.size());
            Times times(info.sites.size(), {1'000'000 * us, 0});
            for (std::uint32_t node = 0; node < end.size(); ++node) { // each when all that it waits for is over
                std::int64_t begin = 20 * us;
                for (const auto& [from, to] : content.edges) {
                    begin = to == node ? std::max(begin, end[from]) : begin;
                }
                end[node] = begin + (1 + static_cast<std::int64_t>(random() % 3)) * 10 * us;
                if (const std::uint32_t site = content.nodes[node].site_plus_one; site != 0) {
                    times[site - 1].first = std::min(times[site - 1].first, begin);
                    times[site - 1].second = std::max(times[site - 1].second, end[node]);
                }
            }
            return times;
        });
        ASSERT_LE(static_cast<double>(report.analysis.length_ns), report.span_ns) << "round " << round;
        ASSERT_FALSE(noted(report, "contradict the rest")) << "round " << round;
    }
}

} // namespace
} // namespace plumb::analysis::path_test

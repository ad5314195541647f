// SPDX-License-Identifier: Apache-2.0
// What a device scope comes after: the launch that the recording names, or one inferred for recordings that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/path_testing.hpp"

namespace plumb::analysis::path_test {
namespace {

using planted::Tape;
using planted::us;
using resolve::NodeKey;

/// Three launches of one brick in one layer by two threads, in [10 i, 10 i + 2) us, and their scopes [100 + 10 i, 105 + 10 i).
struct Engine {
    explicit Engine(bool tells_launches) : tells(tells_launches) {
        source.track(host);
        source.track(worker, "worker");
        add_queue(source);
        source.step_begin(host, 0, Phase::decode, 0);
        source.context(host, 0, 0);
        source.context(worker, 0, 0);
    }
    NodeKey launch(std::uint32_t thread, std::int64_t i) {
        return source.submit_scope(thread, Brick::attention, queue, 10 * i * us, (10 * i + 2) * us);
    }
    void ran(NodeKey submission, std::int64_t i) {
        if (tells) {
            source.cause(queue, submission);
        }
        source.device_scope(queue, Brick::attention, 0, 0, (100 + 10 * i) * us, (105 + 10 * i) * us);
    }
    PathReport path() {
        source.context_end(worker);
        source.context_end(host);
        source.step_end(host, Phase::decode, 0, 200 * us);
        return path_of(source);
    }
    Tape source;
    bool tells;
};

/// "10>110": the launch that began at 10 us before the scope that began at 110 us.
std::vector<std::string> links(const PathReport& report) {
    const ExecGraph& graph = report.graph;
    std::vector<std::string> found;
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        const NodeId from = graph.node_of_row(row);
        for (std::uint64_t e = graph.offsets()[row]; e < graph.offsets()[row + 1]; ++e) {
            const NodeId to = graph.node_of_row(graph.targets()[e]);
            if (graph.name_of(from) == "submit attention" && graph[to].device) {
                found.push_back(std::to_string(graph[from].begin_ns / us) + ">" +
                                std::to_string(graph[to].begin_ns / us));
            }
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

using Links = std::vector<std::string>;

std::ptrdiff_t inferred_notes(const PathReport& report) {
    return std::count(report.notes.begin(), report.notes.end(), resolve::inferred_launches_note);
}

TEST(PathLaunches, each_scope_comes_after_its_own_launch_whatever_the_order_and_the_thread) {
    Engine engine(true);
    const std::vector<NodeKey> made{engine.launch(host, 1), engine.launch(worker, 2), engine.launch(host, 3)};
    engine.ran(made[1], 1);
    engine.ran(made[2], 2);
    engine.ran(made[0], 3);
    const PathReport report = engine.path();
    EXPECT_EQ(links(report), (Links{"10>130", "20>110", "30>120"}));
    EXPECT_EQ(inferred_notes(report), 0);
}

TEST(PathLaunches, T10_a_launch_or_a_scope_that_was_lost_unlinks_no_other) {
    Engine engine(true);
    const NodeKey first = engine.launch(host, 1);
    const NodeKey lost{worker, engine.source.written(worker) + 1};
    engine.source.lose(worker, 2);
    (void)engine.launch(host, 2); // its scope is not there
    const NodeKey last = engine.launch(host, 3);
    engine.ran(first, 1);
    engine.ran(lost, 2);
    engine.ran(last, 3);
    const PathReport report = engine.path();
    EXPECT_EQ(links(report), (Links{"10>110", "30>130"}));
    EXPECT_EQ(inferred_notes(report), 0);
}

TEST(PathLaunches, links_that_a_recording_does_not_tell_are_inferred_and_told_once) {
    Engine engine(false);
    for (const std::int64_t i : {1, 2, 3}) {
        engine.ran(engine.launch(host, i), i);
    }
    const PathReport report = engine.path();
    EXPECT_EQ(links(report), (Links{"10>110", "20>120", "30>130"}));
    EXPECT_EQ(inferred_notes(report), 1);
}

/// A replay's scopes follow each other on their queue: its launch comes before the first.
TEST(PathLaunches, a_linked_replay_comes_before_its_first_scope_and_its_kernels_are_counted) {
    Engine engine(true);
    const NodeKey replay = engine.source.launch(host, 64, launch_linked, queue, 10 * us, 20 * us);
    for (const std::int64_t i : {1, 2, 3}) {
        engine.ran(replay, i);
    }
    const PathReport report = engine.path();
    std::vector<NodeId> followers;
    for (std::uint32_t row = 0; row < report.graph.rows(); ++row) {
        if (report.graph.name_of(report.graph.node_of_row(row)) == "launch graph 64") {
            for (std::uint64_t e = report.graph.offsets()[row]; e < report.graph.offsets()[row + 1]; ++e) {
                const NodeId to = report.graph.node_of_row(report.graph.targets()[e]);
                if (report.graph[to].device) {
                    followers.push_back(to);
                }
            }
        }
    }
    ASSERT_EQ(followers.size(), 1U);
    EXPECT_EQ(report.graph[followers[0]].begin_ns, 110 * us);
    EXPECT_EQ(report.graph_launches, 1U);
    EXPECT_EQ(report.graph_kernels, 3U);
    for (const std::string& note : report.notes) {
        EXPECT_EQ(note.find("not sampled"), std::string::npos);
    }
}

} // namespace
} // namespace plumb::analysis::path_test

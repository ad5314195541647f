// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_builder.hpp"

#include <gtest/gtest.h>

#include "analysis/path_testing.hpp"

namespace plumb::analysis::path_test {
namespace {

using planted::Tape;
using planted::us;

std::string error_of(Tape& source, const PathOptions& options = {}) {
    const auto report = build_path(source, options);
    return report.ok() ? "" : report.error().message;
}

const PathRow& row(const PathReport& report, const std::string& name) {
    static const PathRow none;
    for (const PathRow& candidate : report.rows) {
        if (candidate.name == name) {
            return candidate;
        }
    }
    ADD_FAILURE() << "no row " << name;
    return none;
}

/// A layer of 80 us in a step of 100: two bricks, and what lies between them.
void add_host_step(Tape& source, std::uint64_t id, std::int64_t begin, std::int64_t longer = 0) {
    source.step_begin(host, id, Phase::decode, begin);
    source.step_value(host, StepValue::decode_tokens, 1);
    source.layer_begin(host, 3, begin + 10 * us);
    source.scope(host, Brick::rms_norm, begin + 20 * us, begin + 40 * us);
    source.scope(host, Brick::attention, begin + 50 * us, begin + 80 * us);
    source.layer_end(host, 3, begin + 10 * us, begin + 90 * us);
    source.step_end(host, Phase::decode, begin, begin + 100 * us + longer);
}

TEST(Path, T10_a_step_on_one_track_is_as_long_as_its_path_and_no_parent_counts_beside_its_children) {
    Tape source;
    source.track(host);
    add_host_step(source, 7, 0);
    const PathReport report = path_of(source);
    EXPECT_EQ(report.step, 7u);
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    EXPECT_DOUBLE_EQ(report.span_ns, 100.0 * us);
    EXPECT_DOUBLE_EQ(row(report, "attention").path_ns, 30.0 * us);
    EXPECT_DOUBLE_EQ(*row(report, "attention").gain_ns.value, 30.0 * us);
    EXPECT_DOUBLE_EQ(row(report, "unattributed").path_ns, 50.0 * us);
    for (const NodeId id : report.analysis.path) {
        EXPECT_FALSE(report.graph[id].container);
    }
    const NodeId brick = report.analysis.path[1];
    EXPECT_EQ(report.graph.name_of(brick), "rms_norm");
    EXPECT_EQ(report.graph.name_of(report.graph[brick].parent), "layer 3");
    EXPECT_EQ(report.graph[report.graph[report.graph[brick].parent].parent].kind, NodeKind::step);
}

TEST(Path, a_step_within_the_step_holds_its_own_layers_and_its_bricks_are_no_unattributed_time) {
    Tape source;
    source.track(host);
    source.step_begin(host, 7, Phase::decode, 0);
    source.layer_begin(host, 3, 0);
    source.scope(host, Brick::attention, 10 * us, 30 * us);
    source.layer_end(host, 3, 0, 40 * us);
    source.step_begin(host, 8, Phase::decode, 50 * us); // of a draft model
    source.layer_begin(host, 3, 50 * us);
    source.scope(host, Brick::rms_norm, 50 * us, 70 * us);
    source.layer_end(host, 3, 50 * us, 70 * us);
    source.step_end(host, Phase::decode, 50 * us, 80 * us);
    source.step_end(host, Phase::decode, 0, 100 * us);
    PathOptions options;
    options.step = 7;
    const PathReport report = path_of(source, options);
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    EXPECT_DOUBLE_EQ(row(report, "attention").path_ns, 20.0 * us);
    EXPECT_DOUBLE_EQ(row(report, "rms_norm").path_ns, 20.0 * us);
    EXPECT_DOUBLE_EQ(row(report, "unattributed").path_ns, 60.0 * us);
    const auto layers = nodes(report, "layer 3", NodeKind::layer);
    ASSERT_EQ(layers.size(), 2u);
    const auto within = nodes(report, "step 8", NodeKind::step);
    ASSERT_EQ(within.size(), 1u);
    EXPECT_EQ(report.graph[layers[1]].parent, within[0]);
    EXPECT_EQ(report.graph[layers[0]].parent, report.graph[within[0]].parent);
    EXPECT_EQ(report.graph.name_of(report.graph[within[0]].parent), "step 7");
    options.step = 8;
    EXPECT_EQ(path_of(source, options).analysis.length_ns, 30 * us);
}

TEST(Path, the_step_is_the_median_counted_decode_step_unless_one_is_asked_for) {
    Tape source;
    source.track(host);
    source.metadata_.warmup_steps = 1;
    const std::int64_t longer[] = {0, 90, 10, 40, 70, 20}; // the first one is warm-up
    for (std::uint64_t i = 0; i < 6; ++i) {
        add_host_step(source, i, static_cast<std::int64_t>(i) * 1000 * us, longer[i] * us);
    }
    EXPECT_EQ(path_of(source).step, 3u);
    EXPECT_EQ(path_of(source).candidates, 5u);
    PathOptions options;
    options.step = 4;
    EXPECT_EQ(path_of(source, options).step, 4u);
    EXPECT_EQ(path_of(source, options).candidates, 0u);
    options.step = 6;
    EXPECT_EQ(error_of(source, options), "there is no complete step 6 in this recording; its steps are 0 to 5");
}

TEST(Path, a_recording_without_steps_says_what_to_put_into_the_engine) {
    Tape source;
    source.track(host);
    source.scope(host, Brick::attention, 0, 10 * us);
    EXPECT_NE(error_of(source).find("PLUMB_STEP"), std::string::npos);
    source.step_begin(host, 1, Phase::none, 20 * us);
    source.step_end(host, Phase::none, 20 * us, 30 * us);
    EXPECT_NE(error_of(source).find("are of phase none"), std::string::npos);
}

TEST(Path, work_of_another_thread_beside_the_step_has_slack_and_is_not_added) {
    Tape source;
    source.track(host);
    source.track(worker, "worker");
    add_host_step(source, 1, 0);
    source.context(worker, 1);
    source.scope(worker, Brick::kv_append, 5 * us, 45 * us);
    source.context_end(worker);
    const PathReport report = path_of(source);
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    EXPECT_DOUBLE_EQ(row(report, "kv_append").slack_ns, 60.0 * us);
    EXPECT_EQ(row(report, "kv_append").on_path, 0u);
}

/// Two scopes on a stream: submitted in 5 us each, on the device for 100 and 200 us one after the other; the host then waits
/// and works for 30 us more.
void add_device_step(Tape& source) {
    source.step_begin(host, 1, Phase::decode, 0);
    source.step_value(host, StepValue::decode_tokens, 4);
    source.submit_scope(host, Brick::attention, queue, 10 * us, 15 * us);
    source.submit_scope(host, Brick::lm_head, queue, 20 * us, 25 * us);
    source.device_scope(queue, Brick::attention, 1, -1, 20 * us, 120 * us);
    source.device_scope(queue, Brick::lm_head, 1, -1, 120 * us, 320 * us);
    source.step_end(host, Phase::decode, 0, 350 * us);
}

TEST(Path, T10_the_path_goes_through_the_launch_to_the_device_and_back_to_the_host_that_waited) {
    Tape source;
    source.track(host);
    add_queue(source);
    add_device_step(source);
    const PathReport report = path_of(source);
    std::vector<std::string> names;
    for (const NodeId id : report.analysis.path) {
        names.push_back(report.graph.name_of(id));
    }
    EXPECT_EQ(names,
              (std::vector<std::string>{"unattributed", "submit attention", "attention", "lm_head", "unattributed"}));
    EXPECT_EQ(report.analysis.length_ns, (10 + 5 + 100 + 200 + 30) * us);
    EXPECT_DOUBLE_EQ(report.span_ns, 350.0 * us);
    EXPECT_DOUBLE_EQ(row(report, "submit lm_head").slack_ns, 90.0 * us) << "it could come 90 us later";
    EXPECT_DOUBLE_EQ(*report.launches_per_token.value, 0.5);
    EXPECT_TRUE(report.slowest.empty()) << "a brick on a device is no kernel";
    ASSERT_EQ(report.kernels.size(), 2u);
    EXPECT_FALSE(report.kernels[0].kernels.value) << "nobody counted them";
}

TEST(Path, of_several_queues_it_is_said_that_no_recording_tells_which_waited_for_which) {
    for (const bool two : {false, true}) {
        Tape source;
        source.track(host);
        add_queue(source);
        recording::TrackInfo other;
        other.id = queue + 1;
        other.kind = recording::TrackKind::device_queue;
        source.device_track(other);
        add_device_step(source);
        if (two) {
            source.device_scope(queue + 1, Brick::kv_append, 1, -1, 120 * us, 320 * us);
        }
        const PathReport report = path_of(source);
        EXPECT_EQ(std::any_of(report.notes.begin(), report.notes.end(),
                              [](const std::string& note) { return note.find("Work ran on 2 queues") == 0; }),
                  two);
    }
}

TEST(Path, a_scope_that_begins_while_it_is_still_being_submitted_waits_for_the_part_before_only) {
    Tape source;
    source.track(host);
    add_queue(source);
    source.step_begin(host, 1, Phase::decode, 0);
    source.submit_scope(host, Brick::attention, queue, 10 * us, 60 * us);
    source.device_scope(queue, Brick::attention, 1, -1, 20 * us, 120 * us);
    source.step_end(host, Phase::decode, 0, 120 * us);
    const PathReport report = path_of(source);
    EXPECT_EQ(report.analysis.length_ns, 120 * us);
    EXPECT_LE(static_cast<double>(report.analysis.length_ns), report.span_ns);
}

TEST(Path, branches_inside_a_replay_are_beside_each_other_and_both_wait_for_the_launch) {
    Tape source;
    source.track(host);
    add_queue(source);
    recording::TrackInfo info;
    info.id = graph_track;
    info.kind = recording::TrackKind::captured_graph;
    info.source = "cuda_graph_event";
    info.graph_key = 64;
    source.device_track(info);
    recording::GraphInfo graph;
    graph.key = 64;
    graph.track = graph_track;
    graph.captures = 1;
    graph.sites = {{Name(Brick::attention).id, 1, 0, 3, true, false},
                   {Name(Brick::moe_experts).id, 1, 0, 2, true, false}};
    source.graphs_ = {graph};
    source.step_begin(host, 1, Phase::decode, 0);
    source.launch(host, 64, launch_instrumented, queue, 0, 10 * us);
    source.device_scope(graph_track, Brick::attention, 1, 0, 20 * us, 120 * us);
    source.device_scope(graph_track, Brick::moe_experts, 1, 0, 30 * us, 60 * us);
    source.step_end(host, Phase::decode, 0, 10 * us);
    const PathReport report = path_of(source);
    EXPECT_EQ(report.analysis.length_ns, 110 * us);
    EXPECT_DOUBLE_EQ(row(report, "moe_experts").slack_ns, 70.0 * us);
    ASSERT_EQ(report.kernels.size(), 2u);
    EXPECT_EQ(report.kernels[0].layer, 0u);
    EXPECT_DOUBLE_EQ(*report.kernels[0].kernels.value, 3);
    EXPECT_EQ(report.kernels[1].name, "moe_experts");
}

TEST(Path, T11_a_copy_that_comes_back_within_the_window_is_named_and_a_clean_step_names_none) {
    Tape source;
    source.track(host);
    source.step_begin(host, 1, Phase::decode, 0);
    source.work(host, Brick::copy_d2h, WorkQuantity::bytes, 4096);
    source.work(host, Brick::copy_h2d, WorkQuantity::bytes, 4096);
    source.scope(host, Brick::copy_d2h, 10 * us, 20 * us, flag_work);
    source.scope(host, Brick::copy_h2d, 50 * us, 60 * us, flag_work);
    source.step_end(host, Phase::decode, 0, 100 * us);
    PathOptions options;
    options.window_ns = 30 * us;
    EXPECT_EQ(path_of(source, options).ping_pong.size(), 1u);
    options.window_ns = 29 * us;
    EXPECT_TRUE(path_of(source, options).ping_pong.empty());
    options.window_ns = -1;
    EXPECT_NE(error_of(source, options).find("negative"), std::string::npos);
}

TEST(Path, a_thousand_branches_that_all_overlap_and_join_cost_a_few_edges_each) {
    Tape source;
    source.track(host);
    add_queue(source);
    source.step_begin(host, 1, Phase::decode, 0);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 1000; ++i) {
            source.device_scope(queue, Brick::attention, 1, -1, (round * 5000 + i) * us,
                                (round * 5000 + 2000 + i) * us);
        }
    }
    source.step_end(host, Phase::decode, 0, 10 * us);
    const PathReport report = path_of(source);
    EXPECT_LT(report.graph.edges(), 8000u);
    EXPECT_EQ(report.analysis.length_ns, 4000 * us);
}

} // namespace
} // namespace plumb::analysis::path_test

// SPDX-License-Identifier: Apache-2.0
#include "analysis/replay_builder.hpp"

#include <gtest/gtest.h>

#include "planted/tape.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;
using planted::us;

constexpr std::uint32_t host_track = 1, graph_track = 0x80000100;

ReplayReport replays_of(Tape& source) {
    const auto report = build_replays(source);
    EXPECT_TRUE(report.ok());
    return report.ok() ? *report : ReplayReport{};
}

recording::GraphInfo captured(std::uint64_t key) {
    recording::GraphInfo info;
    info.key = key;
    info.captures = 1;
    info.instantiations = 1;
    info.nodes = {{"kernel", 3}};
    info.sites = {{Name(Brick::rms_norm).id, 1, 0, 1, true, false}, {Name(Brick::attention).id, 1, 0, 2, true, false}};
    return info;
}

Tape with_graph_track(std::uint64_t key) {
    Tape source;
    source.track(host_track);
    recording::TrackInfo info;
    info.id = graph_track;
    info.kind = recording::TrackKind::captured_graph;
    info.source = "cuda_graph_event";
    info.graph_key = key;
    source.device_track(info);
    return source;
}

TEST(Replays, what_the_run_lost_is_said) {
    Tape source = with_graph_track(64);
    source.graphs_ = {captured(64)};
    EXPECT_TRUE(replays_of(source).notes.empty());
    source.counters_.drops = {{"ring full", 7}};
    const ReplayReport report = replays_of(source);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].rfind("7 records of this run were lost", 0), 0u);
}

TEST(Replays, T18_a_graph_that_lost_kernels_between_two_captures_is_named_with_them) {
    Tape source = with_graph_track(64);
    recording::GraphInfo bad = captured(64);
    bad.captures = 2;
    bad.node_checks = 1;
    bad.node_changes = {{"rope_kernel", 28, 0}, {"copy_kernel", 1, 2}};
    recording::GraphInfo good = captured(32);
    good.captures = 3;
    good.node_checks = 2;
    source.graphs_ = {bad, good};
    const ReplayReport report = replays_of(source);
    EXPECT_EQ(report.node_check, NodeCheck::differ);
    ASSERT_EQ(report.graphs.size(), 2u);
    EXPECT_EQ(report.graphs[0].key, 32u);
    EXPECT_TRUE(report.graphs[0].node_changes.empty()) << "a clean one raises nothing";
    ASSERT_EQ(report.graphs[1].node_changes.size(), 2u);
    EXPECT_EQ(report.graphs[1].node_changes[0].kernel, "rope_kernel");
    EXPECT_EQ(report.graphs[1].node_changes[0].before, 28u);
    EXPECT_EQ(report.graphs[1].node_changes[0].after, 0u);
    source.graphs_ = {good};
    EXPECT_EQ(replays_of(source).node_check, NodeCheck::agree);
    source.graphs_ = {captured(1)};
    EXPECT_EQ(replays_of(source).node_check, NodeCheck::not_compared) << "one capture agrees with nothing";
}

TEST(Replays, F11_a_key_has_the_time_of_the_device_from_stamps_or_none_never_that_of_the_launch) {
    Tape source = with_graph_track(64);
    recording::GraphInfo info = captured(64);
    info.replays = 100;
    info.launch_ns = 100 * 5e3;
    info.site_cost_ns = 1'000;
    recording::GraphInfo unsampled = captured(65);
    unsampled.replays = 50;
    unsampled.launch_ns = 50 * 5e3;
    source.graphs_ = {info, unsampled};
    for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t t = i * 1000 * us;
        source.launch(host_track, 64, launch_instrumented, 1, t, t + 5 * us);
        source.device_scope(graph_track, Brick::rms_norm, 0, 0, t + 10 * us, t + 30 * us);
        source.device_scope(graph_track, Brick::attention, 0, 0, t + 30 * us, t + 110 * us);
    }
    const ReplayReport report = replays_of(source);
    ASSERT_EQ(report.graphs.size(), 2u);
    EXPECT_NEAR(report.graphs[0].device_ns.value.value(), 100e3, 1e-6);
    EXPECT_NEAR(report.graphs[0].raw_device_ns.value.value(), 102e3, 1e-6);
    EXPECT_EQ(report.graphs[0].sites, 2u);
    EXPECT_EQ(report.graphs[0].sites_timed, 2u);
    EXPECT_EQ(report.graphs[0].instrumented, 4u) << "the launches know more than a row written earlier";
    EXPECT_FALSE(report.graphs[1].device_ns.value.has_value());
    EXPECT_EQ(report.graphs[1].device_ns.reason, "no replay was sampled");
    EXPECT_NEAR(report.graphs[1].launch_ns.value.value(), 250e3, 1e-6);
}

TEST(Replays, the_time_of_launches_is_of_those_that_a_row_of_a_run_cut_short_had_seen) {
    Tape source = with_graph_track(64);
    recording::GraphInfo info = captured(64);
    info.replays = 10;
    info.launch_ns = 10 * 5e3;
    source.graphs_ = {info};
    for (std::int64_t i = 0; i < 1000; ++i) {
        source.launch(host_track, 64, 0, 1, i * 20 * us, i * 20 * us + 5 * us);
    }
    const ReplayReport report = replays_of(source);
    EXPECT_EQ(report.graphs[0].replays, 1000u);
    EXPECT_EQ(report.graphs[0].launches_timed, 10u);
    EXPECT_NEAR(report.graphs[0].launch_ns.value.value(), 50e3, 1e-6);
}

TEST(Replays, a_missing_twin_is_why_there_is_no_time_of_the_device) {
    Tape source = with_graph_track(64);
    recording::GraphInfo info = captured(64);
    info.replays = 100;
    info.twin_reason = "n/a (memory nodes)";
    source.graphs_ = {info};
    EXPECT_EQ(replays_of(source).graphs[0].device_ns.reason,
              "no replay was sampled, for there is no twin: n/a (memory nodes)");
}

TEST(Replays, bytes_of_a_twin_that_went_are_not_called_unmeasured) {
    Tape source = with_graph_track(64);
    recording::GraphInfo info = captured(64);
    info.twin = "event";
    info.twin_build_ns = 1e6;
    info.bytes = 1e6;
    recording::GraphInfo unknown = info, none = info;
    unknown.key = 65;
    unknown.bytes = recording::GraphInfo::unknown;
    none.key = 66;
    none.twin.clear();
    source.graphs_ = {info, unknown, none};
    const ReplayReport report = replays_of(source);
    EXPECT_EQ(report.graphs[0].twin_bytes.reason, "the twin was given up, or went with its graph");
    EXPECT_EQ(report.graphs[1].twin_bytes.reason, "not estimated");
    EXPECT_EQ(report.graphs[2].twin_bytes.reason, "there is no twin");
}

TEST(Replays, what_was_never_replayed_is_listed_with_its_cost) {
    Tape source = with_graph_track(1);
    recording::GraphInfo idle = captured(7);
    idle.capture_ns = 1e6;
    idle.instantiate_ns = 2e6;
    idle.upload_ns = 0.5e6;
    idle.bytes = 1e6;
    recording::GraphInfo other = captured(9);
    other.instantiate_ns = 1e6;
    recording::GraphInfo used = captured(8);
    used.replays = 1;
    used.capture_ns = 100e6;
    source.graphs_ = {idle, used, other};
    const ReplayReport report = replays_of(source);
    EXPECT_EQ(report.never_replayed, (std::vector<std::uint64_t>{7, 9}));
    EXPECT_NEAR(report.never_replayed_ns.value.value(), 4.5e6, 1e-6);
    EXPECT_NEAR(report.never_replayed_bytes.value.value(), 1e6, 1e-6);
    source.graphs_ = {used};
    EXPECT_FALSE(replays_of(source).never_replayed_ns.value.has_value());
}

TEST(Replays, a_graph_that_could_not_be_looked_into_says_why_and_nothing_of_its_scopes) {
    Tape source;
    source.track(host_track);
    recording::GraphInfo info = captured(7);
    info.sites.clear();
    info.replays = 3;
    info.twin_reason = "n/a: this context is gone";
    source.graphs_ = {info};
    const ReplayReport report = replays_of(source);
    ASSERT_EQ(report.graphs.size(), 1u);
    const std::string why = report.graphs[0].device_ns.reason;
    EXPECT_EQ(why, "no replay was sampled, for there is no twin: n/a: this context is gone");
}

TEST(Replays, padding_is_a_share_of_rows_and_absent_where_nobody_counted) {
    Tape source = with_graph_track(1);
    recording::GraphInfo padded = captured(1);
    padded.rows_used = 96;
    padded.rows_padded = 128;
    padded.eager_steps = {{"no such graph", 3}};
    recording::GraphInfo impossible = captured(3);
    impossible.rows_used = 5;
    impossible.rows_padded = 4;
    source.graphs_ = {padded, captured(2), impossible};
    const ReplayReport report = replays_of(source);
    EXPECT_DOUBLE_EQ(report.graphs[0].padding_wasted.value.value(), 0.25);
    EXPECT_EQ(report.graphs[0].eager_steps[0].second, 3u);
    EXPECT_FALSE(report.graphs[1].padding_wasted.value.has_value());
    EXPECT_FALSE(report.graphs[2].padding_wasted.value.has_value());
    EXPECT_EQ(report.graphs[1].padding_wasted.reason, "the engine did not say how many rows it padded");
    EXPECT_EQ(report.graphs[2].padding_wasted.reason, "the engine said that more rows carried work than were replayed");
}

TEST(Replays, launches_of_a_key_without_a_row_are_not_silent) {
    Tape source = with_graph_track(1);
    source.launch(host_track, 77, 0, 1, 0, us);
    source.launch(host_track, 77, 0, 1, 2 * us, 3 * us);
    const ReplayReport report = replays_of(source);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0], "Graph 77 was launched 2 times, but its life-cycle row is not in the recording.");
}

TEST(Replays, a_recording_without_graphs_says_so) {
    Tape source;
    source.track(host_track);
    const ReplayReport report = replays_of(source);
    EXPECT_TRUE(report.graphs.empty());
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("No captured graph"), std::string::npos);
}

TEST(Replays, a_value_that_is_baked_in_fails_the_check) {
    Tape source = with_graph_track(1);
    recording::GraphInfo info = captured(1);
    info.baked_in = {"kernel rope, parameter 2, bytes 0..3"};
    source.graphs_ = {info};
    const ReplayReport report = replays_of(source);
    EXPECT_TRUE(report.baked_in);
    EXPECT_EQ(report.graphs[0].baked_in, info.baked_in);
}

} // namespace
} // namespace plumb::analysis

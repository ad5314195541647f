// SPDX-License-Identifier: Apache-2.0
// Captured graphs as text and JSON.
#include "answers/rendered_testing.hpp"
#include "answers/replays/replays.hpp"

namespace plumb::answers {
namespace {

ReplayReport sample_replays() {
    ReplayReport report;
    ReplayRow row;
    row.key = 64;
    row.captures = 2;
    row.instantiations = 1;
    row.updates = 1;
    row.uploads = 1;
    row.replays = 12000;
    row.instrumented = 180;
    row.unread = 2;
    row.eager_steps = {{"no such graph", 9}};
    row.rows_used = 100;
    row.rows_padded = 128;
    row.padding_wasted = measured(28.0 / 128);
    row.nodes = {{"kernel", 320}, {"memset", 2}};
    row.unattributed = {{"nccl_kernel", 4}};
    row.node_checks = 1;
    row.node_changes = {{"rope_kernel", 28, 0}, {"fused_rope", 0, 1}};
    row.baked_in = {"kernel rope, parameter 2, bytes 0..3"};
    row.sites = 340;
    row.sites_timed = 328;
    row.device_ns = measured(4.9e6);
    row.raw_device_ns = measured(4.7e6);
    row.plain_span_ns = measured(4.75e6);
    row.capture_ns = measured(1.5e6);
    row.instantiate_ns = measured(2.5e6);
    row.upload_ns = measured(0.5e6);
    row.launch_ns = measured(12000 * 6.25e3);
    row.launches_timed = 12000;
    row.bytes = measured(3.5 * 1048576);
    row.twin = "event";
    row.twin_build_ns = measured(7e6);
    row.twin_bytes = measured(8.0 * 1048576);
    row.site_cost_ns = measured(950);
    row.closure_raw = measured(0.0312);
    row.closure = measured(-0.0041);
    row.every = 64;
    ReplayRow idle;
    idle.key = 0xffffffffffffffff;
    idle.captures = idle.instantiations = 1;
    for (Figure ReplayRow::*figure :
         {&ReplayRow::padding_wasted, &ReplayRow::device_ns, &ReplayRow::raw_device_ns, &ReplayRow::plain_span_ns,
          &ReplayRow::capture_ns, &ReplayRow::instantiate_ns, &ReplayRow::upload_ns, &ReplayRow::launch_ns,
          &ReplayRow::bytes, &ReplayRow::twin_build_ns, &ReplayRow::twin_bytes, &ReplayRow::site_cost_ns,
          &ReplayRow::closure_raw, &ReplayRow::closure}) {
        idle.*figure = missing("not measured in this run");
    }
    idle.twin_reason = "n/a (memory nodes)";
    report.graphs = {row, idle};
    report.node_check = NodeCheck::differ;
    report.baked_in = true;
    report.never_replayed = {0xffffffffffffffff};
    report.never_replayed_ns = measured(4.5e6);
    report.never_replayed_bytes = missing("not measured in this run");
    report.notes = {"a note"};
    return report;
}

TEST(ReplaysText, T18_the_line_of_the_node_check_names_key_and_kernels) {
    const std::string text = render_text(sample_replays());
    EXPECT_TRUE(contains(text, "\nNODES differ  graph 64: lost rope_kernel 28 -> 0; gained fused_rope 0 -> 1")) << text;
    EXPECT_TRUE(contains(text, "\nBAKED  graph 64: kernel rope, parameter 2, bytes 0..3\n"));
    ReplayReport clean = sample_replays();
    clean.graphs[0].node_changes.clear();
    clean.graphs[0].baked_in.clear();
    clean.node_check = NodeCheck::agree;
    const std::string agreed = render_text(clean);
    EXPECT_TRUE(contains(agreed, "\nNODES agree  1 captures compared"));
    EXPECT_FALSE(contains(agreed, "differ"));
    EXPECT_FALSE(contains(agreed, "BAKED"));
    clean.node_check = NodeCheck::not_compared;
    EXPECT_TRUE(contains(render_text(clean), "\nNODES not compared  no graph was captured twice\n"));
}

TEST(ReplaysText, every_part_of_a_life_is_shown_and_what_is_unknown_has_a_reason) {
    const std::string text = render_text(sample_replays());
    EXPECT_TRUE(contains(text, "graph   captures")) << text;
    EXPECT_TRUE(contains(text, "12,000"));
    EXPECT_TRUE(contains(text, "328/340"));
    EXPECT_TRUE(contains(text, "21.9"));
    EXPECT_TRUE(contains(text, "4900.0"));
    EXPECT_TRUE(contains(text, "6.25"));
    EXPECT_TRUE(contains(text, "\nnever replayed  1 graph (18446744073709551615): 4.500 ms to capture, instantiate and "
                               "upload, n/a MiB (estimated)\n"));
    EXPECT_TRUE(contains(text, "\neager  graph 64: 9 steps: no such graph\n"));
    EXPECT_TRUE(contains(text, "\npadding  graph 64: 28 of 128 rows were padding\n"));
    EXPECT_TRUE(contains(text, "\nnodes  graph 64: kernel 320, memset 2\n"));
    EXPECT_TRUE(contains(text, "\nnodes  graph 64: in no brick: nccl_kernel 4\n"));
    EXPECT_TRUE(contains(
        text, "\ncost  graph 64: capture 1.500 ms, instantiate 2.500 ms, upload 0.500 ms, launches 75.000 ms\n"));
    EXPECT_TRUE(contains(text,
                         "\ntwin  graph 64: event, every 64 replays, built in 7.000 ms, 8.0 MiB (estimated), a stamp "
                         "costs 0.950 us\n"));
    EXPECT_TRUE(contains(text, "\nclosure  graph 64: -0.41 % calibrated, +3.12 % raw, 328 of 340 sites timed\n"));
    EXPECT_TRUE(contains(text, "\ntwin  graph 18446744073709551615: none: n/a (memory nodes)\n"));
    EXPECT_TRUE(contains(text, "\nn/a  device us: not measured in this run\n"));
    EXPECT_TRUE(contains(text, "\nnote  a note\n"));
}

TEST(ReplaysText, launch_us_is_of_the_replays_whose_launches_were_timed) {
    ReplayReport report = sample_replays();
    report.graphs[0].launches_timed = 120;
    report.graphs[0].launch_ns = measured(120 * 6.25e3);
    report.graphs[0].twin_bytes = missing("it went");
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, " 6.25")) << text;
    EXPECT_TRUE(contains(text, ", launches 0.750 ms (of 120 replays)\n")) << text;
    EXPECT_TRUE(contains(text, "\nn/a  MiB of the twin: it went\n")) << text;
}

TEST(ReplaysJson, output_is_valid_under_the_schema_and_documented) {
    expect_valid<ReplayReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_replays()});
    json bad = parsed(render_json(sample_replays()));
    bad["graphs"][0]["device_ns"] = nullptr;
    EXPECT_NE(support::schema_problems(PLUMB_TEST_SOURCE_DIR, "plumb.replays.1.json", {bad}), "");
}

TEST(ReplaysJson, F11_keys_and_device_time_arrive_whole) {
    const json report = parsed(render_json(sample_replays()));
    EXPECT_EQ(report["graphs"][1]["graph"].get<std::uint64_t>(), 0xffffffffffffffff);
    EXPECT_EQ(report["graphs"][0]["device_ns"], 4.9e6);
    EXPECT_EQ(report["graphs"][1]["device_ns"]["absent"], "not measured in this run");
    EXPECT_EQ(report["node_check"], "differ");
    EXPECT_EQ(report["never_replayed"]["graphs"][0].get<std::uint64_t>(), 0xffffffffffffffff);
}

TEST(ReplaysText, T8_hostile_kernel_names_stay_on_their_line) {
    ReplayReport report = sample_replays();
    report.graphs[0].node_changes[0].kernel = "evil\n\x1b[31mNODES agree";
    const std::string text = render_text(report);
    EXPECT_FALSE(contains(text, "\x1b["));
    EXPECT_FALSE(contains(text, "\n\x1b"));
    EXPECT_EQ(parsed(render_json(report))["graphs"][0]["node_changes"][0]["kernel"], "evil\n\x1b[31mNODES agree");
}

} // namespace
} // namespace plumb::answers

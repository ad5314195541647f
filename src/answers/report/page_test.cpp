// SPDX-License-Identifier: Apache-2.0
#include "answers/rendered_testing.hpp"
#include "answers/report/sample_report_testing.hpp"

namespace plumb::answers {
namespace {

/// The line that starts with `head`, without its newline.
std::string line_of(const std::string& text, const std::string& head) {
    const std::size_t found = text.starts_with(head) ? 0 : text.find("\n" + head);
    if (found == std::string::npos) {
        return {};
    }
    const std::size_t begin = found == 0 ? 0 : found + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
}

Report only_decode(Report report) {
    report.phases.erase(report.phases.begin());
    std::erase_if(report.bricks, [](const Row& row) { return row.key.phase == Phase::prefill; });
    return report;
}

TEST(TextReport, a_healthy_run_reads_as_a_table_and_nothing_else) {
    EXPECT_EQ(render_text(only_decode(healthy_report())),
              R"(qwen2.5-0.5b bf16 · cpu, 2 threads · 24 layers · decode 120 steps (8 warm-up apart)
decode  p50 48.1 ms/tok  p90 50.3  20.8 tok/s     coverage 99.6 % of busy   own cost 0.1 % (measured)

brick           calls/step   p50 us   p90 us   sum/step ms   % wall   GB/s   source
up_projection           24    412.0    432.6          9.89     20.6   21.1   cpu_tsc
lm_head                  1   9120.0   9576.0          9.12     19.0   29.9   cpu_tsc
sampling                 1      4.5      4.7         <0.01     <0.1    n/a   cpu_tsc
unattributed             -        -        -          0.21      0.4      -
idle                     -        -        -          0.08      0.2      -
n/a  GB/s: no work was given
n/a  % roof: no peaks in the recording
)");
}

TEST(TextReport, a_crowded_run_marks_laps_and_parents_and_shows_overlap) {
    const std::string text = render_text(only_decode(crowded_report()));
    EXPECT_TRUE(contains(text, R"(
brick              calls/step   p50 us   p90 us   sum/step ms   % wall   GB/s   TFLOP/s   source
block +                    24   1800.0   1890.0         43.20     90.0    n/a    0.0625   cpu_tsc
up_projection              24    412.0    432.6          9.89     20.6   21.1       n/a   cpu_tsc
lm_head                     1   9120.0   9576.0          9.12     19.0   29.9       n/a   cpu_tsc
rope_embedding ~           24      6.2      6.6          0.15      0.3    n/a       n/a   cpu_tsc
sampling                    1      4.5      4.7         <0.01     <0.1    n/a       n/a   cpu_tsc
overlap                     -        -        -          0.50      1.0      -         -
unattributed                -        -        -          0.21      0.4      -         -
  of it in laps             -        -        -          0.15      0.3      -         -
idle                        -        -        -          0.08      0.2      -         -
+  holds other bricks: their time is in its sum too
~  made of laps: also holds the gap to the next one, so it does not count as covered
n/a  GB/s: no work was given (3 rows)
n/a  TFLOP/s: no work was given (4 rows)
n/a  % roof: no peaks in the recording
)")) << text;
}

TEST(TextReport, T7_rooflines_limits_and_the_speed_of_light_are_printed) {
    const std::string text = render_text(only_decode(peaks_report()));
    EXPECT_TRUE(contains(text, R"(
brick           calls/step   p50 us   p90 us   sum/step ms   % wall   GB/s   % roof   limit    source
up_projection           24    412.0    432.6          9.89     20.6   21.1      n/a   cache    cpu_tsc
lm_head                  1   9120.0   9576.0          9.12     19.0   29.9     94.8   memory   cpu_tsc
sampling                 1      4.5      4.7         <0.01     <0.1    n/a      n/a   ?        cpu_tsc
unattributed             -        -        -          0.21      0.4      -        -   -
)")) << text;
    EXPECT_TRUE(contains(line_of(text, "n/a  % roof: "), "no flops were given"));
    EXPECT_TRUE(contains(line_of(text, "light "), "990 MB/step take at least 31.4 ms")) << text;
    EXPECT_TRUE(contains(line_of(text, "light "), "65.3 % of the mean period; 1 brick without bytes"));
    EXPECT_EQ(line_of(text, "gap "), "gap     host: kernels take 16.7 ms/step beyond that, most in lm_head 0.300 ms");
    EXPECT_TRUE(contains(text, "\ncounters  2.50 instructions per cycle")) << text;
}

TEST(TextReport, F5_the_gap_of_several_devices_is_not_split_into_sums_of_all) {
    Report report = only_decode(peaks_report());
    report.phases[0].speed_of_light[0].devices = 2;
    const std::string text = render_text(report);
    EXPECT_TRUE(
        contains(line_of(text, "light "), " ms at the read bandwidth measured here, of 2 devices together, 65.3"));
    EXPECT_EQ(line_of(text, "gap "), "gap     host: kernels take 16.7 ms/step beyond that");
}

TEST(TextReport, one_row_without_a_figure_for_a_reason_of_its_own_is_one_row) {
    Report report = only_decode(healthy_report());
    report.bricks[1].gigabytes_per_second = missing("no samples");
    EXPECT_TRUE(contains(render_text(report), "; 1 more row for a reason like it (all of them with --json)\n"));
    report.bricks[2].gigabytes_per_second = missing("too few samples");
    EXPECT_TRUE(contains(render_text(report), "; 2 more rows for reasons like it (all of them with --json)\n"));
}

TEST(TextReport, T7_a_note_by_the_user_is_labelled_as_one_and_is_no_figure) {
    const std::string text = render_text(peaks_report());
    EXPECT_TRUE(contains(text, "\nnote by the user  zero-copy weights\n")) << text;
    EXPECT_FALSE(contains(text.substr(0, text.find('\n')), "zero-copy"));
}

TEST(TextReport, T12_without_counters_there_are_no_instructions_per_cycle) {
    EXPECT_FALSE(contains(render_text(healthy_report()), "per cycle"));
    Report report = healthy_report();
    report.counters.emplace();
    report.counters->instructions_per_cycle = report.counters->cache_miss_share =
        missing("the system does not allow it");
    EXPECT_TRUE(contains(render_text(report), "counters  n/a instructions per cycle"));
    EXPECT_TRUE(contains(render_text(report), "n/a  counters: the system does not allow it\n"));
}

TEST(TextReport, waiting_at_a_barrier_has_a_column_where_it_was_recorded) {
    EXPECT_FALSE(contains(render_text(healthy_report()), "barrier"));
    Report report = only_decode(healthy_report());
    report.bricks.front().barrier_wait_share = measured(0.25);
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(line_of(text, "brick "), "% barrier   GB/s")) << text;
    EXPECT_TRUE(contains(text, "25.0")) << text;
    EXPECT_TRUE(contains(text, "\n% barrier: of the brick's time the thread waited there for the others of its team"));
}

TEST(TextReport, device_rows_are_marked_by_what_their_sums_are_made_of) {
    const std::string text = render_text(device_report());
    EXPECT_TRUE(contains(line_of(text, "attention @ "), "19.20")) << text;
    EXPECT_TRUE(contains(line_of(text, "rms_norm @-"), "cuda_graph_event"));
    EXPECT_TRUE(contains(line_of(text, "sampling *"), "cuda_event"));
    EXPECT_TRUE(contains(
        text, "\n*  a device queue that is timed in some steps only: calls and sums are per timed step (17)\n"));
    EXPECT_TRUE(contains(text, "\n@  inside captured graphs: "));
    EXPECT_TRUE(contains(text, "\n@- the same, but some sites were never timed"));
    EXPECT_TRUE(contains(text, "\ndevice  queues busy 1.25 ms/step, idle n/a (in 17 timed steps)")) << text;
    EXPECT_TRUE(contains(text, "120 graph replays, busy at most 40.5 ms/step in them (idle in them n/a)\n")) << text;
    EXPECT_TRUE(contains(text, "\nn/a  idle in graphs: spans between stamps hold the gaps between kernels\n"));
    EXPECT_TRUE(contains(text, "coverage 99.6 % of host busy   ")) << "device work is not in that account";
    EXPECT_TRUE(contains(text, "\nhost: unattributed ")) << "as in that row";
    EXPECT_TRUE(contains(text, "\nhost: idle "));
    EXPECT_FALSE(contains(render_text(crowded_report()), "device  "));
    EXPECT_FALSE(contains(render_text(crowded_report()), "host: "));
}

TEST(TextReport, F5_the_share_of_a_devices_busy_time_that_lies_in_bricks_is_said_where_it_is_known) {
    Report report = device_report();
    EXPECT_FALSE(contains(render_text(report), "coverage at least")) << "not where graphs ran between the scopes";
    DeviceAccount& device = *report.phases[0].device;
    device.coverage_at_least = {0.962, ""};
    EXPECT_TRUE(
        contains(render_text(report), "coverage at least 96.2 % of device busy, coverage 99.6 % of host busy   own"))
        << render_text(report);
    device.replays = 0; // timed in every step: then the wall account is the device's, too
    report.phases[0].sampled_steps = 0;
    EXPECT_TRUE(contains(render_text(report), "(in 17 timed steps), coverage at least 96.2 % of device busy"))
        << render_text(report);
    EXPECT_TRUE(contains(render_text(report), "tok/s     coverage 99.6 % of busy"));
}

TEST(TextReport, F5_coverage_never_stands_without_what_it_is_a_share_of) {
    for (const bool device : {false, true}) {
        const std::string text = render_text(device ? device_report() : healthy_report());
        const std::string share = device ? " % of host busy" : " % of busy", of_device = " % of device busy";
        std::size_t shown = 0;
        for (std::size_t at = text.find("coverage "); at != std::string::npos; at = text.find("coverage ", at + 1)) {
            EXPECT_TRUE(text.find(share, at) == text.find(" %", at) || text.find(of_device, at) == text.find(" %", at))
                << text.substr(at, 40);
            ++shown;
        }
        EXPECT_GE(shown, device ? 1u : 3u) << "in the headline, and above each phase where there are several";
    }
    EXPECT_TRUE(contains(render_text(healthy_report()), "   % wall   "))
        << "shares of rows are of the wall, and say so";
}

TEST(TextReport, every_phase_with_steps_has_a_table_of_its_own) {
    const std::string text = render_text(healthy_report());
    EXPECT_TRUE(contains(
        text, "\ndecode: 120 steps (8 warm-up apart), p50 48.1 ms/tok  p90 50.3, coverage 99.6 % of busy\nbrick"));
    EXPECT_TRUE(contains(text, "\nprefill: 1 step, mean 312.0 ms/step (n = 1), coverage 99.4 % of busy\nbrick"));
    EXPECT_TRUE(contains(line_of(text, "decode  "), "prefill 205 tok/s     coverage 99.6 % of busy (decode)"));
    EXPECT_FALSE(contains(text, "mixed"));
}

TEST(TextReport, scopes_of_no_step_are_shown_with_totals) {
    Report report;
    report.bricks = {brick_row(Phase::none, "copy_h2d", 3, 100, 1)};
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "in no counted step\nbrick      calls   p50 us   p90 us   sum ms   GB/s   source\n"
                               "copy_h2d       3   "))
        << text;
    EXPECT_FALSE(contains(text, "unattributed")) << "nothing is known about a period without steps";
}

TEST(TextReport, F1_an_absent_figure_is_never_a_zero) {
    Report report = only_decode(healthy_report());
    report.bricks.resize(1);
    report.bricks[0].time.p50_ns = missing("the clock failed");
    report.bricks[0].wall_share = missing("no period");
    report.phases[0].tokens_per_second = missing("steps carry no tokens");
    report.phases[0].wall.coverage = missing("no busy time");
    report.own_cost.wall_share = missing("not measured");
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "n/a tok/s     coverage n/a   own cost n/a\n"
                               "n/a  decode tok/s: steps carry no tokens\n"
                               "n/a  decode coverage: no busy time\n"
                               "n/a  own cost: not measured\n"))
        << text;
    EXPECT_EQ(line_of(text, "sampling"),
              "sampling                1      n/a    4.725         <0.01      n/a    n/a   cpu_tsc");
    EXPECT_TRUE(contains(text, "n/a  p50 us: the clock failed\n"));
    EXPECT_TRUE(contains(text, "p50 48.1 ms/step  p90")) << "as many tokens as steps, but not one in each";
}

TEST(TextReport, a_batch_is_reported_per_step_and_few_steps_by_their_mean) {
    Report report = only_decode(healthy_report());
    report.phases[0].tokens = 480;
    EXPECT_TRUE(contains(render_text(report), "p50 48.1 ms/step  p90"));
    report.phases[0].period.count = 5;
    report.phases[0].period.p50_ns = missing("too few samples (n = 5, p50 needs 20)");
    EXPECT_TRUE(contains(render_text(report), "decode  mean 48.2 ms/step (n = 5)"));
}

TEST(TextReport, M3_dropped_records_are_printed_with_their_reason) {
    const std::string text = render_text(crowded_report());
    EXPECT_TRUE(contains(
        text, "\nlost  12,345 records: ring full: the recording could not be written in time, or not at all\n"))
        << text;
    EXPECT_TRUE(contains(text, "\nlost  1 record: lap outside any scope\n"));
    EXPECT_FALSE(contains(render_text(healthy_report()), "lost"));
}

TEST(TextReport, M2_unresolved_scopes_are_counted_and_printed) {
    EXPECT_TRUE(contains(render_text(crowded_report()), "\nlost  7 scopes: recorded, but never given a time\n"));
    Report report = healthy_report();
    report.unresolved = 3;
    report.losses = {{"unresolved: the clock could not be fitted", 3}};
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "\nlost  3 records: unresolved: the clock could not be fitted\n"));
    EXPECT_FALSE(contains(text, "never given a time")) << "said once, with its reason";
}

TEST(TextReport, bricks_that_waited_off_the_cpu_are_explained) {
    EXPECT_FALSE(contains(render_text(healthy_report()), "off the CPU"));
    Report report = only_decode(healthy_report());
    report.bricks[2].wall_share = measured(0.95);
    EXPECT_FALSE(contains(render_text(report), "off the CPU")) << "that has other causes";
    report.phases[0].wall.bricks_idle_ns = 0.02 * report.phases[0].wall.period_ns;
    EXPECT_TRUE(contains(render_text(report), "\nbricks were off the CPU for a part of their time"));
}

TEST(TextReport, what_rows_hold_beyond_the_period_or_lack_of_it_has_rows_of_its_own) {
    Report report = only_decode(healthy_report());
    EXPECT_FALSE(contains(render_text(report), "in other periods"));
    EXPECT_FALSE(contains(render_text(report), "leaf calls"));
    PhaseSummary& phase = report.phases[0];
    phase.wall.bricks_elsewhere_ns = 1e6 * static_cast<double>(phase.steps);
    Row leaves; // of all categories together
    leaves.key.phase = Phase::decode;
    for (Row& row : report.bricks) {
        leaves.sum_per_step_ns += row.sum_per_step_ns;
    }
    report.categories = {leaves};
    Row& mixed = report.bricks[0];
    mixed.parent = true;
    mixed.sum_per_step_ns += 5e6; // calls that hold others
    const std::string text = render_text(report);
    const double lacking_ms = (mixed.sum_per_step_ns - 5e6) / 1e6;
    EXPECT_TRUE(line_of(text, "leaf calls in marked rows  ").find(page::fixed(lacking_ms, 2)) != std::string::npos)
        << text;
    EXPECT_TRUE(line_of(text, "its bricks in other periods  ").find(" 1.00 ") != std::string::npos) << text;
    EXPECT_TRUE(contains(text, "\nleaf calls in marked rows: of bricks marked + or ~, the calls that hold no bricks"));
    EXPECT_TRUE(contains(text, "\nits bricks in other periods: leaf bricks in the rows above"));
}

TEST(TextReport, a_brick_that_waited_off_the_cpu_is_explained_though_it_holds_others_elsewhere) {
    Report report = only_decode(healthy_report());
    report.bricks[2].parent = true;
    report.phases[0].wall.bricks_idle_ns = 0.02 * report.phases[0].wall.period_ns;
    EXPECT_TRUE(contains(render_text(report), "\nbricks were off the CPU for a part of their time"));
}

TEST(TextReport, a_brick_named_as_a_row_of_the_account_can_be_told_from_it) {
    Report report = only_decode(healthy_report());
    report.bricks[0].key.name = "idle";
    report.bricks[1].key.name = "unattributed";
    const std::string text = render_text(report);
    for (const char* each : {"\nidle (brick) ", "\nidle  ", "\nunattributed (brick) ", "\nunattributed  "}) {
        EXPECT_TRUE(contains(text, each)) << each << text;
    }
    EXPECT_FALSE(contains(render_text(healthy_report()), "(brick)"));
}

TEST(TextReport, bricks_outside_its_steps_have_a_row_and_a_sentence) {
    EXPECT_FALSE(contains(render_text(healthy_report()), "bricks outside its steps"));
    Report report = only_decode(healthy_report());
    report.phases[0].wall.bricks_outside_ns = 0.25 * report.phases[0].wall.period_ns;
    const std::string text = render_text(report);
    const std::size_t row = text.find("\nbricks outside its steps ");
    ASSERT_NE(row, std::string::npos) << text;
    EXPECT_NE(text.substr(row + 1, text.find('\n', row + 1) - row).find(" 25.0 "), std::string::npos) << text;
    EXPECT_TRUE(contains(text, "\nbricks outside its steps: leaf bricks between its steps"));
}

TEST(TextReport, M5_what_a_sync_mode_serialises_is_stated) {
    Report report = healthy_report();
    EXPECT_FALSE(contains(render_text(report), "sync")) << "the default mode waits for nothing and says nothing";
    report.sync_mode = "immediate";
    EXPECT_TRUE(contains(render_text(report),
                         "\nnote  sync=immediate: every scope waits until its work is done, so work "
                         "that would run side by side was serialised"));
    report.sync_mode = "per_layer";
    EXPECT_TRUE(
        contains(render_text(report), "\nnote  sync=per_layer: stamps at the borders of layers are serialised"));
    report.sync_mode = "none";
    EXPECT_TRUE(contains(render_text(report), "\nnote  sync=none: only the host side was timed"));
}

TEST(TextReport, notes_and_uncertain_time_are_printed) {
    const std::string text = render_text(crowded_report());
    EXPECT_TRUE(contains(text, "\nnote  not crash-safe: rings are in anonymous memory\n"));
    EXPECT_TRUE(contains(text, "\nnote  decode: when threads were off the CPU is not known for 1.0 % of the period"));
    EXPECT_FALSE(contains(render_text(healthy_report()), "note  "));
}

TEST(TextReport, uncertain_time_of_a_worker_pool_says_what_it_can_change) {
    Report report = healthy_report();
    WallAccount& wall = report.phases[1].wall;
    wall.off_cpu_uncertain_ns = 0.9 * wall.period_ns;
    wall.unattributed_ns = 0.04 * wall.period_ns;
    wall.idle_ns = 0.03 * wall.period_ns;
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "times of bricks and steps and tok/s do not depend on it")) << text;
    EXPECT_TRUE(contains(text, "unattributed is between 0.0 and 7.0 % of the period")) << text;
}

TEST(TextReport, labels_are_marked_untimed) {
    const std::string text = render_text(crowded_report());
    EXPECT_TRUE(contains(text, "\nlabel (untimed)   count   total ms   mean us    min us    max us\n"
                               "tokenizer             3      1.500   500.000   400.000   600.000\n"))
        << text;
    EXPECT_FALSE(contains(render_text(healthy_report()), "label"));
}

TEST(TextReport, layers_come_in_blocks_that_fit_the_width) {
    Report report = only_decode(crowded_report());
    for (const char* name : {"norm_of_attention", "down_projection", "gate_projection"}) {
        Row cell = brick_row(Phase::decode, name, 1, 10, 120);
        cell.key.layer = 1;
        report.brick_layers.push_back(cell);
    }
    const std::string text = render_text(report, {false, 60});
    EXPECT_TRUE(contains(text, "\nmean us per call, by layer and brick (decode)\n"
                               "layer   up_projection   down_projection   gate_projection\n"
                               "    0           410.0                 -                 -\n"
                               "    1           411.0              10.0              10.0\n"
                               "\n"
                               "layer   norm_of_attention\n"))
        << text;
}

TEST(TextReport, a_brick_that_several_sources_timed_has_a_column_of_layers_for_each) {
    Report report = only_decode(crowded_report());
    report.brick_layers.clear();
    for (const auto& [source, device, us_per_call] :
         {std::tuple("cpu_tsc", false, 20.0), std::tuple("cpu_tsc", true, 10.0),
          std::tuple("cuda_event", true, 50.0)}) {
        Row cell = brick_row(Phase::decode, "attention", 1, us_per_call, 120);
        cell.source = source;
        cell.device = device;
        cell.key.layer = 0;
        report.brick_layers.push_back(cell);
    }
    EXPECT_TRUE(contains(render_text(report),
                         "\nlayer   attention (cuda_event)   attention (cpu_tsc, host)   attention (cpu_tsc, device)\n"
                         "    0                    50.00                       20.00                         10.00\n"))
        << render_text(report);
}

TEST(TextReport, colour_appears_only_when_asked) {
    EXPECT_FALSE(contains(render_text(crowded_report()), "\x1b"));
    const std::string colored = render_text(crowded_report(), {true, 100});
    EXPECT_TRUE(contains(colored, "\x1b[1mbrick"));
    EXPECT_TRUE(contains(colored, "\x1b[33mlost  \x1b[0m"));
}

TEST(TextReport, T8_names_from_a_recording_cannot_forge_lines_or_command_the_terminal) {
    Report report = only_decode(healthy_report());
    const std::string evil = "x\n\x1b[2Jidle \xff";
    report.bricks[0].key.name = evil;
    report.bricks[0].source = evil;
    report.description[0].second = evil;
    report.notes = {evil};
    report.losses = {{evil, 1}};
    report.labels = {{evil, 1, 1, 1, 1}};
    const std::string text = render_text(report);
    EXPECT_FALSE(contains(text, "\x1b"));
    EXPECT_FALSE(contains(text, "\xff"));
    EXPECT_FALSE(contains(text, "x\n"));
}

TEST(TextReport, an_empty_report_is_still_a_report) { EXPECT_EQ(render_text(Report{}), "own cost n/a\n"); }

} // namespace
} // namespace plumb::answers

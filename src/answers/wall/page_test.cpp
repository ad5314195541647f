// SPDX-License-Identifier: Apache-2.0
// Wall accounts as text and JSON.
#include "answers/rendered_testing.hpp"
#include "answers/wall/wall.hpp"

namespace plumb::answers {
namespace {

WallLane host_lane() {
    WallLane lane;
    lane.name = "host";
    lane.tracks = 2;
    lane.steps = 10;
    lane.period_ns = 10e6;
    lane.busy_ns = measured(4e6);
    lane.busy_sum_ns = measured(5e6);
    lane.bricks_ns = 1e6;
    lane.bricks_sum_ns = 1.5e6;
    lane.overlap_ns = 0.5e6;
    lane.laps_ns = 0.25e6;
    lane.unattributed_ns = measured(3e6);
    lane.coverage = measured(0.25);
    lane.idle.total = measured(6e6);
    lane.idle.for_device = measured(5e6);
    lane.idle.unknown = lane.idle.off_cpu = measured(1e6);
    for (Figure WallIdle::*figure :
         {&WallIdle::exposed_launch, &WallIdle::host_work, &WallIdle::queued, &WallIdle::unnamed}) {
        lane.idle.*figure = missing("only of a device");
    }
    lane.launch_wait_ns = lane.host_waits_ns = missing("only of a device");
    return lane;
}

WallLane device_lane() {
    WallLane lane = host_lane();
    lane.name = "cuda:0";
    lane.device = true;
    lane.busy_ns = lane.busy_sum_ns = measured(7e6);
    lane.idle.total = measured(3e6);
    lane.idle.exposed_launch = measured(1e6);
    lane.idle.host_work = measured(1.5e6);
    lane.idle.unknown = measured(0.5e6);
    lane.idle.queued = measured(0.5e6);
    lane.idle.unnamed = lane.idle.off_cpu = measured(0);
    lane.idle.for_device = missing("only of the host");
    lane.idle.scopes = {{"tokenize\x1b[31m\n", 1.5e6, 1.5e6}};
    lane.launch_wait_ns = measured(0.2e6);
    lane.host_waits_ns = measured(5e6);
    return lane;
}

WallReport sample_wall() {
    WallPhase phase;
    phase.phase = Phase::decode;
    phase.steps = 10;
    phase.tokens = 10;
    phase.tokens_per_second = measured(1000);
    phase.period_ns = 10e6;
    phase.lanes = {host_lane(), device_lane()};
    phase.bound = WallBound::device;
    phase.reason = "The host waited for the device for 500.0 us per step (50.0 %).";
    phase.gains = {{"cuda:0 never idle", 0.3e6, 0.3, measured(1428.6)},
                   {"no host work in tokenize", 0.15e6, 0.15, missing("the steps carry no tokens")}};
    phase.own_cost_ns = measured(1500);
    phase.in_graph_busy_ns = missing("no captured graph was replayed");
    phase.unattributed = {{"ncclKernel", 3}, {"evil\x1b[2J", 1}};
    WallReport report;
    report.phases = {phase};
    report.slowest = {{17, phase}};
    report.own_cost.scope_ns = measured(30);
    report.own_cost.lap_ns = measured(20);
    report.own_cost.drain_cpu_ns = missing("the recording ends before the drain noted it");
    report.own_cost.wall_share = missing("the recording ends before the drain noted it");
    report.notes = {"a note"};
    return report;
}

TEST(WallText, begins_with_one_verdict_and_what_to_gain) {
    const std::string text = render_text(sample_wall());
    EXPECT_EQ(text.rfind("decode: DEVICE-BOUND. The host waited for the device for 500.0 us per step (50.0 %). Most to "
                         "gain: no host work in tokenize, at most 15.0 % of the time.\n",
                         0),
              0u)
        << text;
}

TEST(WallText, what_has_no_known_cause_is_no_advice) {
    WallReport report = sample_wall();
    report.phases[0].gains.push_back({"no idle time of unknown cause", 0.2e6, 0.2, measured(1)});
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, " Most of its idle time has no known cause: 20.0 % of the time.\n")) << text;
    EXPECT_FALSE(contains(text, "Most to gain"));
}

TEST(WallText, shows_every_part_of_busy_and_idle_per_step) {
    const std::string text = render_text(sample_wall());
    for (const char* part :
         {"\nbusy                           400.0    40.0    700.0    70.0\n", "  tracks added up", "    overlap",
          "    under laps", "  or waiting for its launch", "  the host waited meanwhile", "  exposed launch",
          "\n  a device was busy            500.0    50.0        -", "    launched, not begun", "    host off the CPU",
          "\nperiod                        1000.0   100.0   1000.0   100.0\n",
          "coverage  cuda:0: bricks hold 25.0 % of its busy", "own cost  1.5 us per step (0.1 %)",
          "in no brick  ncclKernel x3, ", "tok/s then", "\nnote  a note\n", "slowest steps"}) {
        EXPECT_TRUE(contains(text, part)) << part << '\n' << text;
    }
    EXPECT_FALSE(contains(text, "\x1b"));
}

TEST(WallText, where_it_is_not_known_when_threads_were_off_the_cpu_a_line_says_so) {
    WallReport report = sample_wall();
    EXPECT_FALSE(contains(render_text(report), "\nuncertain  "));
    report.phases[0].lanes[0].off_cpu_uncertain_ns = 2e6;
    EXPECT_TRUE(contains(render_text(report),
                         "\nuncertain  when threads were off the CPU is not known for 200.0 us per step: "));
    report.phases[0].gains.push_back({"no host work in sampling", 0.15e6, 0.15, measured(1)});
    EXPECT_TRUE(contains(render_text(report), " Most to gain: cuda:0 never idle, at most 30.0 % "))
        << "none of two that are as large is the most";
}

TEST(WallText, one_sample_is_one) {
    WallReport report = sample_wall();
    OffCpuCauses causes;
    causes.covered_ns = 1e6;
    causes.intervals = 1;
    report.phases[0].off_cpu = causes;
    EXPECT_TRUE(contains(render_text(report), " us, in 1 sample over "));
    report.phases[0].off_cpu->intervals = 2;
    EXPECT_TRUE(contains(render_text(report), " us, in 2 samples over "));
}

TEST(WallText, F1_a_rate_that_is_not_known_says_why) {
    WallReport report = sample_wall();
    EXPECT_TRUE(contains(render_text(report), "\ndecode  10 steps of 1000.0 us, 1000.0 tok/s\n"));
    report.phases[0].tokens_per_second = missing("2 of 10 steps carry no tokens");
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "\ndecode  10 steps of 1000.0 us\n")) << text;
    EXPECT_TRUE(contains(text, "\nn/a  tok/s: 2 of 10 steps carry no tokens\n")) << text;
}

TEST(WallText, what_is_absent_says_why) {
    WallReport report = sample_wall();
    WallIdle& idle = report.phases[0].lanes[1].idle;
    for (Figure* figure : {&idle.total, &idle.exposed_launch, &idle.host_work, &idle.unknown, &idle.queued}) {
        *figure = missing("captured graphs ran");
    }
    idle.scopes.clear();
    report.phases[0].gains.clear();
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "n/a  cuda:0: captured graphs ran\n")) << text;
    EXPECT_FALSE(contains(text, "the most there is to gain"));
}

TEST(WallText, why_a_thread_was_off_the_cpu_says_how_much_the_samples_cover_or_why_nothing) {
    WallReport report = sample_wall();
    OffCpuCauses& causes = report.phases[0].off_cpu.emplace();
    causes.run_queue_ns = missing("no two samples lie in these steps");
    EXPECT_TRUE(contains(render_text(report), "n/a  why off the CPU: no two samples lie in these steps\n"));
    causes.intervals = 1;
    causes.covered_ns = 4e6;
    causes.run_queue_ns = measured(1e6);
    causes.threads = {{"main", 4e6, 3e6, 1e6, 0, measured(5), 2e6}};
    causes.voluntary_switches = measured(8);
    causes.stolen_ns = measured(1.2e3);
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "\nmain                              750.0       250.0       0.0         2.50\n"))
        << "5 in 2 ms: " << text;
    EXPECT_TRUE(contains(text, "\nprocess  per step 2.00 voluntary and n/a involuntary switches, ")) << text;
    EXPECT_TRUE(contains(text, "stolen from the machine 0.3 us, ")) << text;
    EXPECT_TRUE(contains(text, " in 1 sample over 40 % of the time of these steps\n")) << text;
}

TEST(WallJson, follows_its_schema_and_every_key_is_documented) {
    WallReport report = sample_wall();
    report.step = 17;
    expect_valid<WallReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_wall(), report});
    EXPECT_EQ(parsed(render_json(report))["phases"][0]["lanes"][1]["idle"]["host_work_ns"], 1.5e6);
}

TEST(WallJson, F8_self_and_total_are_separate_fields) {
    WallReport report = sample_wall();
    report.phases[0].lanes[1].idle.scopes = {{"prepare", 0.5e6, 1.5e6}};
    const json value = parsed(render_json(report));
    EXPECT_EQ(value["phases"][0]["lanes"][1]["idle"]["scopes"][0]["self_ns"], 0.5e6);
    EXPECT_EQ(value["phases"][0]["lanes"][1]["idle"]["scopes"][0]["total_ns"], 1.5e6);
}

} // namespace
} // namespace plumb::answers

// SPDX-License-Identifier: Apache-2.0
// Where the wall clock went, for recordings whose truth was planted; and the clean twins, in which nothing is to be found.
#include "analysis/wall_builder.hpp"

#include <gtest/gtest.h>

#include <random>

#include "analysis/planted_wall_testing.hpp"
#include "analysis/wall_verdict.hpp"
#include "plumb/backend.hpp"

namespace plumb::analysis {
namespace {

using planted::us;

constexpr int count = 21; // 20 of them count
constexpr double counted = 20;

/// The host launches a step and sleeps; the device is never without work.
void clean_step(WallEngine& engine, std::int64_t t) {
    engine.command(Brick::qkv_projection, t, t + 5 * us, t + 10 * us, t + 500 * us);
    engine.command(Brick::attention, t + 5 * us, t + 10 * us, t + 500 * us, t + 1'010 * us);
    engine.off_cpu(t + 10 * us, t + 1'000 * us);
}

/// After the first command the host does `between` and only then launches the second.
template <class Between>
WallPhase two_commands(Between&& between, std::int64_t gap) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::qkv_projection, t, t + 20 * us, t + 25 * us, t + 425 * us);
        engine.off_cpu(t + 20 * us, t + 425 * us);
        between(engine, t + 425 * us);
        const std::int64_t launch = t + 425 * us + gap;
        engine.command(Brick::attention, launch, launch + 30 * us, launch + 35 * us, t + 1'000 * us);
        engine.off_cpu(launch + 30 * us, t + 1'000 * us);
    });
    WallPhase phase = engine.decode();
    expect_adds_up(phase);
    return phase;
}

const WallGain* gain_of(const WallPhase& phase, const std::string& what) {
    for (const WallGain& gain : phase.gains) {
        if (gain.what == what) {
            return &gain;
        }
    }
    return nullptr;
}

TEST(Wall, nothing_is_found_where_the_device_always_has_work) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) { clean_step(engine, t); });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    ASSERT_EQ(phase.lanes.size(), 2u);
    const WallLane& device = phase.lanes[1];
    EXPECT_EQ(device.name, "cuda:0");
    EXPECT_EQ(device.steps, 20u);
    EXPECT_EQ(value_of(device.busy_ns), counted * 1'000e3);
    EXPECT_EQ(value_of(device.idle.total), 0);
    EXPECT_EQ(value_of(device.host_waits_ns), counted * 990e3 + 10e3)
        << "no step comes after the last: nobody launches";
    EXPECT_EQ(value_of(device.coverage), 1);
    EXPECT_TRUE(device.idle.scopes.empty());
    EXPECT_TRUE(phase.gains.empty());
    EXPECT_EQ(phase.bound, WallBound::device);
    EXPECT_EQ(value_of(phase.lanes[0].idle.for_device), counted * 990e3 + 10e3);
    EXPECT_EQ(value_of(phase.lanes[0].idle.unknown), 0);
}

/// In each step two launches of one brick, and the scope of the first is not in the recording.
WallReport of_the_second_launch(bool tells) {
    WallEngine engine;
    engine.tells_launches = tells;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.source.submit_scope(WallEngine::host, Brick::attention, WallEngine::queue, t, t + 10 * us);
        engine.command(Brick::attention, t + 500 * us, t + 510 * us, t + 520 * us, t + 1'000 * us);
    });
    return engine.wall();
}

std::size_t inferred_notes(const WallReport& report) {
    return static_cast<std::size_t>(
        std::count(report.notes.begin(), report.notes.end(), resolve::inferred_launches_note));
}

TEST(Wall, a_lost_scope_leaves_its_launch_to_no_other) {
    const WallReport report = of_the_second_launch(true);
    const WallIdle& idle = report.phases.at(0).lanes.at(1).idle;
    EXPECT_EQ(value_of(idle.exposed_launch), counted * 30e3) << "10 us, and 10 us with 10 us on their way";
    EXPECT_EQ(value_of(idle.queued), 0);
    EXPECT_EQ(inferred_notes(report), 0u);
}

TEST(Wall, links_that_a_recording_does_not_tell_are_inferred_and_told_once) {
    const WallReport report = of_the_second_launch(false);
    EXPECT_EQ(inferred_notes(report), 1u);
    EXPECT_GT(value_of(report.phases.at(0).lanes.at(1).idle.exposed_launch), counted * 30e3)
        << "by their order the scope is that of the first launch";
}

/// In each step one replay of two operations: launched in 30 us, arrived after 10 more, 15 us between the two.
WallPhase of_a_replay(std::uint16_t flags) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        const resolve::NodeKey replay =
            engine.source.launch(WallEngine::host, 64, flags, WallEngine::queue, t, t + 30 * us);
        for (const auto& [from, to] : {std::pair{40 * us, 400 * us}, {415 * us, 1'000 * us}}) {
            engine.source.cause(WallEngine::queue, replay);
            engine.source.device_scope(WallEngine::queue, Brick::attention, engine.step, -1, t + from, t + to);
        }
        engine.off_cpu(t + 30 * us, t + 1'000 * us);
    });
    WallPhase phase = engine.decode();
    expect_adds_up(phase);
    return phase;
}

TEST(Wall, of_a_linked_replay_launch_and_gaps_are_known) {
    const WallPhase phase = of_a_replay(launch_linked);
    const WallIdle& idle = phase.lanes[1].idle;
    EXPECT_EQ(value_of(idle.exposed_launch), counted * 40e3);
    EXPECT_EQ(value_of(idle.queued), counted * 15e3);
    EXPECT_EQ(value_of(idle.total), counted * 55e3);
    EXPECT_EQ(phase.bound, WallBound::device);
}

TEST(Wall, where_durations_hold_the_gaps_the_idle_time_of_replays_is_not_known) {
    const WallPhase phase = of_a_replay(launch_linked | launch_gapless);
    EXPECT_FALSE(phase.lanes[1].idle.total.value);
    EXPECT_NE(phase.lanes[1].idle.queued.reason.find("inside of durations"), std::string::npos);
    EXPECT_EQ(value_of(phase.lanes[1].busy_ns), counted * 945e3);
    EXPECT_EQ(phase.bound, WallBound::undecided);
}

TEST(Wall, planted_launch_gaps_are_exposed_launch_and_nothing_else) {
    const WallPhase phase = two_commands([](WallEngine&, std::int64_t) {}, 0);
    const WallIdle& idle = phase.lanes[1].idle;
    EXPECT_EQ(value_of(idle.exposed_launch), counted * 60e3) << "25 us at the begin, 35 us in the middle";
    EXPECT_EQ(value_of(idle.total), counted * 60e3);
    EXPECT_EQ(phase.bound, WallBound::device) << "the host sleeps far longer than the device does";
    ASSERT_EQ(phase.gains.size(), 2u);
    EXPECT_EQ(phase.gains[1].what, "no exposed launch");
    EXPECT_EQ(phase.gains[1].at_most_ns, 60e3);
    EXPECT_DOUBLE_EQ(value_of(phase.gains[1].tokens_per_second), 1e9 / 940e3);
}

TEST(Wall, host_work_between_launches_is_named_and_the_rest_of_the_gap_is_the_launch) {
    const WallPhase phase = two_commands(
        [](WallEngine& engine, std::int64_t at) { engine.scope(WallEngine::tokenize, at, at + 100 * us); }, 100 * us);
    const WallIdle& idle = phase.lanes[1].idle;
    EXPECT_EQ(value_of(idle.exposed_launch), counted * 60e3);
    EXPECT_EQ(value_of(idle.host_work), counted * 100e3);
    EXPECT_EQ(value_of(idle.unknown), 0);
    ASSERT_EQ(idle.scopes.size(), 1u);
    EXPECT_EQ(idle.scopes[0].name, "tokenize");
    const WallGain* gain = gain_of(phase, "no host work in tokenize");
    ASSERT_NE(gain, nullptr);
    EXPECT_EQ(gain->at_most_ns, 100e3);
    EXPECT_EQ(phase.gains[0].at_most_ns, 160e3) << "the parts add up to the whole";
}

TEST(Wall, F8_a_parent_scope_and_its_child_never_both_count) {
    const WallPhase phase = two_commands(
        [](WallEngine& engine, std::int64_t at) {
            engine.scope(WallEngine::tokenize, at + 20 * us, at + 80 * us);
            engine.scope(WallEngine::prepare, at, at + 100 * us);
        },
        100 * us);
    const WallIdle& idle = phase.lanes[1].idle;
    EXPECT_EQ(value_of(idle.host_work), counted * 100e3);
    ASSERT_EQ(idle.scopes.size(), 2u);
    EXPECT_EQ(idle.scopes[0].name, "tokenize");
    EXPECT_EQ(idle.scopes[0].self_ns, counted * 60e3);
    EXPECT_EQ(idle.scopes[0].total_ns, counted * 60e3);
    EXPECT_EQ(idle.scopes[1].name, "prepare");
    EXPECT_EQ(idle.scopes[1].self_ns, counted * 40e3);
    EXPECT_EQ(idle.scopes[1].total_ns, counted * 100e3) << "self and total are apart";
}

TEST(Wall, host_work_in_no_named_scope_is_unknown_and_leaves_the_verdict_open_where_it_could_tip_it) {
    const WallPhase some = two_commands([](WallEngine&, std::int64_t) {}, 100 * us);
    EXPECT_EQ(value_of(some.lanes[1].idle.unnamed), counted * 100e3);
    EXPECT_EQ(value_of(some.lanes[1].idle.host_work), 0);
    EXPECT_EQ(some.bound, WallBound::device);
    const WallPhase most = two_commands([](WallEngine&, std::int64_t) {}, 450 * us);
    EXPECT_EQ(value_of(most.lanes[1].idle.unnamed), counted * 450e3);
    EXPECT_EQ(most.bound, WallBound::undecided);
    EXPECT_NE(most.reason.find("could tip it"), std::string::npos) << most.reason;
}

TEST(Wall, a_host_asleep_with_nothing_launched_is_unknown_too_but_off_the_cpu) {
    const WallPhase phase =
        two_commands([](WallEngine& engine, std::int64_t at) { engine.off_cpu(at, at + 300 * us); }, 300 * us);
    EXPECT_EQ(value_of(phase.lanes[1].idle.off_cpu), counted * 300e3);
    EXPECT_EQ(value_of(phase.lanes[0].idle.unknown), counted * 310e3)
        << "and twice 5 us in which a launch was on its way";
}

TEST(Wall, a_host_that_works_while_the_device_starves_makes_the_phase_host_bound) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.scope(WallEngine::tokenize, t, t + 700 * us);
        engine.command(Brick::attention, t + 700 * us, t + 710 * us, t + 715 * us, t + 1'000 * us);
        engine.off_cpu(t + 710 * us, t + 1'000 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    EXPECT_EQ(phase.bound, WallBound::host);
    EXPECT_NE(phase.reason.find("715.0 us per step (71.5 %)"), std::string::npos) << phase.reason;
}

TEST(Wall, a_command_that_was_there_and_did_not_begin_is_neither_launch_nor_host_work) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        // Launched long before the gap; the host is in a named scope all the while.
        engine.command(Brick::qkv_projection, t, t + 10 * us, t + 15 * us, t + 400 * us);
        engine.command(Brick::attention, t + 10 * us, t + 20 * us, t + 600 * us, t + 1'015 * us);
        engine.scope(WallEngine::tokenize, t + 20 * us, t + 900 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    const WallIdle& idle = phase.lanes[1].idle;
    EXPECT_EQ(value_of(idle.queued), counted * 200e3);
    EXPECT_EQ(value_of(idle.total), counted * 200e3);
}

TEST(Wall, two_queues_at_once_are_overlap_and_idle_is_what_both_leave) {
    WallEngine engine;
    engine.add_queue();
    engine.add_queue(WallEngine::second_queue);
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::qkv_projection, t, t + 5 * us, t + 10 * us, t + 600 * us);
        engine.command(Brick::all_reduce, t + 5 * us, t + 10 * us, t + 400 * us, t + 900 * us,
                       WallEngine::second_queue);
        engine.scope(WallEngine::tokenize, t + 900 * us, t + 1'000 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    const WallLane& device = phase.lanes[1];
    EXPECT_EQ(device.tracks, 2u);
    EXPECT_EQ(value_of(device.busy_ns), counted * 890e3);
    EXPECT_EQ(value_of(device.busy_sum_ns), counted * 1'090e3);
    EXPECT_EQ(device.overlap_ns, counted * 200e3);
    EXPECT_EQ(value_of(device.idle.host_work), counted * 100e3);
    EXPECT_EQ(value_of(device.idle.exposed_launch), counted * 10e3);
}

TEST(Wall, each_device_has_a_lane_and_the_verdict_is_about_all_of_them) {
    WallEngine engine;
    engine.add_queue();
    engine.add_other_device();
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::qkv_projection, t, t + 5 * us, t + 10 * us, t + 500 * us);
        engine.command(Brick::attention, t + 5 * us, t + 10 * us, t + 500 * us, t + 1'010 * us,
                       WallEngine::other_device);
        engine.scope(WallEngine::tokenize, t + 500 * us, t + 900 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    ASSERT_EQ(phase.lanes.size(), 4u);
    EXPECT_EQ(phase.lanes[1].name, "all devices");
    EXPECT_EQ(value_of(phase.lanes[1].idle.total), 0);
    EXPECT_EQ(phase.lanes[2].name, "cuda:0");
    EXPECT_EQ(value_of(phase.lanes[2].idle.total), counted * 510e3);
    EXPECT_EQ(value_of(phase.lanes[2].idle.host_work), counted * 400e3);
    EXPECT_EQ(value_of(phase.lanes[2].idle.exposed_launch), (counted - 1) * 10e3)
        << "a step ends with the other device, 10 us after the next one began to launch, and none comes after the last";
    EXPECT_EQ(phase.lanes[3].name, "cuda:1");
    EXPECT_EQ(value_of(phase.lanes[3].busy_ns), counted * 510e3);
    EXPECT_TRUE(phase.gains.empty());
}

TEST(Wall, M3_devices_beyond_the_most_lanes_are_counted_in_a_note_and_lie_in_that_of_all) {
    const auto wall_of = [](std::uint32_t devices) {
        WallEngine engine;
        engine.add_queue();
        for (std::uint32_t i = 1; i < devices; ++i) {
            engine.add_queue(WallEngine::queue + i, 1, "cuda:" + std::to_string(i));
        }
        engine.steps(3, [&](std::int64_t t) {
            engine.command(Brick::attention, t, t + 5 * us, t + 10 * us, t + 500 * us, WallEngine::queue + devices - 1);
        });
        return engine.wall();
    };
    const auto notes_about_lanes = [](const WallReport& report) {
        std::vector<std::string> found;
        for (const std::string& note : report.notes) {
            if (note.find("lane of their own") != std::string::npos) {
                found.push_back(note);
            }
        }
        return found;
    };
    const WallReport many = wall_of(65), few = wall_of(62);
    ASSERT_EQ(many.phases.size(), 1u);
    EXPECT_EQ(many.phases[0].lanes.size(), 64u);
    EXPECT_EQ(notes_about_lanes(many),
              std::vector<std::string>{"3 devices have no lane of their own: an account has 64 "
                                       "lanes at most. They are in that of all devices."});
    EXPECT_EQ(value_of(many.phases[0].lanes[1].busy_ns), 2 * 490e3) << "the last device is in that of all";
    EXPECT_TRUE(notes_about_lanes(few).empty());
}

TEST(Wall, F1_idle_of_a_device_that_replays_graphs_is_absent_with_the_reason) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::embedding, t, t + 5 * us, t + 10 * us, t + 100 * us);
        engine.source.launch(WallEngine::host, 64, 0, WallEngine::queue, t + 100 * us, t + 120 * us);
    });
    const WallPhase phase = engine.decode();
    const WallLane& device = phase.lanes[1];
    EXPECT_EQ(value_of(device.busy_ns), counted * 90e3);
    for (const Figure* figure : {&device.idle.total, &device.idle.exposed_launch, &device.idle.host_work,
                                 &device.idle.unknown, &device.host_waits_ns}) {
        EXPECT_FALSE(figure->value.has_value());
        EXPECT_NE(figure->reason.find("captured graphs"), std::string::npos);
    }
    EXPECT_EQ(phase.bound, WallBound::undecided);
    EXPECT_TRUE(phase.gains.empty());
}

TEST(Wall, F6_kernels_of_captured_graphs_in_no_brick_are_listed_by_name) {
    WallEngine engine;
    engine.add_queue();
    recording::GraphInfo graph;
    graph.key = 64;
    graph.unattributed = {{"memset", 1}, {"ncclKernel", 3}};
    engine.source.graphs_.push_back(graph);
    engine.steps(count, [&](std::int64_t t) {
        engine.source.launch(WallEngine::host, 64, 0, WallEngine::queue, t + 100 * us, t + 120 * us);
    });
    const WallPhase phase = engine.decode();
    ASSERT_EQ(phase.unattributed.size(), 2u);
    EXPECT_EQ(phase.unattributed[0].first, "ncclKernel");
    EXPECT_EQ(phase.unattributed[0].second, 3u);
    EXPECT_EQ(phase.unattributed[1].first, "memset");
}

TEST(Wall, F5_coverage_of_each_lane_is_a_share_of_its_own_busy_time) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::qkv_projection, t, t + 5 * us, t + 10 * us, t + 500 * us);
        engine.source.lap(WallEngine::host, Name{WallEngine::tokenize}, t + 10 * us, t + 20 * us);
        engine.scope(WallEngine::prepare, t + 500 * us, t + 700 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    EXPECT_DOUBLE_EQ(value_of(phase.lanes[0].coverage), 0.2) << "one thread, always on the CPU; laps do not cover";
    EXPECT_EQ(phase.lanes[0].laps_ns, counted * 10e3);
    EXPECT_DOUBLE_EQ(value_of(phase.lanes[1].coverage), 1) << "of 490 us busy, not of 1,000";
}

TEST(Wall, a_scope_that_includes_launch_wait_is_busy_but_not_surely) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.command(Brick::qkv_projection, t, t + 400 * us, t + 10 * us, t + 700 * us, WallEngine::queue,
                       span_includes_launch_wait);
        engine.off_cpu(t + 400 * us, t + 700 * us);
        engine.scope(WallEngine::tokenize, t + 700 * us, t + 1'000 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    const WallLane& device = phase.lanes[1];
    EXPECT_EQ(value_of(device.launch_wait_ns), counted * 390e3) << "while the launch was under way";
    EXPECT_EQ(value_of(device.host_waits_ns), counted * 300e3);
    EXPECT_EQ(value_of(device.idle.exposed_launch), counted * 10e3);
    EXPECT_EQ(value_of(device.idle.host_work), counted * 300e3);
    EXPECT_EQ(phase.bound, WallBound::undecided) << phase.reason;
}

TEST(Wall, without_a_device_idle_is_unknown_and_says_where_the_thread_was) {
    WallEngine engine;
    engine.steps(count, [&](std::int64_t t) {
        engine.scope(WallEngine::tokenize, t, t + 400 * us);
        engine.cpu(t + 400 * us);
        engine.source.scope(WallEngine::host, Brick::all_reduce, t + 400 * us, t + 900 * us);
        engine.off_cpu(t + 900 * us, t + 900 * us);
    });
    WallEngine asleep;
    asleep.steps(count, [&](std::int64_t t) {
        asleep.scope(WallEngine::tokenize, t, t + 400 * us);
        asleep.cpu(t + 400 * us);
        asleep.off_cpu(t + 600 * us, t + 900 * us);
        asleep.source.scope(WallEngine::host, Brick::all_reduce, t + 400 * us, t + 900 * us);
    });
    const WallPhase clean = engine.decode();
    EXPECT_EQ(value_of(clean.lanes[0].idle.total), 0);
    EXPECT_TRUE(clean.gains.empty());
    const WallPhase phase = asleep.decode();
    expect_adds_up(phase);
    EXPECT_EQ(phase.bound, WallBound::no_device);
    const WallLane& host = phase.lanes[0];
    EXPECT_EQ(value_of(host.idle.unknown), counted * 300e3);
    EXPECT_FALSE(host.idle.exposed_launch.value.has_value());
    EXPECT_FALSE(host.idle.host_work.value.has_value());
    ASSERT_EQ(host.idle.scopes.size(), 1u);
    EXPECT_EQ(host.idle.scopes[0].name, "all_reduce");
    EXPECT_EQ(host.idle.scopes[0].self_ns, counted * 300e3);
    EXPECT_NE(gain_of(phase, "no waiting in all_reduce"), nullptr);
}

TEST(Wall, where_it_is_not_known_when_a_thread_slept_gains_are_as_large_as_they_may_be) {
    WallEngine engine;
    engine.steps(count, [&](std::int64_t t) {
        engine.off_cpu(t, t + 20 * us);
        engine.source.scope(WallEngine::host, Brick::all_reduce, t, t + 100 * us);
        engine.cpu(t + 100 * us);
        engine.scope(WallEngine::tokenize, t + 100 * us, t + 400 * us);
        engine.slept(150'000);
        engine.source.scope(WallEngine::host, Brick::all_reduce, t + 400 * us, t + 600 * us);
        engine.scope(WallEngine::tokenize, t + 600 * us, t + 900 * us);
        engine.scope(WallEngine::prepare, t + 900 * us, t + 1'000 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    EXPECT_EQ(phase.lanes[0].off_cpu_uncertain_ns, counted * 150e3);
    const WallGain* waits = gain_of(phase, "no waiting in all_reduce");
    ASSERT_NE(waits, nullptr);
    EXPECT_EQ(waits->at_most_ns, 170e3) << "so long it slept there";
    for (const WallGain& gain : phase.gains) {
        EXPECT_LE(gain.at_most_ns, 170e3) << gain.what;
    }
}

TEST(Wall, one_step_and_the_slowest_ones_have_accounts_of_their_own) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        const std::int64_t gap = engine.step == 7 ? 300 * us : 100 * us;
        engine.scope(WallEngine::tokenize, t, t + gap);
        engine.command(Brick::attention, t + gap, t + gap + 10 * us, t + gap + 15 * us, t + 1'000 * us);
    });
    WallOptions seventh;
    seventh.step = 7;
    const WallReport one = engine.wall(seventh);
    ASSERT_EQ(one.phases.size(), 1u);
    EXPECT_EQ(one.phases[0].steps, 1u);
    expect_adds_up(one.phases[0]);
    EXPECT_EQ(value_of(one.phases[0].lanes[1].idle.host_work), 300e3);
    WallOptions first;
    first.step = 0;
    EXPECT_EQ(engine.wall(first).phases[0].steps, 1u) << "warm-up too, where it is asked for";
    WallOptions slowest;
    slowest.slowest = 3;
    const WallReport several = engine.wall(slowest);
    ASSERT_EQ(several.slowest.size(), 3u);
    for (const WallStep& step : several.slowest) {
        expect_adds_up(step.account);
    }
    WallOptions missing;
    missing.step = 99;
    const Result<WallReport> none = build_wall(engine.source, missing);
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("0 to 20"), std::string::npos) << none.error().message;
}

TEST(Wall, the_slowest_steps_are_the_longest_ones_in_order) {
    planted::Tape source;
    source.track(1);
    std::int64_t now = 1'000;
    for (std::uint64_t step = 0; step < 40; ++step) {
        const std::int64_t length = step == 13 ? 900 * us : step == 29 ? 700 * us : 100 * us;
        source.step_begin(1, step, Phase::decode, now);
        source.step_end(1, Phase::decode, now, now + length);
        now += length;
    }
    WallOptions options;
    options.slowest = 2;
    const Result<WallReport> report = build_wall(source, options);
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->slowest.size(), 2u);
    EXPECT_EQ(report->slowest[0].step, 13u);
    EXPECT_EQ(report->slowest[0].account.period_ns, 900e3);
    EXPECT_EQ(report->slowest[1].step, 29u);
}

TEST(Wall, a_queue_that_is_timed_in_some_steps_has_an_account_of_those) {
    WallEngine engine;
    engine.add_queue(WallEngine::queue, 4);
    engine.steps(count, [&](std::int64_t t) {
        if (engine.step % 4 == 1) {
            engine.command(Brick::attention, t, t + 10 * us, t + 15 * us, t + 1'000 * us);
        }
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    EXPECT_EQ(phase.lanes[1].steps, 5u);
    EXPECT_EQ(value_of(phase.lanes[1].busy_ns), 5 * 985e3);
    EXPECT_EQ(phase.lanes[0].steps, 15u);
    EXPECT_FALSE(phase.lanes[0].idle.for_device.value.has_value()) << "what the device did in those 15 is not known";
    WallOptions untimed;
    untimed.step = 3;
    const WallReport one = engine.wall(untimed);
    EXPECT_FALSE(one.phases.at(0).lanes[1].busy_ns.value.has_value());
    EXPECT_NE(one.phases[0].lanes[1].busy_ns.reason.find("not timed in this step"), std::string::npos);
}

TEST(Wall, a_gain_of_a_queue_that_is_timed_in_some_steps_never_makes_the_others_slower) {
    WallPhase phase;
    phase.steps = phase.tokens = 10;
    phase.tokens_per_second = Figure{1'000, {}};
    phase.period_ns = 10 * 1'000e3;
    WallLane queue;
    queue.name = "cuda:0";
    queue.device = true;
    queue.steps = 5; // others, which timing makes longer
    queue.period_ns = 5 * 1'500e3;
    queue.busy_ns = Figure{5 * 1'300e3, {}};
    queue.idle.total = queue.idle.unknown = Figure{5 * 200e3, {}};
    queue.host_waits_ns = Figure{5 * 900e3, {}};
    phase.lanes = {WallLane{}, queue};
    judge(phase);
    const WallGain* gain = gain_of(phase, "cuda:0 never idle");
    ASSERT_NE(gain, nullptr);
    EXPECT_DOUBLE_EQ(gain->share, 0.2);
    EXPECT_DOUBLE_EQ(value_of(gain->tokens_per_second), 1'250) << "1,000 now";
}

TEST(Wall, without_launches_there_is_no_verdict_for_nobody_knows_who_feeds_the_device) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(count, [&](std::int64_t t) {
        engine.source.device_scope(WallEngine::queue, Brick::attention, engine.step, -1, t, t + 900 * us);
    });
    const WallPhase phase = engine.decode();
    expect_adds_up(phase);
    EXPECT_EQ(phase.bound, WallBound::undecided);
    EXPECT_FALSE(phase.lanes[1].host_waits_ns.value.has_value());
    EXPECT_EQ(value_of(phase.lanes[1].idle.unnamed), counted * 100e3);
}

TEST(Wall, random_records_of_every_kind_still_add_up) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 60; ++round) {
        WallEngine engine;
        engine.add_queue();
        engine.add_queue(WallEngine::second_queue);
        engine.add_other_device();
        engine.source.track(2);
        constexpr std::uint32_t tracks[] = {WallEngine::host,        2, 3, WallEngine::queue, WallEngine::second_queue,
                                            WallEngine::other_device};
        std::uint64_t now = planted::Tape::first_tick;
        for (int i = 0; i < 3000; ++i) {
            now += random() % 5000;
            const std::uint64_t back = random() % 8 == 0 ? random() % 1'000'000 : random() % 4000;
            const std::uint32_t track = tracks[random() % 6];
            const std::uint64_t ahead = track >= WallEngine::queue ? planted::Tape::device_ahead : 0;
            const std::uint64_t target = random() % 2 == 0 ? WallEngine::queue : random() % 100;
            Record record{now - back + ahead,
                          pack(static_cast<RecordKind>(random() % 24), static_cast<std::uint16_t>(random() % 40),
                               random() % 3 == 0 ? back : target)};
            if (random() % 50 == 0) {
                record.first = random();
            }
            engine.source.raw(track, record);
        }
        WallOptions options;
        options.slowest = 5;
        const Result<WallReport> report = build_wall(engine.source, options);
        if (!report.ok()) {
            continue;
        }
        for (const WallPhase& phase : report->phases) {
            expect_adds_up(phase);
        }
        for (const WallStep& step : report->slowest) {
            expect_adds_up(step.account);
        }
    }
}

TEST(Wall, recording_costs_are_a_row_made_of_measured_prices_or_absent) {
    WallEngine engine;
    engine.steps(count, [&](std::int64_t t) { engine.scope(WallEngine::tokenize, t, t + 100 * us); });
    EXPECT_FALSE(engine.decode().own_cost_ns.value.has_value());
    engine.source.metadata_.costs = {{"scope", 50.0}, {"lap", 30.0}};
    EXPECT_EQ(value_of(engine.decode().own_cost_ns), 100.0) << "a scope and the step itself";
    engine.source.counters_.drops = {{"ring full", 5}};
    EXPECT_NE(engine.decode().own_cost_ns.reason.find("are missing"), std::string::npos);
}

TEST(Wall, F1_has_no_rate_where_some_steps_carry_no_tokens_and_says_how_many) {
    WallEngine engine;
    engine.steps(40, [](std::int64_t) {});
    EXPECT_DOUBLE_EQ(value_of(engine.decode().tokens_per_second), 1'000);
    for (std::uint64_t i = 40; i < 42; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us;
        engine.source.step_begin(WallEngine::host, i, Phase::decode, t);
        engine.source.step_end(WallEngine::host, Phase::decode, t, t + 1'000 * us);
    }
    EXPECT_EQ(engine.decode().tokens_per_second.reason, "2 of 41 steps carry no tokens (plumb::tokens(n) gives them)");
}

TEST(Wall, has_no_rate_where_steps_cross_those_of_another_phase) {
    planted::Tape source;
    source.track(1);
    source.track(2);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1'000 * us, end = t + 950 * us;
        source.step_begin(1, 2 * i, Phase::prefill, t);
        source.step_value(1, StepValue::prefill_tokens, 1);
        source.step_end(1, Phase::prefill, t, end);
        source.step_begin(2, 2 * i + 1, Phase::decode, t + 500 * us);
        source.step_value(2, StepValue::decode_tokens, 1);
        source.step_end(2, Phase::decode, t + 500 * us, t + 960 * us);
    }
    const Result<WallReport> report = build_wall(source, {});
    ASSERT_TRUE(report.ok());
    for (const WallPhase& phase : report->phases) {
        EXPECT_EQ(phase.tokens_per_second.reason,
                  "40 times a step ran at the same time as one of another phase, in 40 steps");
        for (const WallGain& gain : phase.gains) {
            EXPECT_EQ(gain.tokens_per_second.reason, phase.tokens_per_second.reason) << gain.what;
        }
    }
}

TEST(Wall, a_recording_without_steps_says_what_to_do) {
    planted::Tape source;
    source.track(1);
    const Result<WallReport> report = build_wall(source, {});
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find("PLUMB_STEP"), std::string::npos);
    source.step_begin(1, 1, Phase::none, 0);
    source.step_end(1, Phase::none, 0, 100);
    EXPECT_NE(build_wall(source, {}).error().message.find("are of phase none"), std::string::npos);
}

} // namespace
} // namespace plumb::analysis

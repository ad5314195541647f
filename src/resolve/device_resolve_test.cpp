// SPDX-License-Identifier: Apache-2.0
// Device queues, captured graphs, and the steps that profiling itself made different.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "planted/tape.hpp"
#include "plumb/backend.hpp"
#include "resolve/resolve.hpp"

namespace plumb::resolve {
namespace {

using planted::Tape;
using planted::us;

constexpr std::uint32_t host = 1, queue = 0x80000001, graph_track = 0x80000002;

struct Collected {
    std::vector<Sample> samples;
    std::vector<Submission> submissions;
    Steps steps;
    bool all_disturbed = false;
};

Collected resolved(Tape& source, std::uint64_t warmup = 0) {
    Collected all;
    ResolveOptions options;
    options.warmup_steps = warmup;
    const auto result = resolve(
        source, options,
        [&](const StepTable& steps, const TrackTable&) {
            all.steps = steps.all();
            all.all_disturbed = steps.all_disturbed(Phase::decode);
        },
        [&](const ResolvedBatch& batch) {
            all.samples.insert(all.samples.end(), batch.samples.begin(), batch.samples.end());
            all.submissions.insert(all.submissions.end(), batch.submissions.begin(), batch.submissions.end());
        });
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result->losses.unresolved(), 0u);
    return all;
}

Tape source_with_queue(std::uint32_t sampled_every) {
    Tape source;
    source.track(host);
    recording::TrackInfo info;
    info.id = queue;
    info.kind = recording::TrackKind::device_queue;
    info.name = "stream";
    info.source = "cuda_event";
    info.sampled_every = sampled_every;
    source.device_track(info);
    return source;
}

template <class Body>
void plant_step(Tape& source, std::uint64_t id, Body&& body) {
    const std::int64_t t = static_cast<std::int64_t>(id) * 100 * us;
    source.step_begin(host, id, Phase::decode, t);
    body(t);
    source.step_end(host, Phase::decode, t, t + 90 * us);
}

TEST(DeviceResolve, F1_when_a_scope_was_queued_and_submitted_is_known_only_where_its_source_told) {
    Tape source = source_with_queue(1);
    plant_step(source, 0, [&](std::int64_t t) {
        source.lead(queue, 25'000, 4'000);
        source.device_scope(queue, Brick::attention, 0, 3, t + 40 * us, t + 70 * us);
        source.lead(queue, no_ticks, 5'000);
        source.device_scope(queue, Brick::attention, 0, 4, t + 71 * us, t + 72 * us);
        source.lead(queue, 6'000, payload_mask);
        source.device_scope(queue, Brick::attention, 0, 5, t + 73 * us, t + 74 * us);
        source.device_scope(queue, Brick::attention, 0, 6, t + 75 * us, t + 76 * us);
        source.lead(queue, std::uint64_t{1} << 63, 0); // of no moment that there was
        source.device_scope(queue, Brick::attention, 0, 7, t + 77 * us, t + 78 * us);
    });
    std::map<std::uint32_t, std::pair<double, double>> delays;
    for (const Sample& sample : resolved(source).samples) {
        if (sample.track == queue) {
            delays[sample.layer.value()] = {sample.queue_delay_ns, sample.submit_delay_ns};
        }
    }
    ASSERT_EQ(delays.size(), 5u);
    EXPECT_EQ(delays[3], std::pair(50'000.0, 8'000.0)) << "of two nanoseconds each";
    EXPECT_TRUE(std::isnan(delays[4].first));
    EXPECT_EQ(delays[4].second, 10'000.0);
    EXPECT_EQ(delays[5].first, 12'000.0);
    EXPECT_TRUE(std::isnan(delays[5].second));
    EXPECT_TRUE(std::isnan(delays[6].first) && std::isnan(delays[6].second)) << "a lead is of the next scope alone";
    EXPECT_TRUE(std::isnan(delays[7].first));
    EXPECT_EQ(delays[7].second, 0.0);
}

/// Steps of 90 us on the host, each 100 us, that leave the device work until 130 us behind their begin.
void plant_tails(Tape& source, std::uint64_t count) {
    for (std::uint64_t id = 0; id < count; ++id) {
        plant_step(source, id, [&](std::int64_t t) {
            source.submit_scope(host, Brick::attention, queue, t + 2 * us, t + 4 * us);
            source.device_scope(queue, Brick::attention, id, 0, t + 30 * us, t + 130 * us);
        });
    }
}

TEST(DeviceResolve, F11_a_step_ends_with_the_last_scope_of_a_device_in_it_and_periods_lie_between_those_ends) {
    Tape source = source_with_queue(1);
    plant_tails(source, 4);
    const Collected all = resolved(source);
    ASSERT_EQ(all.steps.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 100 * us;
        EXPECT_EQ(all.steps[i].begin_ns, t);
        EXPECT_EQ(all.steps[i].end_ns, t + 130 * us);
        EXPECT_EQ(all.steps[i].host_end_ns, t + 90 * us);
        EXPECT_EQ(all.steps[i].period_begin_ns, i == 0 ? 0 : t + 30 * us);
    }
}

TEST(DeviceResolve, a_queue_that_is_timed_in_some_steps_only_ends_none_of_them) {
    Tape source = source_with_queue(2);
    plant_tails(source, 4);
    for (const ResolvedStep& step : resolved(source).steps) {
        EXPECT_EQ(step.end_ns, step.host_end_ns) << "or those would be longer, and the ones behind them shorter";
    }
}

TEST(DeviceResolve, a_break_behind_the_hosts_end_parts_periods_though_the_device_still_works) {
    Tape source = source_with_queue(1);
    plant_tails(source, 2);
    source.raw(host, {Tape::at(195 * us), pack(RecordKind::mark, static_cast<std::uint16_t>(Mark::resumed))});
    plant_step(source, 8, [](std::int64_t) {});
    const Collected all = resolved(source);
    ASSERT_EQ(all.steps.size(), 3u);
    EXPECT_EQ(all.steps[1].period_begin_ns, 130 * us);
    EXPECT_EQ(all.steps[2].period_begin_ns, 800 * us) << "not 600 us of having been off";
}

TEST(DeviceResolve, warm_up_is_the_first_steps_of_the_host_whatever_the_device_does_with_them) {
    Tape source = source_with_queue(1);
    plant_step(source, 0, [&](std::int64_t t) { source.device_scope(queue, Brick::attention, 0, 0, t, t + 350 * us); });
    plant_step(source, 1, [](std::int64_t) {});
    plant_step(source, 2, [](std::int64_t) {});
    for (const ResolvedStep& step : resolved(source, 1).steps) {
        EXPECT_EQ(step.warmup, step.id == 0);
    }
}

TEST(DeviceResolve, T1_a_device_scope_has_the_time_of_the_device_and_its_submission_that_of_the_host) {
    Tape source = source_with_queue(1);
    plant_step(source, 0, [&](std::int64_t t) {
        source.submit_scope(host, Brick::attention, queue, t + 2 * us, t + 4 * us);
        source.device_scope(queue, Brick::attention, 0, 3, t + 40 * us, t + 70 * us);
    });
    const Collected all = resolved(source);
    ASSERT_EQ(all.samples.size(), 2u); // the step and the scope
    const Sample& scope = all.samples[0].track == queue ? all.samples[0] : all.samples[1];
    EXPECT_EQ(scope.begin_ns, 40 * us);
    EXPECT_EQ(scope.duration_ns, 30 * us);
    EXPECT_EQ(scope.step, 0u);
    EXPECT_EQ(scope.layer, 3u);
    EXPECT_EQ(scope.phase, Phase::decode);
    ASSERT_EQ(all.submissions.size(), 1u);
    EXPECT_FALSE(all.submissions[0].graph);
    EXPECT_TRUE(all.submissions[0].timed);
    EXPECT_EQ(all.submissions[0].begin_ns, 2 * us);
    EXPECT_EQ(all.submissions[0].duration_ns, 2 * us);
    EXPECT_EQ(all.submissions[0].queue, queue);
    EXPECT_EQ(all.submissions[0].name, Name(Brick::attention).id);
    EXPECT_FALSE(all.steps[0].left_out) << "a queue that is timed in every step disturbs none more than others";
}

TEST(DeviceResolve, flags_belong_to_the_next_scope_only) {
    Tape source = source_with_queue(1);
    source.device_scope(queue, Brick::attention, 0, -1, us, 2 * us, 0, span_includes_launch_wait);
    source.device_scope(queue, Brick::attention, 0, -1, 3 * us, 4 * us);
    source.device_scope(queue, Brick::attention, 0, -1, 5 * us, 5 * us, 0, span_below_floor);
    const Collected all = resolved(source);
    ASSERT_EQ(all.samples.size(), 3u);
    EXPECT_EQ(all.samples[0].flags, span_includes_launch_wait);
    EXPECT_EQ(all.samples[1].flags, 0u);
    EXPECT_EQ(all.samples[2].flags, span_below_floor);
}

TEST(DeviceResolve, F8_commands_that_may_overlap_hold_nothing_though_one_lies_inside_another) {
    Tape source = source_with_queue(1);
    for (const std::int64_t end : {10 * us, 20 * us, 15 * us}) { // out of order, all said to have begun at once
        source.device_scope(queue, Brick::attention, 0, -1, us, end, 0, span_may_overlap);
    }
    const Collected all = resolved(source);
    ASSERT_EQ(all.samples.size(), 3u);
    for (const Sample& sample : all.samples) {
        EXPECT_TRUE(sample.leaf);
        EXPECT_EQ(sample.self_ns, sample.duration_ns);
        EXPECT_EQ(sample.flags, span_may_overlap);
    }
}

TEST(DeviceResolve, F8_a_scope_cut_by_its_neighbour_is_a_child_of_the_one_around_it) {
    Tape source = source_with_queue(1);
    source.device_scope(queue, Brick::attention, 0, -1, us, 4 * us);
    source.device_scope(queue, Brick::rms_norm, 0, -1, 4 * us, 9 * us, 0, span_cut_by_neighbour);
    source.device_scope(queue, Brick::lm_head, 0, -1, us, 10 * us); // holds both
    const Collected all = resolved(source);
    ASSERT_EQ(all.samples.size(), 3u);
    EXPECT_EQ(all.samples[1].flags, span_cut_by_neighbour);
    EXPECT_FALSE(all.samples[2].leaf);
    EXPECT_EQ(all.samples[2].self_ns, us) << "the time of the one that was cut is not counted twice";
}

TEST(DeviceResolve, a_launch_keeps_key_flags_and_step_and_is_placed_in_time) {
    Tape source = source_with_queue(1);
    source.launch(host, 7, 0, queue, 0, us); // outside any step
    plant_step(source, 5, [&](std::int64_t t) {
        source.launch(host, 0xffffffffffffffff, launch_unread, queue, t + us, t + 3 * us);
    });
    source.raw(host, {9, pack(RecordKind::graph_launch, 0, queue)}); // its device_submit is missing
    const Collected all = resolved(source);
    ASSERT_EQ(all.submissions.size(), 3u);
    EXPECT_EQ(all.submissions[0].step, no_step);
    EXPECT_EQ(all.submissions[0].key, 7u);
    EXPECT_EQ(all.submissions[1].key, 0xffffffffffffffff);
    EXPECT_EQ(all.submissions[1].flags, launch_unread);
    EXPECT_EQ(all.submissions[1].step, 5u);
    EXPECT_EQ(all.submissions[1].begin_ns, 501 * us);
    EXPECT_EQ(all.submissions[1].duration_ns, 2 * us);
    EXPECT_TRUE(all.submissions[1].timed);
    EXPECT_FALSE(all.submissions[2].timed);
    EXPECT_FALSE(all.steps[0].left_out) << "a plain replay leaves its step as it is";
}

TEST(DeviceResolve, instrumented_and_first_replays_leave_their_steps_out) {
    Tape source = source_with_queue(1);
    const std::uint16_t flags[] = {launch_first, 0, launch_instrumented, launch_unread, 0};
    for (std::uint64_t i = 0; i < 5; ++i) {
        plant_step(source, i, [&](std::int64_t t) { source.launch(host, 1, flags[i], queue, t + us, t + 2 * us); });
    }
    const Collected all = resolved(source);
    ASSERT_EQ(all.steps.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(all.steps[i].left_out, i == 0 || i == 2) << i;
    }
    for (const Submission& launch : all.submissions) {
        EXPECT_EQ(launch.left_out, launch.step == 0 || launch.step == 2);
    }
    EXPECT_FALSE(all.all_disturbed);
}

TEST(DeviceResolve, scopes_of_a_queue_that_is_timed_now_and_then_leave_their_steps_out) {
    Tape source = source_with_queue(4);
    for (std::uint64_t i = 0; i < 8; ++i) {
        plant_step(source, i, [&](std::int64_t t) {
            if (i == 3) {
                source.device_scope(queue, Brick::attention, i, -1, t + us, t + 2 * us);
            }
            if (i == 7) { // submitted, but its time never came
                source.submit_scope(host, Brick::attention, queue, t + us, t + 2 * us);
            }
        });
    }
    const Collected all = resolved(source);
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(all.steps[i].left_out, i % 4 == 3) << i;
        EXPECT_EQ(all.steps[i].device_timed, i % 4 == 3) << i;
    }
}

TEST(DeviceResolve, a_worker_that_launches_for_a_step_by_context_marks_that_step) {
    Tape source = source_with_queue(1);
    source.track(2, "worker");
    for (std::uint64_t i = 0; i < 2; ++i) {
        plant_step(source, i, [](std::int64_t) {});
    }
    source.context(2, 1);
    source.launch(2, 1, launch_instrumented, queue, 110 * us, 120 * us);
    source.context_end(2);
    source.launch(2, 1, launch_instrumented, queue, 300 * us, 310 * us); // belongs to no step
    const Collected all = resolved(source);
    EXPECT_FALSE(all.steps[0].left_out);
    EXPECT_TRUE(all.steps[1].left_out);
}

TEST(DeviceResolve, C22_steps_that_were_slowed_by_tracing_of_kernels_are_left_out) {
    Tape source = source_with_queue(8);
    source.track(2, "collector");
    for (std::uint64_t i = 0; i < 4; ++i) {
        plant_step(source, i, [](std::int64_t) {});
    }
    const auto slowed = [&source](std::int64_t t) {
        source.raw(2, {Tape::at(t), pack(RecordKind::mark, static_cast<std::uint16_t>(Mark::slowed_step))});
    };
    source.context(2, 2);
    slowed(900 * us);
    source.context_end(2);
    slowed(910 * us); // of no step
    const Collected all = resolved(source);
    ASSERT_EQ(all.steps.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(all.steps[i].left_out, i == 2) << i;
    }
}

TEST(DeviceResolve, where_every_step_of_a_phase_is_disturbed_none_is_left_out) {
    Tape source = source_with_queue(1);
    for (std::uint64_t i = 0; i < 4; ++i) {
        plant_step(source, i, [&](std::int64_t t) {
            source.launch(host, 1, i == 0 ? 0 : launch_instrumented, queue, t + us, t + 2 * us);
        });
    }
    const Collected all = resolved(source, 1); // the plain one is warm-up
    EXPECT_TRUE(all.all_disturbed);
    for (const ResolvedStep& step : all.steps) {
        EXPECT_FALSE(step.left_out);
    }
}

TEST(DeviceResolve, samples_of_a_captured_graph_carry_the_step_of_their_replay) {
    Tape source = source_with_queue(1);
    recording::TrackInfo info;
    info.id = graph_track;
    info.kind = recording::TrackKind::captured_graph;
    info.source = "cuda_graph_event";
    info.graph_key = 64;
    source.device_track(info);
    plant_step(source, 0, [](std::int64_t) {});
    plant_step(source, 1, [&](std::int64_t t) {
        source.launch(host, 64, launch_instrumented, queue, t + us, t + 2 * us);
        source.device_scope(graph_track, Brick::rms_norm, 1, 0, t + 10 * us, t + 15 * us);
        source.device_scope(graph_track, Brick::attention, 1, 0, t + 15 * us, t + 30 * us);
    });
    const Collected all = resolved(source);
    std::size_t inside = 0;
    for (const Sample& sample : all.samples) {
        if (sample.track != graph_track) {
            continue;
        }
        ++inside;
        EXPECT_EQ(sample.step, 1u);
        EXPECT_TRUE(sample.left_out);
        EXPECT_EQ(sample.layer, 0u);
        EXPECT_TRUE(sample.leaf);
    }
    EXPECT_EQ(inside, 2u);
}

TEST(StepIds, memory_is_bounded_and_ids_come_back_sorted_once) {
    StepIds ids;
    for (std::uint64_t round = 0; round < 4; ++round) {
        for (std::uint64_t id = 0; id < 100'000; ++id) {
            ids.add((id * 7919) % 100'000);
        }
    }
    ASSERT_EQ(ids.sorted().size(), 100'000u);
    EXPECT_EQ(ids.sorted().front(), 0u);
    EXPECT_EQ(ids.sorted().back(), 99'999u);
    EXPECT_LE(ids.sorted().capacity(), 400'000u);
}

} // namespace
} // namespace plumb::resolve

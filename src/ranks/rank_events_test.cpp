// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_events.hpp"

#include <gtest/gtest.h>

#include "planted/tape.hpp"

namespace plumb::ranks {
namespace {

using planted::Tape;

constexpr std::int64_t micro = 1'000;
constexpr std::uint32_t rank_host = 1, rank_queue = 0x80000001;

/// Twenty steps of 1,000 us on the host. In one of so many a device is timed, which works for so long: attention on one queue, and
/// on the other at the end an all_reduce, beside which attention runs on for half of it.
Tape stepping(std::uint32_t sampled_every, std::int64_t busy) {
    Tape tape;
    tape.track(rank_host);
    recording::TrackInfo info;
    info.id = rank_queue;
    info.kind = recording::TrackKind::device_queue;
    info.sampled_every = sampled_every;
    tape.device_track(info);
    info.id = rank_queue + 1;
    tape.device_track(info);
    for (std::uint64_t step = 0; step < 20; ++step) {
        const std::int64_t begin = static_cast<std::int64_t>(step) * 1'000 * micro;
        tape.step_begin(rank_host, step, Phase::decode, begin);
        if (step % sampled_every == 0) {
            tape.submit_scope(rank_host, Brick::attention, rank_queue, begin, begin + micro);
            tape.submit_scope(rank_host, Brick::all_reduce, rank_queue + 1, begin + micro, begin + 2 * micro);
            tape.device_scope(rank_queue, Brick::attention, step, -1, begin, begin + busy - 50 * micro);
            tape.device_scope(rank_queue + 1, Brick::all_reduce, step, -1, begin + busy - 100 * micro, begin + busy);
        }
        tape.step_end(rank_host, Phase::decode, begin, begin + 1'000 * micro);
    }
    return tape;
}

RankEvents events_of(Tape tape) {
    Result<RankEvents> events = read_events(tape);
    EXPECT_TRUE(events.ok()) << (events.ok() ? "" : events.error().message);
    return events.ok() ? *std::move(events) : RankEvents{};
}

TEST(RankEvents, a_device_that_is_timed_now_and_then_is_as_busy_as_one_that_always_is) {
    for (const std::int64_t busy : {1'000 * micro, 250 * micro}) {
        for (const std::uint32_t every : {1U, 10U}) {
            const RankEvents events = events_of(stepping(every, busy));
            EXPECT_EQ(events.queues_sampled, every != 1);
            EXPECT_NEAR(events.busy_share.value.value_or(-1), static_cast<double>(busy) / (1'000. * micro), 0.001);
            EXPECT_NEAR(events.hidden_ns.value.value_or(-1) / static_cast<double>(events.collective_ns), 0.5, 0.001);
        }
    }
}

TEST(RankEvents, work_that_is_timed_in_each_step_counts_where_the_other_queue_is_timed) {
    Tape tape = stepping(10, 250 * micro);
    for (std::uint64_t step = 0; step < 20; ++step) {
        const std::int64_t begin = static_cast<std::int64_t>(step) * 1'000 * micro;
        tape.context(rank_host, step);
        tape.scope(rank_host, Brick::send, begin + 600 * micro, begin + 700 * micro);
        tape.context_end(rank_host);
    }
    const RankEvents events = events_of(tape);
    EXPECT_EQ(events.collective_ns, 2 * 200 * micro) << "of both timed steps";
    EXPECT_NEAR(events.busy_share.value.value_or(-1), 0.25, 0.001);
}

TEST(RankEvents, where_captured_graphs_ran_it_is_not_known_how_busy_a_device_was) {
    Tape linked = stepping(1, 250 * micro);
    linked.launch(rank_host, 7, launch_linked, rank_queue, 19'500 * micro, 19'501 * micro);
    EXPECT_TRUE(events_of(linked).busy_share.value) << "its operations are scopes of queues";
    Tape tape = stepping(1, 250 * micro);
    tape.launch(rank_host, 7, 0, rank_queue, 19'500 * micro, 19'501 * micro);
    const RankEvents events = events_of(tape);
    EXPECT_FALSE(events.busy_share.value || events.hidden_ns.value);
    EXPECT_NE(events.busy_share.reason.find("captured graphs"), std::string::npos) << events.busy_share.reason;
}

} // namespace
} // namespace plumb::ranks

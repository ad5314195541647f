// SPDX-License-Identifier: Apache-2.0
// For tests: an engine that feeds device queues from a host thread, written by hand, and its wall account. Each test knows the
// truth. Steps are 1,000 us long; the first is warm-up. Owned by the test; one thread.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "analysis/wall_builder.hpp"
#include "planted/tape.hpp"

namespace plumb::analysis {

class WallEngine {
  public:
    static constexpr std::int64_t us = 1'000;
    static constexpr std::int64_t step_length = 1'000 * us;
    static constexpr std::uint32_t host = 1, queue = 0x80000001, second_queue = 0x80000002, other_device = 0x80000003;
    static constexpr std::uint16_t tokenize = 500, prepare = 501;

    WallEngine() {
        source.metadata_.warmup_steps = 1;
        source.names_ = {{tokenize, Category::other, "tokenize"}, {prepare, Category::other, "prepare"}};
        source.track(host);
    }
    void add_queue(std::uint32_t id = queue, std::uint32_t sampled_every = 1, const std::string& clock = "cuda:0") {
        recording::TrackInfo info;
        info.id = id;
        info.kind = recording::TrackKind::device_queue;
        info.name = "stream " + std::to_string(id - queue);
        info.source = "cuda_event";
        info.sampled_every = sampled_every;
        source.device_track(info, clock);
    }
    /// A queue of a second device, with a clock of its own that shows the same ticks.
    void add_other_device() { add_queue(other_device, 1, "cuda:1"); }
    /// `body(t)`: t is the step's begin; it ends 1,000 us later.
    template <class Body>
    void steps(int count, Body&& body) {
        for (int i = 0; i < count; ++i) {
            const std::int64_t t = static_cast<std::int64_t>(step) * step_length;
            cpu(t);
            source.step_begin(host, step, Phase::decode, t);
            source.step_value(host, StepValue::decode_tokens, 1);
            body(t);
            source.step_end(host, Phase::decode, t, t + step_length);
            cpu(t + step_length);
            ++step;
        }
    }
    /// Launched in [begin, end) by the host, run in [from, to) by a queue.
    void command(Brick brick, std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                 std::uint32_t where = queue, std::uint16_t quality = 0) {
        const resolve::NodeKey submission = source.submit_scope(host, brick, where, begin, end);
        if (tells_launches) {
            source.cause(where, submission);
        }
        source.device_scope(where, brick, step, -1, from, to, 0, quality);
    }
    void scope(std::uint16_t name, std::int64_t begin, std::int64_t end) { source.scope(host, Name{name}, begin, end); }
    /// The host thread is off the CPU in [begin, end).
    void off_cpu(std::int64_t begin, std::int64_t end) {
        cpu(begin);
        off_ += end - begin;
        cpu(end);
    }
    /// It was so for some time before now, and no sample of CPU time says when.
    void slept(std::int64_t ns) { off_ += ns; }
    void cpu(std::int64_t time) { source.cpu_time(host, time, time - off_); }

    WallReport wall(const WallOptions& options = {}) {
        const Result<WallReport> made = build_wall(source, options);
        EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
        return made.ok() ? *made : WallReport{};
    }
    /// The decode steps; an empty phase, and a failed test, where there are none.
    WallPhase decode(const WallOptions& options = {}) {
        const WallReport report = wall(options);
        for (const WallPhase& phase : report.phases) {
            if (phase.phase == Phase::decode) {
                return phase;
            }
        }
        ADD_FAILURE() << "no decode steps";
        return {};
    }

    planted::Tape source;
    std::uint64_t step = 0;
    bool tells_launches = true; // false: as an older writer

  private:
    std::int64_t off_ = 0;
};

inline double value_of(const Figure& figure) {
    EXPECT_TRUE(figure.value.has_value()) << figure.reason;
    return figure.value.value_or(-1);
}

/// What adds up by definition, to the nanosecond.
inline void expect_adds_up(const WallLane& lane) {
    if (!lane.idle.total.value) {
        return;
    }
    const WallIdle& idle = lane.idle;
    EXPECT_EQ(value_of(lane.busy_ns) + value_of(idle.total), lane.period_ns) << lane.name;
    EXPECT_EQ(lane.bricks_ns + value_of(lane.unattributed_ns), value_of(lane.busy_ns)) << lane.name;
    EXPECT_EQ(lane.bricks_sum_ns - lane.bricks_ns, lane.overlap_ns) << lane.name;
    double scopes = 0;
    for (const WallScope& scope : idle.scopes) {
        scopes += scope.self_ns;
    }
    if (lane.device) {
        EXPECT_EQ(value_of(idle.exposed_launch) + value_of(idle.host_work) + value_of(idle.unknown),
                  value_of(idle.total))
            << lane.name;
        EXPECT_EQ(value_of(idle.queued) + value_of(idle.unnamed) + value_of(idle.off_cpu), value_of(idle.unknown))
            << lane.name;
        EXPECT_EQ(scopes, value_of(idle.host_work)) << lane.name;
    } else if (idle.for_device.value) {
        EXPECT_EQ(value_of(idle.for_device) + value_of(idle.unknown), value_of(idle.total)) << lane.name;
        EXPECT_LE(scopes, value_of(idle.total)) << lane.name;
    }
}

inline void expect_adds_up(const WallPhase& phase) {
    for (const WallLane& lane : phase.lanes) {
        expect_adds_up(lane);
    }
}

} // namespace plumb::analysis

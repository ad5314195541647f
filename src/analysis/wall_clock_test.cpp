// SPDX-License-Identifier: Apache-2.0
// The definitions of the wall account must be able to fail: each test plants time of a known kind and looks where it
// appears.
#include "analysis/wall_clock.hpp"

#include <gtest/gtest.h>

#include "analysis/planted_report_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::ms;
using planted::Tape;
using planted::us;

// Decode steps of 20 ms on one thread, sampled as a recorder samples. Times in ns; `off` is the thread's off-CPU time.
class SampledEngine {
  public:
    explicit SampledEngine(Tape& source, std::uint32_t track = 1) : source_(source), track_(track) {}

    void begin_step(std::uint64_t id) {
        sample();
        begin_ = now_;
        source_.step_begin(track_, id, Phase::decode, now_);
    }
    void end_step() {
        source_.step_end(track_, Phase::decode, begin_, now_);
        sample();
    }
    void brick(Name name, std::int64_t length, std::int64_t off = 0) {
        if (now_ - quiet_since_ > long_ns) {
            sample();
        }
        source_.scope(track_, name, now_, now_ + length);
        pass(length, off);
        if (length > long_ns) {
            sample();
        }
        quiet_since_ = now_;
    }
    void spin(std::int64_t length) { pass(length, 0); }
    void sleep(std::int64_t length) { pass(length, length); }
    void sample() {
        source_.cpu_time(track_, now_, now_ - off_);
        quiet_since_ = now_;
    }
    [[nodiscard]] std::int64_t now() const { return now_; }

  private:
    static constexpr std::int64_t long_ns = 2 * static_cast<std::int64_t>(long_ticks);

    void pass(std::int64_t length, std::int64_t off) {
        now_ += length;
        off_ += off;
    }

    Tape& source_;
    std::uint32_t track_;
    std::int64_t now_ = 1000;
    std::int64_t off_ = 0;
    std::int64_t begin_ = 0;
    std::int64_t quiet_since_ = 0;
};

WallAccount account_of(Tape& source) {
    const Report report = report_of(source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    return decode->wall;
}

void expect_identities(const WallAccount& wall) {
    EXPECT_EQ(wall.union_ns + wall.unattributed_ns, wall.busy_ns);
    EXPECT_EQ(wall.busy_ns + wall.idle_ns, wall.period_ns);
    EXPECT_EQ(wall.sum_ns - wall.union_ns, wall.overlap_ns);
}

// 40 steps; each: 100 bricks of 198 us, 2 us apart, then `extra`.
template <class Extra>
WallAccount decode_with(Extra extra) {
    Tape source;
    source.track(1);
    SampledEngine engine(source);
    for (std::uint64_t step = 0; step < 40; ++step) {
        engine.begin_step(step);
        for (int i = 0; i < 100; ++i) {
            engine.spin(2 * us);
            engine.brick(i % 2 == 0 ? Brick::rms_norm : Brick::attention, 198 * us);
        }
        extra(engine);
        engine.end_step();
    }
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    return wall;
}

TEST(WallClock, F5_coverage_is_the_share_of_busy_time_under_leaf_bricks) {
    const WallAccount wall = decode_with([](SampledEngine&) {});
    EXPECT_NEAR(wall.coverage.value.value(), 0.99, 1e-6);
    EXPECT_NEAR(wall.unattributed_ns / wall.period_ns, 0.01, 1e-6);
    EXPECT_EQ(wall.idle_ns, 0);
    EXPECT_EQ(wall.overlap_ns, 0);
}

TEST(WallClock, M6_a_spin_of_five_percent_outside_bricks_lowers_coverage_by_five_points_and_is_unattributed) {
    const WallAccount before = decode_with([](SampledEngine&) {});
    // 5 % of the longer step.
    const WallAccount after = decode_with([](SampledEngine& engine) { engine.spin(20 * ms * 5 / 95); });
    EXPECT_NEAR(before.coverage.value.value() - after.coverage.value.value(), 0.05, 0.005);
    EXPECT_NEAR((after.unattributed_ns - before.unattributed_ns) / after.period_ns, 0.05, 0.0005);
    EXPECT_EQ(after.idle_ns, 0);
}

TEST(WallClock, a_sleep_between_bricks_is_idle_and_leaves_coverage_alone) {
    const WallAccount before = decode_with([](SampledEngine&) {});
    const WallAccount after = decode_with([](SampledEngine& engine) { engine.sleep(3 * ms); });
    EXPECT_NEAR(after.idle_ns, 40 * 3e6, 1);
    EXPECT_NEAR(after.coverage.value.value(), before.coverage.value.value(), 1e-6);
    EXPECT_EQ(after.off_cpu_uncertain_ns, 0);
}

TEST(WallClock, a_sleep_inside_a_brick_is_idle_too) {
    const WallAccount after =
        decode_with([](SampledEngine& engine) { engine.brick(Brick::all_reduce, 3 * ms, 2 * ms); });
    EXPECT_NEAR(after.idle_ns, 40 * 2e6, 1);
    EXPECT_NEAR(after.union_ns, 40 * (100 * 198e3 + 1e6), 1);
    EXPECT_NEAR(after.bricks_idle_ns, 40 * 2e6, 1);
}

TEST(WallClock, a_spin_and_a_sleep_in_one_gap_are_both_seen) {
    const WallAccount after = decode_with([](SampledEngine& engine) {
        engine.spin(ms);
        engine.sleep(2 * ms);
    });
    EXPECT_NEAR(after.idle_ns, 40 * 2e6, 1);
    EXPECT_NEAR(after.unattributed_ns, 40 * (200e3 + 1e6), 1);
}

TEST(WallClock, short_off_cpu_time_goes_to_gaps_first_and_is_marked_uncertain) {
    Tape source;
    source.track(1);
    SampledEngine engine(source);
    engine.begin_step(0);
    engine.brick(Brick::attention, 100 * us);
    engine.sleep(30 * us); // too short to be sampled by itself
    engine.brick(Brick::attention, 100 * us);
    engine.spin(10 * us);
    engine.brick(Brick::attention, 100 * us, 20 * us); // preempted inside
    engine.end_step();
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    EXPECT_EQ(wall.idle_ns, 50e3);
    EXPECT_EQ(wall.off_cpu_uncertain_ns, 50e3);
    EXPECT_EQ(wall.unattributed_ns, 0); // 40 us of gaps took 40 of the 50 us
    EXPECT_EQ(wall.union_ns, 290e3);
}

TEST(WallClock, uncertain_time_of_many_threads_is_at_most_the_period) {
    Tape source;
    for (std::uint32_t track = 1; track <= 6; ++track) {
        source.track(track);
        SampledEngine engine(source, track);
        if (track == 1) {
            engine.begin_step(0);
        } else {
            engine.sample();
        }
        for (int i = 0; i < 4; ++i) {
            engine.sleep(80 * us);
            engine.brick(Brick::attention, 20 * us);
        }
        if (track == 1) {
            engine.end_step();
        } else {
            engine.sample();
        }
    }
    const WallAccount wall = account_of(source);
    EXPECT_EQ(wall.period_ns, 400e3);
    EXPECT_EQ(wall.off_cpu_uncertain_ns, 400e3);
}

TEST(WallClock, jitter_of_the_two_clocks_cancels_instead_of_adding_up) {
    Tape source;
    source.track(1);
    std::int64_t now = 1000;
    source.cpu_time(1, now, now);
    for (std::uint64_t step = 0; step < 1000; ++step) {
        source.step_begin(1, step, Phase::decode, now);
        source.scope(1, Brick::attention, now + 1000, now + 99'000);
        source.step_end(1, Phase::decode, now, now + 100'000);
        now += 100'000;
        source.cpu_time(1, now, now + (step % 2 == 0 ? 300 : -300)); // read a little early or late
    }
    const WallAccount wall = account_of(source);
    EXPECT_LE(wall.idle_ns, 1000);
}

TEST(WallClock, two_threads_at_once_are_overlap) {
    Tape source;
    source.track(1);
    source.track(2, "worker");
    SampledEngine main(source, 1);
    for (std::uint64_t step = 0; step < 20; ++step) {
        main.begin_step(step);
        const std::int64_t t = main.now();
        main.brick(Brick::gate_projection, 500 * us);
        main.end_step();
        source.context(2, step);
        source.scope(2, Brick::up_projection, t + 100 * us, t + 400 * us);
        source.context_end(2);
    }
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    EXPECT_EQ(wall.sum_ns, 20 * 800e3);
    EXPECT_EQ(wall.union_ns, 20 * 500e3);
    EXPECT_EQ(wall.overlap_ns, 20 * 300e3);
}

TEST(WallClock, while_one_thread_sleeps_another_keeps_the_step_busy) {
    Tape source;
    source.track(1);
    source.track(2, "worker");
    SampledEngine main(source, 1);
    SampledEngine worker(source, 2);
    worker.sample();
    for (std::uint64_t step = 0; step < 20; ++step) {
        main.begin_step(step);
        main.brick(Brick::embedding, 4 * ms);
        main.sleep(80 * ms); // waits for the worker
        main.brick(Brick::lm_head, 4 * ms);
        main.end_step();
        worker.sleep(4 * ms);
        worker.brick(Brick::moe_experts, 76 * ms);
        worker.sleep(8 * ms);
    }
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    // Per step of 88 ms: nobody runs for 4 ms, between the worker's end and main's going on.
    EXPECT_NEAR(wall.idle_ns / wall.period_ns, 0.4 / 8.8, 0.003);
    EXPECT_NEAR(wall.union_ns / wall.period_ns, 8.4 / 8.8, 0.003);
}

TEST(WallClock, laps_do_not_count_for_coverage_and_are_shown_apart) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.scope(1, Brick::attention, 0, 400 * us);
    source.lap(1, Brick::rms_norm, 400 * us, 600 * us);
    source.lap(1, Brick::rope_embedding, 600 * us, 700 * us);
    source.step_end(1, Phase::decode, 0, ms);
    source.cpu_time(1, ms, ms);
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    EXPECT_EQ(wall.union_ns, 400e3);
    EXPECT_EQ(wall.lap_union_ns, 300e3);
    EXPECT_NEAR(wall.unattributed_ns, 600e3, 1e3);
}

TEST(WallClock, F5_the_share_of_the_wall_has_the_wall_as_its_denominator) {
    Tape source;
    source.track(1);
    SampledEngine engine(source);
    for (std::uint64_t step = 0; step < 10; ++step) {
        engine.begin_step(step);
        engine.brick(Brick::attention, 400 * us);
        engine.spin(100 * us);
        engine.sleep(500 * us);
        engine.end_step();
    }
    const Report report = report_of(source);
    const Row* row = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_NEAR(row->wall_share.value.value(), 0.4, 0.0001); // not 100, of the covered; not 80, of the busy
    EXPECT_NEAR(phase_of(report, Phase::decode)->wall.coverage.value.value(), 0.8, 0.001);
}

TEST(WallClock, F5_time_between_steps_belongs_to_the_period_of_the_next_one) {
    Tape source;
    source.track(1);
    SampledEngine engine(source);
    for (std::uint64_t step = 0; step < 10; ++step) {
        engine.begin_step(step);
        engine.brick(Brick::attention, 900 * us);
        engine.end_step();
        engine.spin(100 * us); // scheduling, sampling, detokenizing: outside the steps
    }
    const WallAccount wall = account_of(source);
    expect_identities(wall);
    EXPECT_EQ(wall.period_ns, 10 * 900e3 + 9 * 100e3);
    EXPECT_EQ(wall.unattributed_ns, 9 * 100e3);
}

TEST(WallClock, a_thread_that_is_silent_over_many_steps_is_not_busy_meanwhile) {
    Tape source;
    source.track(1);
    source.track(2, "helper");
    SampledEngine main(source, 1);
    source.scope(2, Brick::copy_h2d, 1000, 2000);
    for (std::uint64_t step = 0; step < 30; ++step) {
        main.begin_step(step);
        main.sleep(600 * us);
        main.brick(Brick::attention, 400 * us);
        main.end_step();
    }
    source.scope(2, Brick::copy_h2d, main.now() - 4000, main.now() - 2000);
    const WallAccount wall = account_of(source);
    EXPECT_NEAR(wall.idle_ns / wall.period_ns, 0.6, 0.002);
}

// The helper's chunk comes behind all of the main thread's, as the drain may write them.
WallAccount sleeping_steps_beside_spans(bool spin) {
    Tape source;
    source.track(1);
    source.track(2, "helper");
    SampledEngine main(source, 1);
    for (std::uint64_t step = 0; step < 40; ++step) {
        main.begin_step(step);
        main.sleep(ms);
        main.end_step();
    }
    source.deliver(1);
    for (std::int64_t at = 0; at < main.now(); at += 500 * us) {
        source.cpu_time(2, at, spin ? at : 0);
        source.span(2, Brick::copy_h2d, at, at + 400 * us);
    }
    source.cpu_time(2, main.now(), spin ? main.now() : 0);
    source.deliver(2);
    const Report report = report_of(source);
    EXPECT_FALSE(has_note(report, "in no wall account"));
    EXPECT_FALSE(has_note(report, "CPU time is not known"));
    const WallAccount wall = phase_of(report, Phase::decode)->wall;
    expect_identities(wall);
    return wall;
}

TEST(WallClock, a_thread_that_tells_spans_alone_is_in_the_account) {
    const WallAccount spinning = sleeping_steps_beside_spans(true);
    EXPECT_EQ(spinning.idle_ns, 0);
    EXPECT_NEAR(spinning.coverage.value.value(), 0.8, 0.01);
    const WallAccount sleeping = sleeping_steps_beside_spans(false);
    EXPECT_EQ(sleeping.busy_ns, 0);
}

TEST(WallClock, a_thread_that_tells_spans_alone_without_readings_counts_as_on_the_cpu) {
    Tape source;
    source.track(1);
    source.track(2, "helper");
    SampledEngine main(source, 1);
    for (std::uint64_t step = 0; step < 40; ++step) {
        main.begin_step(step);
        main.sleep(ms);
        main.end_step();
    }
    source.deliver(1);
    for (std::int64_t at = 0; at <= main.now(); at += 500 * us) {
        source.span(2, Brick::copy_h2d, std::max<std::int64_t>(0, at - 400 * us), at);
    }
    source.span(2, Brick::copy_h2d, main.now() - 400 * us, main.now());
    source.deliver(2);
    const Report report = report_of(source);
    EXPECT_TRUE(has_note(report, "so all their time counts as busy: helper"));
    EXPECT_FALSE(has_note(report, "in no wall account"));
    const WallAccount wall = phase_of(report, Phase::decode)->wall;
    EXPECT_EQ(wall.idle_ns, 0);
    EXPECT_NEAR(wall.coverage.value.value(), 0.8, 0.01);
}

TEST(WallClock, threads_without_cpu_time_are_named) {
    Tape source;
    source.track(1, "no_samples");
    source.step_begin(1, 0, Phase::decode, 0);
    source.scope(1, Brick::attention, 0, 400 * us);
    source.step_end(1, Phase::decode, 0, ms);
    EXPECT_TRUE(has_note(report_of(source), "no_samples"));
}

TEST(WallClock, cpu_time_that_contradicts_the_clock_is_counted_and_not_believed) {
    Tape source;
    source.track(1);
    source.step_begin(1, 0, Phase::decode, 0);
    source.cpu_time(1, 0, 0);
    source.scope(1, Brick::attention, 0, 400 * us);
    source.cpu_time(1, 400 * us, 90 * ms); // ran 90 ms in 0.4 ms
    source.scope(1, Brick::attention, 500 * us, 900 * us);
    source.cpu_time(1, ms, 80 * ms); // and back
    source.step_end(1, Phase::decode, 0, ms);
    const Report report = report_of(source);
    EXPECT_TRUE(has_note(report, "2 samples of CPU time contradict the clock"));
    EXPECT_EQ(phase_of(report, Phase::decode)->wall.idle_ns, 0);
}

} // namespace
} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Samples of what the kernel counts, planted: the parts of a phase, and what cannot be known.
#include "analysis/off_cpu.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "analysis/planted_wall_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::ms;

constexpr std::uint32_t worker_track = 7;

/// 300 steps of 1 ms on the host, and a second thread.
WallEngine engine() {
    WallEngine made;
    made.source.track(worker_track, "worker");
    made.steps(300, [](std::int64_t) {});
    return made;
}

recording::OffCpuSample sample(std::int64_t at_ns, std::vector<recording::ThreadSample> threads) {
    recording::OffCpuSample made;
    made.monotonic_ns = at_ns;
    made.threads = std::move(threads);
    return made;
}

/// Every 100 ms: the host runs 60, waits 30 for a CPU and is blocked for 10; the worker runs 20 and is blocked for 80.
void plant(WallEngine& engine, bool migrations = true, std::uint64_t intervals = 3) {
    for (std::uint64_t i = 0; i <= intervals; ++i) {
        const std::uint64_t moved = migrations && i % 3 == 0 ? 5 * i : base::not_counted;
        engine.source.off_cpu_.push_back(
            sample(static_cast<std::int64_t>(i) * 100 * ms, {{WallEngine::host, {60 * ms * i, 30 * ms * i, moved}},
                                                             {worker_track, {20 * ms * i, 0, base::not_counted}}}));
        engine.source.off_cpu_.back().process = {100 * i, 2 * i, 50 * i, 40 * i, 10 * ms * i};
    }
}

const OffCpuCauses& causes_of(const WallPhase& phase) {
    EXPECT_TRUE(phase.off_cpu.has_value());
    static const OffCpuCauses none;
    return phase.off_cpu ? *phase.off_cpu : none;
}

TEST(OffCpu, F5_a_phase_has_run_queue_and_blocked_time_by_thread_and_they_add_up) {
    WallEngine planted = engine();
    plant(planted);
    const WallPhase phase = planted.decode();
    const OffCpuCauses& causes = causes_of(phase);
    EXPECT_EQ(causes.intervals, 3u);
    EXPECT_NEAR(causes.covered_ns, 299e6, 1) << "the first step is warm-up";
    const double part = 299.0 / 300;
    ASSERT_EQ(causes.threads.size(), 2u);
    EXPECT_EQ(causes.threads[0].name, "worker") << "the longest off the CPU";
    EXPECT_NEAR(causes.threads[0].blocked_ns, 240e6, 1e6);
    const OffCpuThread& host = causes.threads[1];
    EXPECT_NEAR(host.on_cpu_ns, 180e6, 1e6);
    EXPECT_NEAR(host.run_queue_ns, 90e6, 1e6);
    EXPECT_NEAR(host.blocked_ns, 30e6, 1e6);
    EXPECT_NEAR(host.on_cpu_ns + host.run_queue_ns + host.blocked_ns, host.observed_ns, 1);
    EXPECT_NEAR(host.migrations.value.value_or(-1), 15 * part, 0.1);
    EXPECT_NEAR(host.migrations_observed_ns, 299e6, 1);
    EXPECT_FALSE(causes.threads[0].migrations.value.has_value());
    EXPECT_NEAR(causes.run_queue_ns.value.value_or(-1), 90e6, 1e6);
    EXPECT_NEAR(causes.blocked_ns.value.value_or(-1), 270e6, 2e6);
    EXPECT_NEAR(causes.stolen_ns.value.value_or(-1), 30e6, 1e6);
    EXPECT_NEAR(causes.minor_faults.value.value_or(-1), 300, 2);
    EXPECT_NEAR(causes.major_faults.value.value_or(-1), 6, 0.1);
    EXPECT_NEAR(causes.voluntary_switches.value.value_or(-1), 150, 1);
    EXPECT_NEAR(causes.involuntary_switches.value.value_or(-1), 120, 1);
}

/// The first reading of a thread counts where a recording says two of one moment.
TEST(OffCpu, of_many_threads_each_is_found_in_the_sample_before_whatever_their_order) {
    WallEngine planted = engine();
    const std::uint32_t threads = 4096;
    for (std::uint64_t i = 0; i <= 3; ++i) {
        std::vector<recording::ThreadSample> all;
        for (std::uint32_t k = 0; k < threads; ++k) {
            const std::uint32_t track = 100 + (i % 2 == 0 ? k : threads - 1 - k);
            all.push_back({track, {track * 1'000 * i, 20 * ms * i, base::not_counted}});
        }
        all.push_back({all[0].track, {0, 0, base::not_counted}});
        planted.source.off_cpu_.push_back(sample(static_cast<std::int64_t>(i) * 100 * ms, std::move(all)));
    }
    const WallPhase phase = planted.decode();
    const OffCpuCauses& causes = causes_of(phase);
    ASSERT_EQ(causes.threads.size(), threads);
    for (const OffCpuThread& thread : causes.threads) {
        const auto track = static_cast<double>(std::stoul(thread.name.substr(7)));
        EXPECT_NEAR(thread.on_cpu_ns, 299. / 300 * 3 * track * 1'000, 1 + track) << thread.name;
    }
}

/// The kernel books a wait when it ends: here in the third interval, 250 ms at once.
TEST(OffCpu, F5_a_wait_over_several_samples_is_run_queue_in_all_of_them_and_not_blocked) {
    WallEngine planted = engine();
    for (const auto& [at, run, wait] : {std::tuple{0, 0, 0}, {100, 40, 0}, {200, 40, 0}, {300, 50, 250}}) {
        planted.source.off_cpu_.push_back(sample(
            at * ms,
            {{WallEngine::host,
              {static_cast<std::uint64_t>(run * ms) + 1, static_cast<std::uint64_t>(wait * ms), base::not_counted}}}));
    }
    const OffCpuCauses causes = causes_of(planted.decode());
    EXPECT_NEAR(causes.run_queue_ns.value.value_or(-1), 250e6, 1e6);
    EXPECT_NEAR(causes.blocked_ns.value.value_or(-1), 0, 1e6);
    ASSERT_EQ(causes.threads.size(), 1u);
    EXPECT_NEAR(causes.threads[0].on_cpu_ns, 50e6, 1e6);
}

TEST(OffCpu, intervals_tell_all_threads_together) {
    WallEngine planted = engine();
    plant(planted);
    const WallReport wall = planted.wall();
    ASSERT_EQ(wall.off_cpu_intervals.size(), 3u);
    EXPECT_EQ(wall.off_cpu_intervals[1].begin_ns, 100 * ms);
    EXPECT_EQ(wall.off_cpu_intervals[1].length_ns, 100 * ms);
    EXPECT_NEAR(value_of(wall.off_cpu_intervals[1].on_cpu_ns), 80e6, 1);
    EXPECT_NEAR(value_of(wall.off_cpu_intervals[1].run_queue_ns), 30e6, 1);
    EXPECT_NEAR(value_of(wall.off_cpu_intervals[1].blocked_ns), 90e6, 1);
    EXPECT_NEAR(value_of(wall.off_cpu_intervals[1].stolen_ns), 10e6, 1);
}

TEST(OffCpu, F1_what_nobody_counted_is_unknown_with_the_reason_and_never_0) {
    WallEngine without = engine();
    const WallPhase none = without.decode();
    EXPECT_FALSE(causes_of(none).run_queue_ns.value.has_value());
    EXPECT_NE(causes_of(none).run_queue_ns.reason.find("no samples"), std::string::npos);

    WallEngine zeros = engine(); // as a kernel without schedstat writes it
    zeros.source.off_cpu_ = {sample(0, {{WallEngine::host, {0, 0, base::not_counted}}}),
                             sample(200 * ms, {{WallEngine::host, {0, 0, base::not_counted}}})};
    const WallPhase zero = zeros.decode();
    EXPECT_FALSE(causes_of(zero).blocked_ns.value.has_value());
    EXPECT_NE(causes_of(zero).blocked_ns.reason.find("CONFIG_SCHED_INFO"), std::string::npos);
    EXPECT_FALSE(causes_of(zero).stolen_ns.value.has_value());
    const WallReport uncounted = zeros.wall();
    ASSERT_EQ(uncounted.off_cpu_intervals.size(), 1u);
    const OffCpuInterval& interval = uncounted.off_cpu_intervals[0];
    for (const Figure* figure :
         {&interval.on_cpu_ns, &interval.run_queue_ns, &interval.blocked_ns, &interval.stolen_ns}) {
        EXPECT_FALSE(figure->value.has_value());
        EXPECT_NE(figure->reason.find("CONFIG_SCHED_INFO"), std::string::npos);
    }

    WallEngine late = engine();
    late.source.off_cpu_ = {sample(500 * ms, {}), sample(600 * ms, {})};
    const WallPhase behind = late.decode();
    EXPECT_NE(causes_of(behind).run_queue_ns.reason.find("no two samples"), std::string::npos);
}

TEST(OffCpu, samples_that_go_back_or_belong_to_no_thread_add_nothing) {
    WallEngine planted = engine();
    plant(planted);
    planted.source.off_cpu_.push_back(sample(50 * ms, {{WallEngine::host, {1, 1, 1}}})); // behind the others
    planted.source.off_cpu_.push_back(sample(250 * ms, {{WallEngine::host, {0, 0, 0}}, {999, {7, 7, 7}}}));
    const WallPhase phase = planted.decode();
    for (const OffCpuThread& thread : causes_of(phase).threads) {
        EXPECT_GE(thread.blocked_ns, 0) << thread.name;
        EXPECT_GE(thread.run_queue_ns, 0) << thread.name;
    }
}

TEST(OffCpu, one_step_has_the_part_of_its_intervals) {
    WallEngine planted = engine();
    planted.source.step_begin(WallEngine::host, 300, Phase::decode,
                              300 * ms); // 295 ms: 2 intervals and 95 % of a third
    planted.source.step_end(WallEngine::host, Phase::decode, 300 * ms, 595 * ms);
    plant(planted, true, 6);
    WallOptions options;
    options.step = 300;
    const WallPhase phase = planted.decode(options);
    EXPECT_NEAR(causes_of(phase).covered_ns, 295e6, 1);
    ASSERT_EQ(causes_of(phase).threads.size(), 2u);
    EXPECT_NEAR(causes_of(phase).threads[1].run_queue_ns, 2.95 * 30e6, 1e3);
}

/// What was counted in its interval may have happened in the 99 other steps.
TEST(OffCpu, F1_one_step_of_many_between_two_samples_is_unknown) {
    WallEngine planted = engine();
    plant(planted);
    WallOptions options;
    options.step = 150;
    const WallPhase phase = planted.decode(options);
    EXPECT_EQ(causes_of(phase).intervals, 0u);
    EXPECT_TRUE(causes_of(phase).threads.empty());
    for (const Figure& figure : {causes_of(phase).run_queue_ns, causes_of(phase).blocked_ns, causes_of(phase).stolen_ns,
                                 causes_of(phase).involuntary_switches}) {
        EXPECT_FALSE(figure.value.has_value());
        EXPECT_NE(figure.reason.find("no two samples lie in these steps"), std::string::npos) << figure.reason;
    }
}

} // namespace
} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "clock/host_clock.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace plumb::clock {
namespace {

/// Every read of either clock costs the next of the given ticks; one tick is ten nanoseconds.
class ScriptedClock final : public HostClock {
  public:
    explicit ScriptedClock(std::vector<std::uint64_t> costs) : costs_(std::move(costs)) {}
    std::uint64_t now_ticks() const noexcept override { return advance(); }
    std::int64_t now_ns() const noexcept override { return static_cast<std::int64_t>(advance()) * 10; }

  private:
    std::uint64_t advance() const noexcept {
        now_ += costs_[next_++ % costs_.size()];
        return now_;
    }
    std::vector<std::uint64_t> costs_;
    mutable std::size_t next_ = 0;
    mutable std::uint64_t now_ = 1000;
};

CounterFacts good_x86() {
    return {.is_x86 = true, .is_arm64 = false, .tsc_invariant = true, .kernel_trusts_tsc = true};
}

TEST(HostClock, the_tsc_is_used_only_where_it_is_invariant_and_the_kernel_trusts_it) {
    EXPECT_EQ(choose_host_clock(good_x86()).kind, HostClockKind::tsc);

    CounterFacts drifting = good_x86();
    drifting.tsc_invariant = false;
    EXPECT_EQ(choose_host_clock(drifting).kind, HostClockKind::monotonic);
    EXPECT_NE(choose_host_clock(drifting).reason.find("not invariant"), std::string::npos);

    CounterFacts rejected = good_x86();
    rejected.kernel_trusts_tsc = false;
    EXPECT_EQ(choose_host_clock(rejected).kind, HostClockKind::monotonic);
    EXPECT_NE(choose_host_clock(rejected).reason.find("kernel"), std::string::npos);
}

TEST(HostClock, arm64_uses_its_virtual_counter_and_an_unknown_cpu_the_monotonic_clock) {
    CounterFacts arm;
    arm.is_arm64 = true;
    EXPECT_EQ(choose_host_clock(arm).kind, HostClockKind::cntvct);
    EXPECT_EQ(choose_host_clock(CounterFacts{}).kind, HostClockKind::monotonic);
}

TEST(HostClock, the_clock_of_this_machine_never_goes_back) {
    for (const HostClockSource source : {machine_clock(), HostClockSource{HostClockKind::monotonic, nullptr}}) {
        base::HostTicks last = now_ticks(source);
        for (int i = 0; i < 10'000; ++i) {
            const base::HostTicks now = now_ticks(source);
            ASSERT_GE((now - last).value, 0) << name_of(source.kind);
            last = now;
        }
    }
}

TEST(HostClock, an_injected_clock_replaces_ticks_nanoseconds_and_cpu_time) {
    const ScriptedClock script({7});
    const HostClockSource source = host_clock(&script);
    EXPECT_EQ(source.kind, HostClockKind::caller);
    EXPECT_EQ(now_ticks(source).value, 1007u);
    EXPECT_EQ(now_ns(source).value, 10'140);
    EXPECT_EQ(thread_cpu_ns(source).value, 10'210);
    EXPECT_EQ(host_clock(nullptr).kind, machine_clock().kind);
}

TEST(HostClock, of_several_tries_the_pair_with_the_tightest_bracket_is_kept) {
    // One try reads ticks, nanoseconds, ticks. The second is the tight one: ticks 1032, 1034, 1036.
    const ScriptedClock script({10, 10, 10, 2, 2, 2, 50, 50, 50});
    const ClockReading pair = read_clock_pair(host_clock(&script), 3);
    EXPECT_EQ(pair.uncertainty_ticks, 4u);
    EXPECT_EQ(pair.ticks.value, 1034u);
    EXPECT_EQ(pair.monotonic.value, 10'340);
}

TEST(HostClock, a_pair_of_this_machine_lies_between_the_reads_around_it) {
    const HostClockSource source = machine_clock();
    const base::HostTicks ticks_before = now_ticks(source);
    const base::Nanoseconds before = now_ns(source);
    const ClockReading pair = read_clock_pair(source);
    EXPECT_GE(pair.monotonic, before);
    EXPECT_LE(pair.monotonic, now_ns(source));
    EXPECT_GE(pair.ticks, ticks_before);
    EXPECT_LE(pair.ticks, now_ticks(source));
    EXPECT_GT(pair.realtime.value, 1'600'000'000'000'000'000) << "after 2020";
}

TEST(HostClock, without_tries_a_pair_is_still_read_once) {
    const ScriptedClock script({1});
    EXPECT_EQ(read_clock_pair(host_clock(&script), 0).uncertainty_ticks, 2u);
}

} // namespace
} // namespace plumb::clock

// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/queue_timer.hpp"

#include <gtest/gtest.h>

namespace plumb::backends::cpu {
namespace {

/// Goes on by what the test says; 2.5 ticks a nanosecond.
class ManualClock final : public HostClock {
  public:
    std::uint64_t now_ticks() const noexcept override { return ticks; }
    std::int64_t now_ns() const noexcept override { return static_cast<std::int64_t>(ticks) * 2 / 5; }
    std::uint64_t ticks = 1'000'000;
};

std::unique_ptr<QueueTimer> timer_on(const ManualClock& clock) {
    TimerOptions options;
    options.host_clock = &clock;
    auto timer = CpuQueueTimer::create(options);
    EXPECT_TRUE(timer.ok());
    return std::move(*timer);
}

TEST(CpuQueueTimer, a_scope_reads_what_passed_on_the_injected_clock) {
    ManualClock clock;
    const auto timer = timer_on(clock);
    EXPECT_STREQ(timer->source(), "caller");
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok());
    clock.ticks += 2'500;
    ASSERT_TRUE(timer->end(*token).ok());
    clock.ticks += 1'000'000;
    const auto span = timer->collect(*token);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 1'000'000u);
    EXPECT_EQ(span->end_ticks, 1'002'500u);
    const auto elapsed = timer->duration(*span);
    ASSERT_TRUE(elapsed.ok()) << elapsed.error().message;
    EXPECT_NEAR(elapsed->nanoseconds, 1'000.0, 0.01);
    EXPECT_GT(elapsed->uncertainty, 0.0);
}

TEST(CpuQueueTimer, M4_without_a_second_moment_the_rate_is_unknown_and_no_duration_is_given) {
    ManualClock clock;
    const auto timer = timer_on(clock);
    const auto elapsed = timer->duration({0, 100, 0});
    ASSERT_FALSE(elapsed.ok());
    EXPECT_FALSE(elapsed.error().message.empty());
}

TEST(CpuQueueTimer, M4_a_clock_that_goes_back_inside_a_scope_is_an_error_and_spends_the_token) {
    ManualClock clock;
    const auto timer = timer_on(clock);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok());
    clock.ticks -= 1;
    ASSERT_TRUE(timer->end(*token).ok());
    const auto span = timer->collect(*token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::corrupt);
    EXPECT_EQ(timer->collect(*token).error().code, ErrorCode::not_found);
    EXPECT_EQ(timer->in_flight(), 0u);
}

TEST(CpuQueueTimer, an_impossible_number_of_scopes_in_flight_is_refused_before_memory_is_taken) {
    for (const std::uint32_t count : {0u, 1u << 24, ~0u}) {
        TimerOptions options;
        options.max_in_flight = count;
        const auto timer = CpuQueueTimer::create(options);
        ASSERT_FALSE(timer.ok());
        EXPECT_EQ(timer.error().code, ErrorCode::invalid_argument);
    }
}

TEST(CpuQueueTimer, a_sampled_one_times_the_scopes_of_steps_that_are_timed_alone) {
    const auto sampled = CpuQueueTimer::create({}, system_calls(), true);
    const auto plain = CpuQueueTimer::create({});
    ASSERT_TRUE(sampled.ok() && plain.ok());
    ScopeLabel label;
    label.timed = false;
    EXPECT_TRUE((*sampled)->sampled_by_step());
    EXPECT_FALSE((*plain)->sampled_by_step());
    EXPECT_EQ((*sampled)->begin_labelled(label)->value, token_not_timed);
    EXPECT_NE((*plain)->begin_labelled(label)->value, token_not_timed);
    label.timed = true;
    EXPECT_NE((*sampled)->begin_labelled(label)->value, token_not_timed);
    EXPECT_EQ((*sampled)->in_flight(), 1U);
}

TEST(CpuQueueTimer, capabilities_follow_the_facts_of_the_machine) {
    clock::CounterFacts old_x86;
    old_x86.is_x86 = true;
    clock::CounterFacts arm;
    arm.is_arm64 = true;
    EXPECT_FALSE(capabilities_of(old_x86)[0].supported);
    EXPECT_NE(capabilities_of(old_x86)[0].reason.find("not invariant"), std::string::npos);
    EXPECT_FALSE(capabilities_of(arm)[0].supported);
    EXPECT_TRUE(capabilities_of(arm)[1].supported);
}

} // namespace
} // namespace plumb::backends::cpu

// SPDX-License-Identifier: Apache-2.0
// Scopes and attached commands on OpenCL in virtual time, whose every stamp is known.
#include "backends/opencl/queue_timer.hpp"

#include <gtest/gtest.h>

#include "clock/correlation.hpp"
#include "mocks/virtual_opencl.hpp"

namespace plumb::backends::opencl {
namespace {

class OpenClTimer : public testing::Test {
  protected:
    void open(Bits properties, const vocl::Config& config = {}) {
        vocl::reset(config);
        queue_ = vocl::make_queue(properties);
        held_before_ = vocl::alive();
        TimerOptions options;
        options.host_clock = &vocl::host_clock();
        auto made = OpenClQueueTimer::create(vocl::driver(), queue_, options);
        ASSERT_TRUE(made.ok()) << made.error().message;
        timer_ = std::move(*made);
    }
    void TearDown() override {
        timer_.reset();
        if (queue_ != nullptr) {
            EXPECT_EQ(vocl::alive(), held_before_) << "everything that was made or kept is given back";
            vocl::release(queue_);
        }
    }
    /// A command of so many nanoseconds, attached; its event is given up at once.
    DeviceToken attached(std::int64_t ns) {
        Event event = nullptr;
        vocl::enqueue(queue_, ns, &event);
        const auto token = timer_->attach(event);
        EXPECT_TRUE(token.ok()) << token.error().message;
        vocl::release(event);
        return token ? *token : DeviceToken{};
    }

    CommandQueue queue_ = nullptr;
    std::size_t held_before_ = 0;
    std::unique_ptr<OpenClQueueTimer> timer_;
};

std::int64_t length_of(const DeviceSpan& span) { return static_cast<std::int64_t>(span.end_ticks - span.begin_ticks); }

TEST_F(OpenClTimer, T1_a_scope_reads_what_the_device_did_and_not_what_the_host_did) {
    open(queue_profiling);
    vocl::enqueue(queue_, 5'000'000); // the device is busy while the host enqueues
    const auto token = timer_->begin();
    vocl::enqueue(queue_, 700'000);
    vocl::enqueue(queue_, 300'000);
    ASSERT_TRUE(token.ok() && timer_->end(*token).ok());
    EXPECT_EQ(timer_->collect(*token).error().code, ErrorCode::pending);
    vocl::settle();
    const auto span = timer_->collect(*token);
    ASSERT_TRUE(span.ok()) << span.error().message;
    EXPECT_NEAR(static_cast<double>(length_of(*span)), 1'000'000 * (1 + 20e-6), 2);
    EXPECT_EQ(span->flags, 0u) << "the queue was never empty";
    EXPECT_LT(span->queued_ticks, span->submitted_ticks);
    EXPECT_LT(span->submitted_ticks, span->begin_ticks);
    EXPECT_STREQ(timer_->source(), "opencl_event");
    EXPECT_EQ(timer_->clock_name(), "opencl:0");
    EXPECT_EQ(timer_->device_name(), device_text(vocl::driver(), vocl::device(), device_name).value());
}

TEST_F(OpenClTimer, F2_scopes_do_not_drain_the_queue_and_a_kernel_reads_its_own_length) {
    open(queue_profiling);
    vocl::enqueue(queue_, 1'000'000);
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 20; ++i) {
        const auto token = timer_->begin();
        vocl::enqueue(queue_, 32'000);
        ASSERT_TRUE(token.ok() && timer_->end(*token).ok());
        tokens.push_back(*token);
    }
    EXPECT_EQ(timer_->collect(tokens.front()).error().code, ErrorCode::pending);
    EXPECT_EQ(vocl::waits(), 0u);
    vocl::settle();
    for (const DeviceToken token : tokens) {
        const auto span = timer_->collect(token);
        ASSERT_TRUE(span.ok());
        EXPECT_NEAR(static_cast<double>(length_of(*span)), 32'000, 2) << "a 32 us kernel reads 32 us";
    }
    EXPECT_EQ(vocl::waits(), 0u);
}

TEST_F(OpenClTimer, T2_laps_share_a_marker_and_add_up) {
    open(queue_profiling);
    vocl::enqueue(queue_, 1'000'000);
    const std::size_t before = vocl::alive();
    ScopeLabel label;
    auto token = timer_->begin_labelled(label);
    std::vector<DeviceToken> laps;
    for (int i = 0; i < 10; ++i) {
        vocl::enqueue(queue_, 10'000);
        ASSERT_TRUE(token.ok());
        laps.push_back(*token);
        token = timer_->lap(*token, nullptr, label);
    }
    ASSERT_TRUE(token.ok() && timer_->end_labelled(*token, nullptr).ok());
    EXPECT_EQ(vocl::alive() - before, 12u) << "eleven laps have twelve borders";
    vocl::settle();
    std::uint64_t last_end = 0;
    for (const DeviceToken lap : laps) {
        const auto span = timer_->collect(lap);
        ASSERT_TRUE(span.ok());
        EXPECT_TRUE(last_end == 0 || span->begin_ticks == last_end) << "one ends where the next begins";
        last_end = span->end_ticks;
    }
    ASSERT_TRUE(timer_->collect(*token).ok());
    EXPECT_EQ(vocl::alive(), before) << "shared markers are given back once, and all of them";
}

TEST_F(OpenClTimer, a_step_that_is_not_timed_enqueues_nothing) {
    open(queue_profiling);
    ScopeLabel off;
    off.timed = false;
    const std::size_t before = vocl::alive();
    const auto token = timer_->begin_labelled(off);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->value, token_not_timed);
    const auto next = timer_->lap(*token, nullptr, off);
    ASSERT_TRUE(next.ok() && timer_->end_labelled(*next, nullptr).ok());
    EXPECT_EQ(vocl::alive(), before);
    EXPECT_TRUE(timer_->sampled_by_step());
}

TEST_F(OpenClTimer, a_scope_on_an_idle_queue_says_that_it_includes_the_launch) {
    open(queue_profiling);
    const auto token = timer_->begin();
    vocl::pass(50'000); // the host is slow to enqueue
    vocl::enqueue(queue_, 10'000);
    ASSERT_TRUE(token.ok() && timer_->end(*token).ok());
    vocl::settle();
    const auto span = timer_->collect(*token);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->flags, span_includes_launch_wait);
    EXPECT_GT(length_of(*span), 50'000);
}

TEST_F(OpenClTimer, M8_a_queue_without_profiling_is_refused_with_the_way_to_switch_it_on) {
    vocl::reset();
    queue_ = vocl::make_queue(0);
    held_before_ = vocl::alive();
    const auto made = OpenClQueueTimer::create(vocl::driver(), queue_, {});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_NE(made.error().message.find("CL_QUEUE_PROFILING_ENABLE"), std::string::npos);
    EXPECT_EQ(OpenClQueueTimer::create(vocl::driver(), nullptr, {}).error().code, ErrorCode::invalid_argument);
}

TEST_F(OpenClTimer, an_attached_command_reads_its_own_four_times) {
    open(queue_profiling);
    vocl::enqueue(queue_, 100'000);
    const DeviceToken token = attached(70'000);
    EXPECT_EQ(timer_->collect(token).error().code, ErrorCode::pending);
    EXPECT_EQ(timer_->end(token).error().code, ErrorCode::not_found) << "it has ended already";
    vocl::settle();
    const auto span = timer_->collect(token);
    ASSERT_TRUE(span.ok()) << span.error().message;
    EXPECT_NEAR(static_cast<double>(length_of(*span)), 70'000, 2);
    EXPECT_LT(span->queued_ticks, span->submitted_ticks);
    EXPECT_LT(span->submitted_ticks, span->begin_ticks);
    EXPECT_EQ(span->flags, 0u);
    EXPECT_EQ(timer_->collect(token).error().code, ErrorCode::not_found) << "once";
    EXPECT_EQ(timer_->in_flight(), 0u);
}

TEST_F(OpenClTimer, M5_on_an_out_of_order_queue_a_marker_would_serialise_and_is_refused_with_the_other_way) {
    open(queue_profiling | queue_out_of_order);
    const auto begun = timer_->begin();
    ASSERT_FALSE(begun.ok());
    EXPECT_EQ(begun.error().code, ErrorCode::unsupported);
    EXPECT_NE(begun.error().message.find("attach()"), std::string::npos);
    EXPECT_FALSE(timer_->begin_labelled({}).ok());
    EXPECT_FALSE(timer_->lap({token_not_timed}, nullptr, {}).ok());
    const auto capabilities = timer_->capabilities();
    EXPECT_FALSE(capabilities.front().supported);
}

TEST_F(OpenClTimer, commands_of_an_out_of_order_queue_say_that_their_starts_may_overlap) {
    open(queue_profiling | queue_out_of_order);
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 12; ++i) {
        tokens.push_back(attached(50'000));
    }
    vocl::settle();
    std::int64_t sum = 0;
    std::uint64_t first = ~std::uint64_t{0}, last = 0;
    for (const DeviceToken token : tokens) {
        const auto span = timer_->collect(token);
        ASSERT_TRUE(span.ok());
        EXPECT_EQ(span->flags, span_may_overlap);
        sum += length_of(*span);
        first = std::min(first, span->begin_ticks);
        last = std::max(last, span->end_ticks);
    }
    const auto whole = static_cast<std::int64_t>(last - first);
    EXPECT_GT(sum, 5 * whole) << "their sum is no time that anything was busy";
    EXPECT_NEAR(static_cast<double>(whole), 12 * 50'000, 10'000) << "their union is";
}

TEST_F(OpenClTimer, a_command_stands_alone_on_an_out_of_order_queue_and_in_a_row_on_another) {
    open(queue_profiling | queue_out_of_order);
    const DeviceToken alone = attached(50'000);
    EXPECT_EQ(timer_->group_of(alone), alone.value);
    TearDown();
    open(queue_profiling);
    EXPECT_EQ(timer_->group_of(attached(50'000)), 0u);
}

TEST_F(OpenClTimer, an_event_of_another_queue_is_refused_and_not_kept) {
    open(queue_profiling);
    const CommandQueue other = vocl::make_queue(queue_profiling);
    Event event = nullptr;
    vocl::enqueue(other, 1'000, &event);
    const auto token = timer_->attach(event);
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().code, ErrorCode::invalid_argument);
    for (const char* call : {"clGetEventInfo", "clRetainEvent"}) {
        Event own = nullptr;
        vocl::enqueue(queue_, 1'000, &own);
        vocl::fail(call, 1);
        EXPECT_FALSE(timer_->attach(own).ok()) << call;
        EXPECT_TRUE(vocl::has_failed());
        vocl::release(own);
    }
    vocl::release(event);
    vocl::release(other);
}

TEST_F(OpenClTimer, attached_commands_count_towards_the_bound) {
    open(queue_profiling);
    timer_.reset();
    TimerOptions options;
    options.max_in_flight = 2;
    options.host_clock = &vocl::host_clock();
    timer_ = std::move(*OpenClQueueTimer::create(vocl::driver(), queue_, options));
    attached(1'000);
    attached(1'000);
    Event event = nullptr;
    vocl::enqueue(queue_, 1'000, &event);
    EXPECT_EQ(timer_->attach(event).error().code, ErrorCode::out_of_memory);
    vocl::release(event);
}

TEST_F(OpenClTimer, F1_a_command_that_failed_on_the_device_has_no_time) {
    open(queue_profiling);
    vocl::config().failed_status = -9999;
    const auto token = timer_->begin();
    ASSERT_TRUE(token.ok() && timer_->end(*token).ok());
    vocl::settle();
    const auto span = timer_->collect(*token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::failed);
    EXPECT_NE(span.error().message.find("-9999"), std::string::npos);
    EXPECT_EQ(timer_->in_flight(), 0u);
}

TEST_F(OpenClTimer, F1_a_stamp_that_the_driver_left_at_zero_is_an_error) {
    open(queue_profiling);
    vocl::config().zero_stamps = true;
    const DeviceToken token = attached(1'000);
    vocl::settle();
    EXPECT_EQ(timer_->collect(token).error().code, ErrorCode::corrupt);
}

TEST_F(OpenClTimer, M4_a_command_that_ended_before_it_began_is_an_error_and_never_clamped) {
    open(queue_profiling);
    vocl::config().reversed_stamps = true;
    const DeviceToken token = attached(1'000);
    vocl::settle();
    const auto span = timer_->collect(token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::corrupt);
    EXPECT_EQ(timer_->duration({100, 50, 0}).error().code, ErrorCode::corrupt);
}

TEST_F(OpenClTimer, a_coarse_timer_flags_what_it_cannot_resolve) {
    vocl::Config config;
    config.resolution_ns = 1'000;
    open(queue_profiling, config);
    const DeviceToken token = attached(400);
    vocl::settle();
    const auto span = timer_->collect(token);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->flags, span_below_floor);
    EXPECT_GE(timer_->duration(*span)->uncertainty, 1'000.0);
}

TEST_F(OpenClTimer, wait_reports_each_call_that_fails_and_leaks_no_event) {
    open(queue_profiling);
    for (const char* call : {"clRetainEvent", "clFlush", "clWaitForEvents"}) {
        const auto token = timer_->begin();
        ASSERT_TRUE(token.ok());
        EXPECT_EQ(timer_->wait(*token).error().code, ErrorCode::invalid_argument) << "still open";
        ASSERT_TRUE(timer_->end(*token).ok());
        vocl::fail(call, 1);
        const Status waited = timer_->wait(*token);
        ASSERT_FALSE(waited.ok());
        EXPECT_EQ(waited.error().message.rfind(call, 0), 0u) << waited.error().message;
        EXPECT_TRUE(timer_->wait(*token).ok()) << "the token is still good";
        EXPECT_TRUE(timer_->collect(*token).ok());
    }
    EXPECT_TRUE(timer_->wait({token_not_timed}).ok());
}

} // namespace
} // namespace plumb::backends::opencl

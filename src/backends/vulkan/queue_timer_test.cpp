// SPDX-License-Identifier: Apache-2.0
// Scopes around submissions, and the clock: on a device in virtual time.
#include "backends/vulkan/queue_timer.hpp"

#include <ostream>
#include <vector>

#include "backends/vulkan/bench_testing.hpp"
#include "clock/correlation.hpp"

namespace plumb::backends::vulkan {
namespace {

class VulkanQueueTimerTest : public VulkanBench {
  protected:
    void kernel(std::int64_t ns) {
        const CommandBuffer commands = vvk::new_commands();
        vvk::begin(commands);
        vvk::barrier(commands);
        vvk::dispatch(commands, ns);
        vvk::end(commands);
        vvk::submit(commands);
    }
};

TEST_F(VulkanQueueTimerTest, F2_scopes_around_submissions_do_not_drain_the_pipeline) {
    VulkanQueueTimer& queue = timer();
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 16; ++i) {
        const auto token = queue.begin();
        ASSERT_TRUE(token.ok());
        kernel(32'000);
        ASSERT_TRUE(queue.end(*token).ok());
        tokens.push_back(*token);
    }
    EXPECT_EQ(vvk::waits(), 0u);
    EXPECT_EQ(vvk::idle_ns(), 0) << "the device never ran dry";
    EXPECT_EQ(queue.collect(tokens.back()).error().code, ErrorCode::pending);
    vvk::catch_up();
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        EXPECT_NEAR(length_ns(tokens[i]), 32'000, 2) << "a 32 us kernel reads 32 us";
    }
    EXPECT_EQ(vvk::waits(), 0u);
}

TEST_F(VulkanQueueTimerTest, a_scope_on_an_idle_queue_says_that_it_waited_for_its_launch) {
    VulkanQueueTimer& queue = timer();
    vvk::pass(100'000'000);
    ASSERT_TRUE(queue.clock_pair().ok());
    std::vector<std::uint32_t> flags;
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 2; ++i) {
        const auto token = queue.begin();
        kernel(1'000'000);
        ASSERT_TRUE(token.ok() && queue.end(*token).ok());
        tokens.push_back(*token);
    }
    vvk::catch_up();
    ASSERT_TRUE(queue.clock_pair().ok());
    for (const DeviceToken token : tokens) {
        const auto span = queue.collect(token);
        ASSERT_TRUE(span.ok());
        flags.push_back(span->flags);
    }
    EXPECT_EQ(flags, (std::vector<std::uint32_t>{span_includes_launch_wait, 0}));
}

TEST_F(VulkanQueueTimerTest, cancelled_stamps_are_used_again_only_after_the_device_wrote_them) {
    VulkanQueueTimer& queue = timer();
    kernel(10'000'000); // everything behind it is late
    for (int i = 0; i < 100; ++i) {
        const auto token = queue.begin();
        ASSERT_TRUE(token.ok() && queue.end(*token).ok());
        queue.cancel(*token);
    }
    const auto token = queue.begin();
    kernel(50'000);
    ASSERT_TRUE(token.ok() && queue.end(*token).ok());
    vvk::catch_up();
    EXPECT_NEAR(length_ns(*token), 50'000, 2);
}

TEST_F(VulkanQueueTimerTest, M4_an_end_before_its_begin_is_an_error_and_spends_the_token) {
    VulkanQueueTimer& queue = timer();
    CommandTimer& here = record();
    const auto token = here.begin();
    vvk::end(commands_);
    ASSERT_TRUE(token.ok());
    const CommandBuffer first = commands_;
    ASSERT_TRUE(queue.end(*token).ok()) << "its end runs before the command buffer that holds its begin";
    vvk::pass(1'000'000);
    vvk::submit(first);
    vvk::catch_up();
    EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::corrupt);
    EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::not_found);
    EXPECT_EQ(queue.in_flight(), 0u);
}

TEST_F(VulkanQueueTimerTest, a_lost_device_is_told_and_not_called_again) {
    VulkanQueueTimer& queue = timer();
    vvk::fail("vkQueueSubmit", 1, VkResult::device_lost);
    EXPECT_EQ(queue.begin().error().code, ErrorCode::unavailable);
    EXPECT_NE(queue.begin().error().message.find("VK_ERROR_DEVICE_LOST"), std::string::npos);
    EXPECT_EQ(queue.clock_pair().error().code, ErrorCode::unavailable);
}

TEST_F(VulkanQueueTimerTest, after_close_it_answers_that_it_is_closed_and_still_gives_the_pairs_it_had) {
    VulkanQueueTimer& queue = timer();
    const auto token = queue.begin();
    kernel(5'000);
    ASSERT_TRUE(token.ok() && queue.end(*token).ok());
    vvk::pass(100'000'000);
    queue.close();
    EXPECT_EQ(vvk::alive(), 0u);
    EXPECT_EQ(queue.begin().error().code, ErrorCode::unavailable);
    EXPECT_TRUE(queue.collect(*token).ok()) << "read when it was closed";
    const auto first = queue.clock_pair();
    const auto last = queue.clock_pair();
    ASSERT_TRUE(first.ok() && last.ok()) << "a drain that comes late can still place the scopes";
    EXPECT_GT(last->ticks, first->ticks);
    EXPECT_EQ(queue.clock_pair().error().code, ErrorCode::unavailable);
}

// --- Clocks ---

struct ClockCase {
    unsigned bits;
    double period_ns;
    double drift_ppm;
    bool calibrated;
};

/// Test names show it: not bytes that change with every run.
void PrintTo(const ClockCase& c, std::ostream* out) {
    *out << c.bits << " bits of " << c.period_ns << " ns, " << c.drift_ppm << " ppm"
         << (c.calibrated ? "" : ", not calibrated");
}

class VulkanClock : public VulkanQueueTimerTest, public testing::WithParamInterface<ClockCase> {};

TEST_P(VulkanClock, M4_spans_are_placed_and_measured_by_the_fitted_rate_whatever_the_clock) {
    const ClockCase c = GetParam();
    vvk::Settings settings;
    settings.valid_bits = c.bits;
    settings.period_ns = c.period_ns;
    settings.drift_ppm = c.drift_ppm;
    settings.calibrated = c.calibrated;
    settings.offset_ticks =
        (c.bits >= 64 ? std::uint64_t{1} << 60 : std::uint64_t{1} << c.bits) - 1'000'000; // wraps soon
    vvk::reset(settings);
    VulkanQueueTimer& queue = timer();
    EXPECT_EQ(queue.capabilities()[1].supported, c.calibrated);
    std::vector<clock::CorrelationPair> pairs;
    struct Placed {
        DeviceSpan span;
        std::int64_t before, after;
    };
    std::vector<Placed> placed;
    for (int i = 0; i < 200; ++i) {
        const std::int64_t before = vvk::now_ns();
        const auto token = queue.begin();
        kernel(2'000'000);
        ASSERT_TRUE(token.ok() && queue.end(*token).ok());
        vvk::catch_up();
        const auto span = queue.collect(*token);
        ASSERT_TRUE(span.ok()) << span.error().message;
        placed.push_back({*span, before, vvk::now_ns()});
        const auto pair = queue.clock_pair();
        ASSERT_TRUE(pair.ok()) << pair.error().message;
        pairs.push_back({{pair->ticks},
                         {pair->monotonic_ns},
                         {static_cast<std::int64_t>(static_cast<double>(pair->uncertainty_ticks) * c.period_ns)}});
        vvk::pass(30'000'000);
    }
    const auto fit = clock::Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok());
    EXPECT_NEAR(fit->ns_per_tick(), c.period_ns / (1 + c.drift_ppm * 1e-6), c.period_ns * 2e-6);
    for (const Placed& one : placed) {
        const double slack = fit->bound_ns({one.span.begin_ticks}) + c.period_ns + 1;
        ASSERT_GE(static_cast<double>(fit->to_host({one.span.begin_ticks}).value),
                  static_cast<double>(one.before) - slack);
        ASSERT_LE(static_cast<double>(fit->to_host({one.span.end_ticks}).value),
                  static_cast<double>(one.after) + slack);
        const auto length = queue.duration(one.span);
        ASSERT_TRUE(length.ok());
        // The kernel, and that it was launched inside.
        ASSERT_NEAR(length->nanoseconds, static_cast<double>(2'000'000 + settings.submit_ns), 2 * c.period_ns + 30);
    }
}

INSTANTIATE_TEST_SUITE_P(Clocks, VulkanClock,
                         testing::Values(ClockCase{64, 1, 0, true}, ClockCase{36, 1, 24, true},
                                         ClockCase{32, 1, -300, true}, ClockCase{36, 52.083, 24, true},
                                         ClockCase{64, 40, 24, false}, ClockCase{36, 10, 300, false}));

TEST_F(VulkanQueueTimerTest, without_calibration_and_without_a_scope_there_is_no_new_pair) {
    vvk::Settings settings;
    settings.calibrated = false;
    vvk::reset(settings);
    VulkanQueueTimer& queue = timer();
    EXPECT_TRUE(queue.clock_pair().ok()) << "the one from its making";
    EXPECT_EQ(queue.clock_pair().error().code, ErrorCode::pending);
}

// --- What is not supported ---

TEST_F(VulkanQueueTimerTest, M8_a_queue_family_without_valid_bits_is_unsupported_with_a_reason) {
    vvk::Settings settings;
    settings.valid_bits = 0;
    vvk::reset(settings);
    const auto made = VulkanQueueTimer::create(vvk::handles(), {});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_NE(made.error().message.find("valid timestamp bits"), std::string::npos);
}

TEST_F(VulkanQueueTimerTest, M8_a_transfer_queue_needs_resets_from_the_host_and_then_works) {
    vvk::Settings settings;
    settings.queue_flags = 4;
    vvk::reset(settings);
    EXPECT_EQ(VulkanQueueTimer::create(vvk::handles(), {}).error().code, ErrorCode::unsupported);
    VulkanHandles handles = vvk::handles();
    handles.host_query_reset = true;
    timer(handles);
    CommandTimer& here = record();
    const DeviceToken token = scope(here, 7'000);
    EXPECT_EQ(vvk::recorded(commands_, "reset"), 0u);
    submit();
    vvk::catch_up();
    EXPECT_NEAR(length_ns(token), 7'000, 2);
}

TEST_F(VulkanQueueTimerTest, M8_without_the_extension_the_capability_says_how_the_clock_is_fitted_instead) {
    vvk::Settings settings;
    settings.calibrated = false;
    vvk::reset(settings);
    for (const Capability& capability : timer().capabilities()) {
        if (capability.name == "calibrated_timestamps") {
            EXPECT_FALSE(capability.supported);
            EXPECT_NE(capability.reason.find("fitted"), std::string::npos);
        }
    }
}

TEST_F(VulkanQueueTimerTest, a_null_handle_a_wrong_family_and_a_missing_call_are_refused_in_a_sentence) {
    VulkanHandles handles = vvk::handles();
    handles.queue = nullptr;
    EXPECT_EQ(VulkanQueueTimer::create(handles, {}).error().code, ErrorCode::invalid_argument);
    handles = vvk::handles();
    handles.queue_family = 7;
    EXPECT_EQ(VulkanQueueTimer::create(handles, {}).error().code, ErrorCode::invalid_argument);
    vvk::Settings settings;
    settings.missing = "vkCmdWriteTimestamp";
    vvk::reset(settings);
    const auto made = VulkanQueueTimer::create(vvk::handles(), {});
    EXPECT_EQ(made.error().code, ErrorCode::unavailable);
    EXPECT_NE(made.error().message.find("vkCmdWriteTimestamp"), std::string::npos);
}

} // namespace
} // namespace plumb::backends::vulkan

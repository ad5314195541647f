// SPDX-License-Identifier: Apache-2.0
// Clock pairs and the floor on OpenCL in virtual time, where the truth is known.
#include "backends/opencl/timeline.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "clock/correlation.hpp"
#include "mocks/virtual_opencl.hpp"

namespace plumb::backends::opencl {
namespace {

std::unique_ptr<OpenClTimeline> timeline(const vocl::Config& config) {
    vocl::reset(config);
    auto made = OpenClTimeline::create(vocl::driver(), vocl::context(), vocl::device(), &vocl::host_clock());
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
}

/// How far a pair is from the truth, in nanoseconds; never more than half its width.
double error_of_pair(const DeviceClockPair& pair) {
    return std::abs(static_cast<double>(pair.ticks) - static_cast<double>(vocl::device_ns(pair.monotonic_ns)));
}

void expect_true_pairs(OpenClTimeline& clock, std::uint64_t widest) {
    for (int i = 0; i < 50; ++i) {
        const auto pair = clock.clock_pair();
        ASSERT_TRUE(pair.ok()) << pair.error().message;
        EXPECT_LE(error_of_pair(*pair), static_cast<double>(pair->uncertainty_ticks) / 2.0 + 1.0);
        EXPECT_LE(pair->uncertainty_ticks, widest);
        vocl::pass(1'000'000);
    }
}

TEST(OpenClTimeline, M4_pairs_by_markers_hold_the_truth_and_are_as_narrow_as_cause_and_effect_allow) {
    vocl::Config config;
    config.drift = 50e-6;
    const auto clock = timeline(config);
    EXPECT_FALSE(clock->has_device_timer());
    EXPECT_NE(clock->device_timer_reason().find("-59"), std::string::npos) << clock->device_timer_reason();
    expect_true_pairs(*clock, 700);
}

TEST(OpenClTimeline, pairs_by_the_devices_own_timer_hold_the_truth) {
    vocl::Config config;
    config.device_timer = true;
    const auto clock = timeline(config);
    EXPECT_TRUE(clock->has_device_timer());
    expect_true_pairs(*clock, 600);
    vocl::fail("clGetDeviceAndHostTimer", 1);
    EXPECT_FALSE(clock->clock_pair().ok());
    EXPECT_TRUE(clock->clock_pair().ok());
}

TEST(OpenClTimeline, before_opencl_2_1_the_devices_timer_is_never_asked) {
    vocl::Config config;
    config.device_timer = true;
    config.version = "OpenCL 1.2 virtual";
    const auto clock = timeline(config);
    EXPECT_FALSE(clock->has_device_timer());
    vocl::fail("clGetDeviceAndHostTimer", 1);
    expect_true_pairs(*clock, 700);
    EXPECT_FALSE(vocl::has_failed()) << "older drivers have no such entry";
}

TEST(OpenClTimeline, M4_a_queued_stamp_of_another_clock_contradicts_itself_and_is_not_believed) {
    vocl::Config config;
    config.queued_by_host_clock = true; // far from the device's
    const auto clock = timeline(config);
    expect_true_pairs(*clock, 5'000);
}

TEST(OpenClTimeline, a_busy_device_is_not_waited_for_and_answers_later_with_a_narrow_pair) {
    vocl::Config config;
    config.start_ns = 3'000'000; // everything starts late
    const auto clock = timeline(config);
    const std::int64_t before = vocl::now_ns();
    EXPECT_EQ(clock->clock_pair().error().code, ErrorCode::pending);
    EXPECT_LT(vocl::now_ns() - before, 1'000'000);
    vocl::pass(10'000'000);
    const auto pair = clock->clock_pair();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    EXPECT_LE(error_of_pair(*pair), static_cast<double>(pair->uncertainty_ticks) / 2.0 + 1.0);
    EXPECT_LT(pair->uncertainty_ticks, 1'000u) << "the call that enqueued the marker brackets it";
}

/// An injected clock that stands still.
class StoppedOpenClClock final : public HostClock {
  public:
    [[nodiscard]] std::uint64_t now_ticks() const noexcept override { return 1'000; }
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return 1'000; }
};

TEST(OpenClTimeline, a_busy_device_is_given_up_also_where_the_injected_clock_stands_still) {
    vocl::Config config;
    config.start_ns = 3'000'000;
    vocl::reset(config);
    const StoppedOpenClClock stopped;
    auto clock = OpenClTimeline::create(vocl::driver(), vocl::context(), vocl::device(), &stopped);
    ASSERT_TRUE(clock.ok()) << clock.error().message;
    EXPECT_EQ((*clock)->clock_pair().error().code, ErrorCode::pending);
}

TEST(OpenClTimeline, M4_a_device_that_is_busy_for_some_milliseconds_gives_a_new_pair_and_not_the_last_one_again) {
    const auto clock = timeline({});
    const auto first = clock->clock_pair();
    ASSERT_TRUE(first.ok()) << first.error().message;
    vocl::config().start_ns = 3'000'000;
    const auto second = clock->clock_pair();
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_NE(second->ticks, first->ticks);
    EXPECT_LE(error_of_pair(*second), static_cast<double>(second->uncertainty_ticks) / 2.0 + 1.0);
    vocl::config().start_ns = 900'000'000;
    const std::int64_t before = vocl::now_ns();
    EXPECT_TRUE(clock->clock_pair().ok());
    EXPECT_LT(vocl::now_ns() - before, 20'000'000) << "nor is it waited for without end";
}

TEST(OpenClTimeline, the_fit_over_pairs_publishes_a_residual_and_a_bound_that_hold) {
    vocl::Config config;
    config.drift = 120e-6;
    const auto clock = timeline(config);
    std::vector<clock::CorrelationPair> pairs;
    for (int i = 0; i < 20; ++i) {
        const auto pair = clock->clock_pair();
        ASSERT_TRUE(pair.ok());
        const auto half = static_cast<std::int64_t>(pair->uncertainty_ticks / 2 + 1);
        pairs.push_back({{pair->ticks}, {pair->monotonic_ns}, {half}});
        vocl::pass(10'000'000);
    }
    const auto fit = clock::Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok());
    EXPECT_TRUE(fit->consistent());
    const std::int64_t now = vocl::now_ns();
    const std::uint64_t there = vocl::device_ns(now);
    EXPECT_LE(std::abs(static_cast<double>(fit->to_host({there}).value - now)), fit->bound_ns({there}) + 1.0);
    EXPECT_LT(fit->bound_ns({there}), 2'000.0);
}

TEST(OpenClTimeline, the_floor_is_what_an_empty_step_takes_on_the_device) {
    const auto clock = timeline({});
    const auto floor = clock->floor_ns();
    ASSERT_TRUE(floor.ok()) << floor.error().message;
    EXPECT_NEAR(*floor, 540.0, 60.0) << "the virtual host needs so long to enqueue a marker";
}

} // namespace
} // namespace plumb::backends::opencl

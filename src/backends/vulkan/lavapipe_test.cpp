// SPDX-License-Identifier: Apache-2.0
// On a real driver, with a real shader: where spans lie, and what they sum to. Skipped where no Vulkan device is.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/vulkan/command_timer.hpp"
#include "backends/vulkan/real_engine_testing.hpp"
#include "clock/correlation.hpp"

namespace plumb::backends::vulkan {
namespace {

class Lavapipe : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        engine_ = RealEngine::create(why);
        if (engine_ == nullptr) {
            GTEST_SKIP() << why;
        }
        auto made = VulkanQueueTimer::create(engine_->handles(), {});
        ASSERT_TRUE(made.ok()) << made.error().message;
        timer_ = std::move(*made);
        commands_ = engine_->new_commands();
        read_pairs();
    }

    void read_pairs() {
        for (int i = 0; i < 16; ++i) {
            const auto pair = timer_->clock_pair();
            ASSERT_TRUE(pair.ok()) << pair.error().message;
            pairs_.push_back(
                {{pair->ticks}, {pair->monotonic_ns}, {static_cast<std::int64_t>(pair->uncertainty_ticks / 2 + 1)}});
        }
    }

    /// Records so many dispatches in scopes of their own, runs them, and gives the spans.
    std::vector<DeviceSpan> run(int dispatches, std::uint32_t groups = 1) {
        engine_->begin(commands_, true);
        CommandTimer* const here = timer_->record(commands_, VulkanUse::once);
        EXPECT_NE(here, nullptr);
        std::vector<DeviceToken> tokens;
        for (int i = 0; i < dispatches; ++i) {
            engine_->barrier(commands_);
            const auto token = here->begin();
            EXPECT_TRUE(token.ok()) << token.error().message;
            engine_->dispatch(commands_, groups);
            EXPECT_TRUE(here->end(*token).ok());
            tokens.push_back(*token);
        }
        engine_->end(commands_);
        before_ns_ = clock::monotonic_ns();
        EXPECT_TRUE(engine_->submit_and_wait(commands_));
        after_ns_ = clock::monotonic_ns();
        std::vector<DeviceSpan> spans;
        for (const DeviceToken token : tokens) {
            const auto span = timer_->collect(token);
            EXPECT_TRUE(span.ok()) << span.error().message;
            spans.push_back(span ? *span : DeviceSpan{});
        }
        return spans;
    }

    std::unique_ptr<RealEngine> engine_; // outlives the timer
    std::unique_ptr<VulkanQueueTimer> timer_;
    VkCommandBuffer_T* commands_ = nullptr;
    std::vector<clock::CorrelationPair> pairs_;
    std::int64_t before_ns_ = 0, after_ns_ = 0;
};

TEST_F(Lavapipe, ten_thousand_spans_lie_inside_the_hosts_submit_to_wait_interval_in_their_order) {
    struct Batch {
        std::vector<DeviceSpan> spans;
        std::int64_t before, after;
    };
    std::vector<Batch> batches;
    engine_->set_rounds(100);
    for (int i = 0; i < 50; ++i) {
        std::vector<DeviceSpan> spans = run(200);
        batches.push_back({std::move(spans), before_ns_, after_ns_});
    }
    read_pairs();
    const auto fit = clock::Correlation::fit(pairs_);
    ASSERT_TRUE(fit.ok());
    std::size_t count = 0;
    std::uint64_t last_end = 0;
    for (const Batch& batch : batches) {
        for (const DeviceSpan& span : batch.spans) {
            const double slack = fit->bound_ns({span.begin_ticks}) + fit->residual_ns();
            ASSERT_GE(static_cast<double>(fit->to_host({span.begin_ticks}).value),
                      static_cast<double>(batch.before) - slack);
            ASSERT_LE(static_cast<double>(fit->to_host({span.end_ticks}).value),
                      static_cast<double>(batch.after) + slack);
            ASSERT_LE(last_end, span.begin_ticks);
            ASSERT_EQ(span.flags & span_cut_by_neighbour, 0u);
            last_end = span.end_ticks;
            ++count;
        }
    }
    EXPECT_EQ(count, 10'000u);
    EXPECT_EQ(timer_->in_flight(), 0u);
}

// The host's interval also holds how long the driver's thread takes to wake up, and the host's own: on a machine that is busy
// with other things the least disturbed of three runs counts.
TEST_F(Lavapipe, long_kernels_on_a_saturated_queue_sum_to_the_hosts_interval_within_five_percent) {
    engine_->set_rounds(65'000);
    double best = 0;
    for (int attempt = 0; attempt < 3 && best < 0.95; ++attempt) {
        const std::vector<DeviceSpan> spans = run(50, 64);
        const auto whole = static_cast<double>(after_ns_ - before_ns_);
        double sum = 0;
        for (const DeviceSpan& span : spans) {
            const auto length = timer_->duration(span);
            ASSERT_TRUE(length.ok()) << length.error().message;
            sum += length->nanoseconds;
        }
        ASSERT_LE(sum, whole * 1.0001) << "the sum of spans that do not overlap";
        best = std::max(best, sum / whole);
        RecordProperty("interval_us", static_cast<int>(whole / 1e3));
        RecordProperty("sum_us", static_cast<int>(sum / 1e3));
    }
    EXPECT_GE(best, 0.95);
}

TEST_F(Lavapipe, scopes_around_submissions_hold_the_work_that_was_submitted_between_them) {
    engine_->set_rounds(65'000);
    engine_->begin(commands_, true);
    CommandTimer* const here = timer_->record(commands_, VulkanUse::once);
    const auto inner = here->begin();
    engine_->dispatch(commands_);
    ASSERT_TRUE(inner.ok() && here->end(*inner).ok());
    engine_->end(commands_);
    const auto outer = timer_->begin();
    ASSERT_TRUE(outer.ok());
    ASSERT_TRUE(engine_->submit_and_wait(commands_));
    ASSERT_TRUE(timer_->end(*outer).ok());
    ASSERT_TRUE(timer_->wait(*outer).ok());
    const auto inside = timer_->collect(*inner);
    const auto around = timer_->collect(*outer);
    ASSERT_TRUE(inside.ok() && around.ok());
    EXPECT_LE(around->begin_ticks, inside->begin_ticks);
    EXPECT_GE(around->end_ticks, inside->end_ticks);
    EXPECT_NE(around->flags & span_includes_launch_wait, 0u) << "the queue was idle when the scope began";
}

TEST_F(Lavapipe, the_queue_is_closed_before_its_device_and_what_ran_is_still_read) {
    engine_->begin(commands_, true);
    CommandTimer* const here = timer_->record(commands_, VulkanUse::once);
    const auto token = here->begin();
    engine_->dispatch(commands_);
    ASSERT_TRUE(token.ok() && here->end(*token).ok());
    engine_->end(commands_);
    ASSERT_TRUE(engine_->submit_and_wait(commands_));
    timer_->close();
    engine_.reset();
    EXPECT_TRUE(timer_->collect(*token).ok());
    EXPECT_EQ(timer_->begin().error().code, ErrorCode::unavailable);
}

} // namespace
} // namespace plumb::backends::vulkan

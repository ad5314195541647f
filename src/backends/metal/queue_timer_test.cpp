// SPDX-License-Identifier: Apache-2.0
// Command buffers and scopes of a Metal queue, on Metal in virtual time (tests/mocks/virtual_metal.hpp).
#include "backends/metal/queue_timer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "clock/correlation.hpp"
#include "mocks/virtual_metal.hpp"

namespace plumb::backends::metal {
namespace {

class MetalTimer : public testing::Test {
  protected:
    MetalTimer() {
        vmetal::reset();
        references_ = vmetal::references();
        queue_ = vmetal::make_queue();
    }
    ~MetalTimer() override {
        timer_.reset();
        vmetal::settle();
        vmetal::release(queue_);
        EXPECT_EQ(vmetal::references(), references_) << "something is kept";
        EXPECT_EQ(vmetal::blocks(), 0u) << "a handler is kept";
    }

    Result<std::unique_ptr<MetalQueueTimer>> create(TimerOptions options = {}) {
        options.host_clock = &vmetal::host_clock();
        return MetalQueueTimer::create(vmetal::driver(), queue_, options);
    }
    MetalQueueTimer& timer(const TimerOptions& options = {}) {
        auto made = create(options);
        EXPECT_TRUE(made.ok()) << made.error().message;
        timer_ = std::move(*made);
        return *timer_;
    }
    /// A command buffer of `ns`, attached and committed.
    Result<DeviceToken> run_attached(std::int64_t ns) {
        const Id buffer = vmetal::make_command_buffer(queue_);
        const auto token = timer_->attach(buffer);
        vmetal::encode(buffer, ns);
        vmetal::commit(buffer);
        vmetal::release(buffer);
        return token;
    }

    std::size_t references_ = 0;
    Id queue_ = nullptr;
    std::unique_ptr<MetalQueueTimer> timer_;
};

std::int64_t length(const DeviceSpan& span) { return static_cast<std::int64_t>(span.end_ticks - span.begin_ticks); }

TEST_F(MetalTimer, F2_probe_does_not_drain_the_queue) {
    MetalQueueTimer& queue = timer();
    const std::size_t before = vmetal::waits();
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 6; ++i) {
        const auto token = queue.begin();
        ASSERT_TRUE(token.ok()) << token.error().message;
        vmetal::run(queue_, 32'000);
        ASSERT_TRUE(queue.end(*token).ok());
        EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::pending);
        tokens.push_back(*token);
    }
    vmetal::settle();
    EXPECT_EQ(vmetal::waits(), before) << "nothing waited";
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        const auto span = queue.collect(tokens[i]);
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_EQ(length(*span), 32'000 + vmetal::config().marker_ns) << "a 32 us kernel reads 32 us";
    }
}

TEST_F(MetalTimer, F2_a_queue_full_of_command_buffers_makes_no_probe_wait_for_its_own_markers) {
    MetalQueueTimer& queue = timer();
    vmetal::run(queue_, 50'000'000);
    const std::size_t before = vmetal::waits();
    std::size_t begun = 0, refused = 0;
    for (int i = 0; i < 100; ++i) {
        const auto token = queue.begin();
        if (token) {
            ++begun;
            queue.cancel(*token);
        } else {
            ++refused;
            EXPECT_EQ(token.error().code, ErrorCode::out_of_memory);
            EXPECT_NE(token.error().message.find("attach()"), std::string::npos);
        }
    }
    EXPECT_EQ(begun, MetalQueueTimer::most_to_begin);
    EXPECT_EQ(refused, 100 - begun);
    EXPECT_EQ(vmetal::waits(), before);
    vmetal::settle();
    const auto again = queue.begin();
    ASSERT_TRUE(again.ok());
    queue.cancel(*again);
}

TEST_F(MetalTimer, T1_a_scope_holds_all_that_was_committed_inside_it_though_neighbours_overlap) {
    vmetal::config().overlap_ns = 5'000;
    MetalQueueTimer& queue = timer();
    vmetal::run(queue_, 1'000'000); // the device is busy when the scope begins
    const auto token = queue.begin();
    ASSERT_TRUE(token.ok());
    for (int i = 0; i < 4; ++i) {
        vmetal::run(queue_, 20'000);
    }
    ASSERT_TRUE(queue.end(*token).ok());
    vmetal::settle();
    const auto span = queue.collect(*token);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(length(*span), 4 * 20'000 - 3 * 5'000 + vmetal::config().marker_ns);
    EXPECT_EQ(span->flags, 0u);
}

TEST_F(MetalTimer, M6_ten_thousand_labelled_command_buffers_sum_by_label_and_layer_and_what_has_no_label_remains) {
    vmetal::config().overlap_ns = 1'000;
    MetalQueueTimer& queue = timer();
    struct Row {
        std::int64_t count = 0, sum = 0, expected = 0;
    };
    std::map<std::pair<std::string, int>, Row> rows;
    const char* labels[] = {"attention", "mlp", "norm"};
    std::uint64_t covered = 0, last_end = 0, first_begin = 0;
    for (int batch = 0; batch < 200; ++batch) {
        std::vector<std::pair<std::pair<std::string, int>, DeviceToken>> tokens;
        for (int i = 0; i < 50; ++i) {
            const int number = batch * 50 + i;
            const std::int64_t ns = 2'000 + number % 7 * 1'000;
            const std::pair<std::string, int> key{labels[number % 3], number % 11};
            const auto token = run_attached(ns);
            ASSERT_TRUE(token.ok()) << token.error().message;
            tokens.emplace_back(key, *token);
            rows[key].expected += ns;
        }
        vmetal::run(queue_, 9'000); // nobody labelled this one
        vmetal::settle();
        for (const auto& [key, token] : tokens) {
            const auto span = queue.collect(token);
            ASSERT_TRUE(span.ok()) << span.error().message;
            EXPECT_NE(span->flags & span_may_overlap, 0u);
            ++rows[key].count;
            rows[key].sum += length(*span);
            first_begin = first_begin == 0 ? span->begin_ticks : first_begin;
            const std::uint64_t from = std::max(span->begin_ticks, last_end);
            covered += std::max(span->end_ticks, from) - from;
            last_end = std::max(last_end, span->end_ticks);
        }
    }
    std::int64_t sum = 0, count = 0;
    for (const auto& [key, row] : rows) {
        EXPECT_NEAR(static_cast<double>(row.sum), static_cast<double>(row.expected), static_cast<double>(row.count))
            << key.first << " " << key.second;
        sum += row.sum;
        count += row.count;
    }
    EXPECT_EQ(rows.size(), 33u);
    EXPECT_EQ(count, 10'000);
    EXPECT_LT(static_cast<std::int64_t>(covered), sum) << "the union of overlapping spans is less than their sum";
    EXPECT_GT(last_end - first_begin - covered, 199u * 7'000) << "the remainder without a label stays visible";
    EXPECT_EQ(queue.in_flight(), 0u);
}

TEST_F(MetalTimer, M2_a_command_buffer_that_was_never_committed_is_an_error_and_not_pending_for_ever) {
    MetalQueueTimer& queue = timer();
    const Id buffer = vmetal::make_command_buffer(queue_);
    const auto token = queue.attach(buffer);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::pending);
    vmetal::release(buffer);
    const auto span = queue.collect(*token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::failed);
    EXPECT_NE(span.error().message.find("commit"), std::string::npos);
}

TEST_F(MetalTimer, M2_a_command_buffer_that_is_committed_already_is_refused) {
    MetalQueueTimer& queue = timer();
    const Id buffer = vmetal::make_command_buffer(queue_);
    vmetal::commit(buffer);
    const auto token = queue.attach(buffer);
    ASSERT_FALSE(token.ok()) << "Metal ends the program where a handler comes after the commit";
    EXPECT_EQ(token.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(queue.attach(nullptr).ok());
    vmetal::release(buffer);
}

TEST_F(MetalTimer, M2_a_command_buffer_that_the_device_ended_with_an_error_has_no_time) {
    MetalQueueTimer& queue = timer();
    vmetal::config().ending = 5;
    const auto token = run_attached(1'000);
    ASSERT_TRUE(token.ok());
    vmetal::settle();
    const auto span = queue.collect(*token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::failed);
}

TEST_F(MetalTimer, M8_a_system_whose_times_stay_0_is_found_at_the_start_and_says_so) {
    vmetal::config().zero_times = true;
    const auto made = create();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_NE(made.error().message.find("GPUStartTime"), std::string::npos);
}

TEST_F(MetalTimer, M8_times_that_turn_0_later_are_absent_and_never_0) {
    MetalQueueTimer& queue = timer();
    vmetal::config().zero_times = true;
    const auto token = run_attached(1'000);
    ASSERT_TRUE(token.ok());
    vmetal::settle();
    EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::unsupported);
}

TEST_F(MetalTimer, M4_an_end_before_its_begin_is_an_error_and_never_0) {
    MetalQueueTimer& queue = timer();
    vmetal::config().reversed_times = true;
    const auto token = run_attached(1'000);
    ASSERT_TRUE(token.ok());
    vmetal::settle();
    EXPECT_EQ(queue.collect(*token).error().code, ErrorCode::corrupt);
    EXPECT_EQ(queue.duration({100, 50}).error().code, ErrorCode::corrupt);
}

TEST_F(MetalTimer, M4_times_of_a_machine_that_slept_are_placed_by_pairs_and_not_taken_as_the_common_clock) {
    vmetal::config().asleep_ns = 700'000'000;
    MetalQueueTimer& queue = timer();
    const std::int64_t before = vmetal::now_ns();
    const auto token = run_attached(50'000);
    ASSERT_TRUE(token.ok());
    vmetal::settle();
    const auto span = queue.collect(*token);
    const auto pair = queue.clock_pair();
    ASSERT_TRUE(span.ok() && pair.ok());
    const std::int64_t placed =
        static_cast<std::int64_t>(span->begin_ticks) - static_cast<std::int64_t>(pair->ticks) + pair->monotonic_ns;
    EXPECT_GE(placed, before);
    EXPECT_LE(placed + 50'000, vmetal::now_ns());
}

TEST_F(MetalTimer, M5_what_markers_and_immediate_serialise_is_stated_with_its_cost) {
    MetalQueueTimer& queue = timer();
    std::string stated;
    for (const Capability& capability : queue.capabilities()) {
        stated += capability.name + ": " + capability.reason + "\n";
    }
    EXPECT_NE(stated.find("holds back"), std::string::npos) << stated;
    EXPECT_NE(stated.find("us and more to each scope's wall clock"), std::string::npos) << stated;
}

/// An injected clock that stands still.
class StoppedMetalClock final : public HostClock {
  public:
    [[nodiscard]] std::uint64_t now_ticks() const noexcept override { return 1'000; }
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return 1'000; }
};

TEST_F(MetalTimer, a_busy_device_is_given_up_also_where_the_injected_clock_stands_still) {
    const StoppedMetalClock stopped;
    TimerOptions options;
    options.host_clock = &stopped;
    auto made = MetalQueueTimer::create(vmetal::driver(), queue_, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    timer_ = std::move(*made);
}

TEST_F(MetalTimer, a_command_buffer_that_is_never_committed_holds_back_no_other) {
    MetalQueueTimer& queue = timer();
    const Id never = vmetal::make_command_buffer(queue_);
    const auto first = queue.attach(never);
    const auto second = run_attached(10'000);
    const auto scope = queue.begin();
    ASSERT_TRUE(first.ok() && second.ok() && scope.ok() && queue.end(*scope).ok());
    EXPECT_EQ(queue.group_of(*first), first->value) << "it stands alone";
    EXPECT_EQ(queue.group_of(*second), second->value);
    EXPECT_EQ(queue.group_of(*scope), 0u);
    vmetal::settle();
    EXPECT_EQ(queue.collect(*first).error().code, ErrorCode::pending);
    EXPECT_TRUE(queue.collect(*second).ok());
    EXPECT_TRUE(queue.collect(*scope).ok());
    queue.cancel(*first);
    vmetal::release(never);
}

TEST_F(MetalTimer, M5_attached_command_buffers_add_nothing_to_the_queue) {
    MetalQueueTimer& queue = timer();
    const auto first = run_attached(10'000);
    const auto second = run_attached(10'000);
    ASSERT_TRUE(first.ok() && second.ok());
    vmetal::settle();
    const auto one = queue.collect(*first);
    const auto two = queue.collect(*second);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_NEAR(static_cast<double>(two->begin_ticks), static_cast<double>(one->end_ticks), 1.0)
        << "neighbours stay neighbours";
}

TEST_F(MetalTimer, M1_immediate_waits_for_its_own_scope_and_attached_command_buffers_are_not_waited_for) {
    TimerOptions options;
    options.immediate = true;
    MetalQueueTimer& queue = timer(options);
    EXPECT_TRUE(queue.immediate());
    const std::size_t before = vmetal::waits();
    const auto token = queue.begin();
    vmetal::run(queue_, 70'000);
    ASSERT_TRUE(token.ok() && queue.end(*token).ok());
    ASSERT_TRUE(queue.wait(*token).ok());
    EXPECT_EQ(vmetal::waits(), before + 1);
    EXPECT_TRUE(queue.collect(*token).ok());
    const auto attached = run_attached(1'000);
    ASSERT_TRUE(attached.ok());
    EXPECT_EQ(queue.wait(*attached).error().code, ErrorCode::unsupported);
    queue.cancel(*attached);
}

TEST_F(MetalTimer, M7_a_timer_is_bounded_and_says_what_to_do_at_its_bound) {
    TimerOptions options;
    options.max_in_flight = 2;
    MetalQueueTimer& queue = timer(options);
    const auto first = run_attached(1'000), second = run_attached(1'000), third = run_attached(1'000);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.error().code, ErrorCode::out_of_memory);
    vmetal::settle();
    EXPECT_TRUE(queue.collect(*first).ok());
    const auto fourth = run_attached(1'000);
    EXPECT_TRUE(fourth.ok());
}

TEST_F(MetalTimer, M7_handlers_may_run_after_their_timer_has_gone) {
    timer();
    ASSERT_TRUE(run_attached(1'000'000).ok());
    ASSERT_TRUE(timer_->begin().ok());
    timer_.reset();
    EXPECT_GT(vmetal::blocks(), 0u);
    vmetal::settle();
    EXPECT_EQ(vmetal::blocks(), 0u);
}

TEST_F(MetalTimer, M8_without_the_framework_the_backend_is_unavailable_in_one_sentence) {
    const Result<MetalDriver>& loaded = driver();
    if (loaded) {
        GTEST_SKIP() << "this machine has Metal";
    }
    EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
    EXPECT_NE(loaded.error().message.find("macOS"), std::string::npos) << loaded.error().message;
}

} // namespace
} // namespace plumb::backends::metal

// SPDX-License-Identifier: Apache-2.0
// Generic timing over an asynchronous device in virtual time: every expected figure is exact.
#include "plumb/backend_timer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mocks/pipelined_device.hpp"

namespace plumb {
namespace {

constexpr std::int64_t launch_ns = 4'000;
constexpr std::int64_t kernel_ns = 32'000;

/// An engine's own backend type, as generic code sees it.
struct Accelerator {
    struct Context {
        explicit Context(TimerOptions options = {}) : timer(mocks::make_pipelined_timer(device, options)) {}
        mocks::PipelinedDevice device;
        std::unique_ptr<QueueTimer> timer;
        void kernel() { device.launch(launch_ns, kernel_ns); }
        void finish_everything() { device.pass(1'000'000'000); }
    };
};

/// What finish_traced asks of a recorder.
struct FakeRecorder {
    struct Span {
        Name name;
        std::uint64_t begin, end;
    };
    struct DeviceScope {
        Name name;
        Queue queue;
        DeviceToken token;
    };
    Name intern(std::string_view name, Category category) {
        names.emplace_back(std::string(name), category);
        return Name(static_cast<std::uint16_t>(first_interned_id + names.size() - 1));
    }
    void record_span(Name name, Timestamp begin, Timestamp end) { spans.push_back({name, begin.ticks, end.ticks}); }
    void record_device(Name name, Queue queue, DeviceToken token) { device_scopes.push_back({name, queue, token}); }

    std::vector<std::pair<std::string, Category>> names;
    std::vector<Span> spans;
    std::vector<DeviceScope> device_scopes;
};

} // namespace

template <>
struct BackendTraits<Accelerator> {
    using Context = Accelerator::Context;
    static QueueTimer* queue_timer(Context& context) { return context.timer.get(); }
};

namespace {

TEST(BackendTimer, F1_elapsed_of_a_timer_that_measured_nothing_is_an_error_and_never_zero) {
    Accelerator::Context context;
    BackendTimer<Accelerator> timer(context);
    ASSERT_FALSE(timer.elapsed().ok());
    EXPECT_EQ(timer.elapsed().error().code, ErrorCode::invalid_argument);
    EXPECT_NE(timer.elapsed().error().message.find("record_start()"), std::string::npos);

    EXPECT_FALSE(timer.record_end().ok()) << "an end without a start";
    ASSERT_FALSE(timer.elapsed().ok());

    ASSERT_TRUE(timer.record_start().ok());
    ASSERT_FALSE(timer.elapsed().ok()) << "still running";
    EXPECT_NE(timer.elapsed().error().message.find("record_end()"), std::string::npos);

    ASSERT_TRUE(timer.record_end().ok());
    context.device.fail("event_query");
    ASSERT_FALSE(timer.elapsed().ok()) << "the device's own failure is not a free operation";
}

TEST(BackendTimer, F2_probe_does_not_drain_the_pipeline) {
    Accelerator::Context context;
    std::vector<Probe<Accelerator>> probes;
    for (int i = 0; i < 8; ++i) {
        probes.push_back(probe<Accelerator>(true, context));
        context.kernel();
        ASSERT_TRUE(finish(probes.back()).ok());
    }
    EXPECT_EQ(context.device.waits(), 0u);
    EXPECT_EQ(context.device.idle_ns(), 0) << "the device never ran dry";
    EXPECT_EQ(probes.back()->elapsed().error().code, ErrorCode::pending);
    context.finish_everything();
    for (std::size_t i = 1; i < probes.size(); ++i) {
        const auto elapsed = probes[i]->elapsed();
        ASSERT_TRUE(elapsed.ok()) << elapsed.error().message;
        EXPECT_EQ(elapsed->nanoseconds, kernel_ns) << "a 32 us kernel reads 32 us";
    }
    EXPECT_EQ(context.device.waits(), 0u);
}

TEST(BackendTimer, T1_elapsed_is_device_time_and_not_the_host_clock_around_a_launch) {
    Accelerator::Context context;
    context.kernel(); // the device is busy when the scope is enqueued
    BackendTimer<Accelerator> timer(context);
    ASSERT_TRUE(timer.record_start().ok());
    for (int i = 0; i < 10; ++i) {
        context.kernel();
    }
    ASSERT_TRUE(timer.record_end().ok());
    context.finish_everything();
    const auto elapsed = timer.elapsed();
    ASSERT_TRUE(elapsed.ok());
    EXPECT_EQ(elapsed->nanoseconds, 10 * kernel_ns) << "the host only spent " << 10 * launch_ns;
}

TEST(BackendTimer, T1_immediate_waits_and_other_modes_do_not) {
    TimerOptions options;
    options.immediate = true;
    Accelerator::Context context(options);
    Probe<Accelerator> one = probe<Accelerator>(true, context);
    context.kernel();
    ASSERT_TRUE(finish(one).ok());
    EXPECT_EQ(context.device.waits(), 1u) << "the mode is acted on";
    const auto elapsed = one->elapsed();
    ASSERT_TRUE(elapsed.ok()) << "known at once";
    EXPECT_EQ(elapsed->nanoseconds, launch_ns + kernel_ns) << "an idle device waits for the launch inside the scope";
}

TEST(BackendTimer, M8_a_context_that_cannot_be_timed_says_so) {
    Accelerator::Context context;
    context.timer.reset();
    BackendTimer<Accelerator> timer(context);
    const Status started = timer.record_start();
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().code, ErrorCode::unsupported);
    EXPECT_FALSE(started.error().message.empty());
    Probe<Accelerator> on = probe<Accelerator>(true, context);
    EXPECT_FALSE(finish(on).ok());
}

TEST(BackendTimer, a_timer_is_used_again_and_its_older_scope_is_given_up) {
    Accelerator::Context context;
    BackendTimer<Accelerator> timer(context);
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(timer.record_start().ok());
        context.kernel();
        ASSERT_TRUE(timer.record_end().ok());
    }
    EXPECT_EQ(context.timer->in_flight(), 1u);
    context.finish_everything();
    ASSERT_TRUE(timer.elapsed().ok());
    EXPECT_EQ(timer.elapsed()->nanoseconds, kernel_ns) << "asked twice, answered twice";
    EXPECT_EQ(context.timer->in_flight(), 0u);
    EXPECT_EQ(context.device.stamps_alive(), 0u);
}

TEST(BackendTimer, a_started_timer_is_ended_on_another_thread) {
    Accelerator::Context context;
    BackendTimer<Accelerator> timer(context);
    ASSERT_TRUE(timer.record_start().ok());
    std::thread([moved = std::move(timer), &context, &timer]() mutable {
        context.kernel();
        EXPECT_TRUE(moved.record_end().ok());
        timer = std::move(moved);
    }).join();
    context.finish_everything();
    ASSERT_TRUE(timer.elapsed().ok());
    EXPECT_EQ(context.timer->in_flight(), 0u);
}

TEST(BackendTimer, a_timer_that_is_destroyed_gives_its_token_back) {
    Accelerator::Context context;
    {
        BackendTimer<Accelerator> open(context), ended(context);
        ASSERT_TRUE(open.record_start().ok());
        ASSERT_TRUE(ended.record_start().ok());
        ASSERT_TRUE(ended.record_end().ok());
        EXPECT_EQ(context.timer->in_flight(), 2u);
    }
    EXPECT_EQ(context.timer->in_flight(), 0u);
}

TEST(Probe, off_touches_neither_device_nor_recorder) {
    Accelerator::Context context;
    Probe<Accelerator> off = probe<Accelerator>(false, context);
    EXPECT_FALSE(off.has_value());
    EXPECT_TRUE(finish(off).ok());
    FakeRecorder recorder;
    EXPECT_TRUE(finish_traced(recorder, off, "x", Category::other, host).ok());
    EXPECT_EQ(context.device.stamps_alive(), 0u);
    EXPECT_TRUE(recorder.names.empty() && recorder.spans.empty() && recorder.device_scopes.empty());
}

TEST(Probe, a_refused_begin_shows_at_the_end) {
    Accelerator::Context context;
    context.device.fail("event_record");
    Probe<Accelerator> refused = probe<Accelerator>(true, context);
    EXPECT_FALSE(finish(refused).ok());
    FakeRecorder recorder;
    EXPECT_FALSE(finish_traced(recorder, refused, "x", Category::other, host).ok());
    EXPECT_TRUE(recorder.spans.empty() && recorder.device_scopes.empty());
}

TEST(Probe, T1_a_traced_probe_hands_the_device_token_over_and_records_no_host_span) {
    Accelerator::Context context;
    FakeRecorder recorder;
    const Queue queue{context.timer.get(), 7};
    Probe<Accelerator> one = probe<Accelerator>(true, context);
    context.kernel();
    ASSERT_TRUE(finish_traced(recorder, one, "my_kernel", Category::attention, queue).ok());
    EXPECT_FALSE(one.has_value());
    EXPECT_EQ(context.device.waits(), 0u);
    EXPECT_TRUE(recorder.spans.empty());
    ASSERT_EQ(recorder.device_scopes.size(), 1u);
    EXPECT_EQ(recorder.names.front(), std::make_pair(std::string("my_kernel"), Category::attention));
    EXPECT_EQ(recorder.device_scopes.front().queue.track, 7u);

    const DeviceToken token = recorder.device_scopes.front().token;
    EXPECT_EQ(context.timer->collect(token).error().code, ErrorCode::pending);
    context.finish_everything();
    const auto span = context.timer->collect(token);
    ASSERT_TRUE(span.ok()) << "the token outlives the probe";
    EXPECT_EQ(static_cast<std::int64_t>(span->end_ticks - span->begin_ticks) * mocks::PipelinedDevice::ns_per_tick,
              launch_ns + kernel_ns);
}

TEST(Probe, a_track_of_another_queue_is_refused) {
    Accelerator::Context context, other;
    FakeRecorder recorder;
    for (const Queue wrong : {host, Queue{other.timer.get(), 1}}) {
        Probe<Accelerator> one = probe<Accelerator>(true, context);
        const Status status = finish_traced(recorder, one, "x", Category::other, wrong);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    }
    EXPECT_EQ(context.timer->in_flight(), 0u);
    EXPECT_TRUE(recorder.device_scopes.empty());
}

TEST(Probe, on_the_cpu_the_span_lies_between_the_stamps_around_it) {
    auto context = Cpu::make_context();
    ASSERT_TRUE(context.ok()) << context.error().message;
    BackendTimer<Cpu> before(*context), after(*context);
    ASSERT_TRUE(before.record_start().ok() && before.record_end().ok());
    FakeRecorder recorder;
    Probe<Cpu> one = probe<Cpu>(true, *context);
    ASSERT_TRUE(finish_traced(recorder, one, "host_work", Category::other, host).ok());
    ASSERT_TRUE(after.record_start().ok() && after.record_end().ok());
    ASSERT_EQ(recorder.spans.size(), 1u);
    EXPECT_LE(before.span()->end_ticks, recorder.spans.front().begin);
    EXPECT_LE(recorder.spans.front().begin, recorder.spans.front().end);
    EXPECT_LE(recorder.spans.front().end, after.span()->begin_ticks);
}

} // namespace
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// Eager scopes on the virtual GPU, whose ledger knows the truth.
#include "backends/cuda/queue_timer.hpp"

#include <thread>

#include "backends/cuda/bench_testing.hpp"
#include "backends/cuda/capture_notes.hpp"
#include "support/sanitizers.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::int64_t tick_ns = 32;

ScopeLabel label(std::uint16_t name = 1) {
    ScopeLabel made;
    made.name = name;
    return made;
}

std::int64_t length_of(const DeviceSpan& span) { return static_cast<std::int64_t>(span.end_ticks - span.begin_ticks); }

TEST(CudaQueueTimer, T1_a_scope_reads_what_the_device_did_and_not_what_the_host_did) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    bench.kernel(stream, 10'000'000); // the device is busy while the host enqueues
    const auto token = timer->begin_labelled(label());
    ASSERT_TRUE(token.ok()) << token.error().message;
    bench.kernel(stream, 700'000);
    ASSERT_TRUE(timer->end_labelled(*token, nullptr).ok());
    EXPECT_EQ(timer->collect(*token).error().code, ErrorCode::pending);
    vgpu::run_dry();
    const auto span = timer->collect(*token);
    ASSERT_TRUE(span.ok()) << span.error().message;
    const vgpu::Operation kernel = last_operation(vgpu::OpKind::kernel);
    const std::int64_t gaps = 2 * vgpu::config().gap_ns;
    EXPECT_GE(length_of(*span), kernel.end_ns - kernel.start_ns - tick_ns);
    EXPECT_LE(length_of(*span), kernel.end_ns - kernel.start_ns + gaps + tick_ns);
    EXPECT_EQ(span->flags, 0u) << "the queue was never empty";
    EXPECT_STREQ(timer->source(), "cuda_event");
    EXPECT_EQ(timer->clock_name().substr(0, 6), "cuda:0");
}

TEST(CudaQueueTimer, T2_each_scope_has_its_own_end_and_the_spans_of_one_stream_add_up) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    std::vector<DeviceToken> tokens;
    bench.kernel(stream, 5'000'000);
    for (int i = 0; i < 50; ++i) {
        const auto token = timer->begin();
        ASSERT_TRUE(token.ok());
        bench.kernel(stream, 30'000);
        ASSERT_TRUE(timer->end(*token).ok());
        tokens.push_back(*token);
    }
    vgpu::run_dry();
    std::int64_t sum = 0;
    std::uint64_t first = 0, last = 0;
    for (const DeviceToken token : tokens) {
        const auto span = timer->collect(token);
        ASSERT_TRUE(span.ok());
        EXPECT_GE(span->begin_ticks, last);
        first = first == 0 ? span->begin_ticks : first;
        last = span->end_ticks;
        sum += length_of(*span);
    }
    EXPECT_LE(sum, static_cast<std::int64_t>(last - first)) << "no time is counted twice";
    EXPECT_GE(sum, 50 * (30'000 - tick_ns));
}

TEST(CudaQueueTimer, F2_scopes_neither_wait_nor_make_events_once_warm) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    const auto step = [&] {
        std::vector<DeviceToken> tokens;
        for (int i = 0; i < 200; ++i) {
            const auto token = timer->begin();
            ASSERT_TRUE(token.ok());
            bench.kernel(stream, 32'000);
            ASSERT_TRUE(timer->end(*token).ok());
            tokens.push_back(*token);
        }
        vgpu::run_dry();
        for (const DeviceToken token : tokens) {
            const auto span = timer->collect(token);
            ASSERT_TRUE(span.ok());
            EXPECT_LE(length_of(*span), 32'000 + 2 * vgpu::config().gap_ns + vgpu::config().submit_ns + tick_ns +
                                            vgpu::config().launch_ns + 10 * vgpu::config().call_ns)
                << "a 32 us kernel reads 32 us";
        }
    };
    step();
    const std::uint64_t made = vgpu::calls("cuEventCreate");
    const std::size_t alive = vgpu::alive().total();
    for (int i = 0; i < 20; ++i) {
        step();
    }
    EXPECT_EQ(vgpu::calls("cuEventCreate"), made);
    EXPECT_EQ(vgpu::alive().total(), alive);
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

TEST(CudaQueueTimer, a_scope_whose_begin_fired_before_its_work_was_there_is_flagged) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok());
    vgpu::advance(500'000); // the host does something else first
    bench.kernel(stream, 20'000);
    ASSERT_TRUE(timer->end(*token).ok());
    vgpu::run_dry();
    const auto span = timer->collect(*token);
    ASSERT_TRUE(span.ok());
    EXPECT_NE(span->flags & span_includes_launch_wait, 0u);
    EXPECT_GE(length_of(*span), 500'000) << "and says so, as the events do";
}

TEST(CudaQueueTimer, an_empty_scope_is_below_the_floor) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    bench.kernel(stream, 1'000'000);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok() && timer->end(*token).ok());
    vgpu::run_dry();
    const auto span = timer->collect(*token);
    ASSERT_TRUE(span.ok());
    if (length_of(*span) == 0) {
        EXPECT_NE(span->flags & span_below_floor, 0u);
    } else {
        EXPECT_EQ(span->flags & span_below_floor, 0u);
    }
}

TEST(CudaQueueTimer, laps_share_one_event_per_border) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    bench.kernel(stream, 5'000'000);
    const std::uint64_t before = vgpu::calls("cuEventRecord");
    auto token = timer->begin_labelled(label());
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(token.ok());
        tokens.push_back(*token);
        bench.kernel(stream, 10'000 + i);
        token = timer->lap(*token, nullptr, label());
    }
    ASSERT_TRUE(token.ok());
    ASSERT_TRUE(timer->end_labelled(*token, nullptr).ok());
    EXPECT_EQ(vgpu::calls("cuEventRecord") - before, 22u) << "20 borders between 21 laps, and two ends";
    vgpu::run_dry();
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto span = timer->collect(tokens[i]);
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_GE(length_of(*span), 10'000 + static_cast<std::int64_t>(i) - tick_ns);
        if (i > 0) {
            EXPECT_EQ(span->begin_ticks, last) << "one stamp";
        }
        last = span->end_ticks;
    }
    timer->cancel(*token);
    EXPECT_EQ(timer->in_flight(), 0u);
}

TEST(CudaQueueTimer, laps_are_collected_in_any_order_and_their_shared_event_is_freed_last) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    TimerOptions options;
    options.max_in_flight = 4;
    const auto timer = bench.timer(stream, options);
    for (int round = 0; round < 100; ++round) {
        const auto a = timer->begin_labelled(label());
        ASSERT_TRUE(a.ok());
        bench.kernel(stream, 10'000);
        const auto b = timer->lap(*a, nullptr, label());
        ASSERT_TRUE(b.ok());
        bench.kernel(stream, 20'000);
        const auto c = timer->lap(*b, nullptr, label());
        ASSERT_TRUE(c.ok());
        bench.kernel(stream, 30'000);
        ASSERT_TRUE(timer->end_labelled(*c, nullptr).ok());
        vgpu::run_dry();
        const std::int64_t wait = 10'000; // of the launch, on an idle stream
        const auto last = timer->collect(*c);
        ASSERT_TRUE(last.ok());
        EXPECT_NEAR(static_cast<double>(length_of(*last)), 30'000, wait);
        const auto first = timer->collect(*a);
        ASSERT_TRUE(first.ok());
        EXPECT_NEAR(static_cast<double>(length_of(*first)), 10'000, wait);
        if (round % 2 == 0) {
            timer->cancel(*b);
        } else {
            EXPECT_TRUE(timer->collect(*b).ok());
        }
        ASSERT_EQ(timer->in_flight(), 0u);
    }
}

TEST(CudaQueueTimer, the_event_between_two_laps_is_not_used_again_before_both_were_collected) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    bench.kernel(stream, 2'000'000);
    const auto a = timer->begin_labelled(label());
    ASSERT_TRUE(a.ok());
    bench.kernel(stream, 100'000);
    const auto b = timer->lap(*a, nullptr, label());
    ASSERT_TRUE(b.ok());
    bench.kernel(stream, 200'000);
    ASSERT_TRUE(timer->end_labelled(*b, nullptr).ok());
    vgpu::run_dry();
    const auto first = timer->collect(*a);
    ASSERT_TRUE(first.ok());
    bench.kernel(stream, 2'000'000);
    for (int i = 0; i < 8; ++i) { // takes what is free
        const auto other = timer->begin_labelled(label());
        ASSERT_TRUE(other.ok() && timer->end_labelled(*other, nullptr).ok());
    }
    vgpu::run_dry();
    const auto second = timer->collect(*b);
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_EQ(second->begin_ticks, first->end_ticks);
    EXPECT_GE(length_of(*second), 200'000 - tick_ns);
}

TEST(CudaQueueTimer, steps_that_are_not_sampled_record_nothing) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    EXPECT_TRUE(timer->sampled_by_step());
    ScopeLabel off = label();
    off.timed = false;
    const std::uint64_t before = vgpu::calls("cuEventRecord");
    const auto token = timer->begin_labelled(off);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->value, token_not_timed);
    const auto next = timer->lap(*token, nullptr, off);
    ASSERT_TRUE(next.ok());
    EXPECT_TRUE(timer->end_labelled(*next, nullptr).ok());
    EXPECT_EQ(vgpu::calls("cuEventRecord"), before);
    EXPECT_EQ(timer->in_flight(), 0u);
    const auto sampled = timer->lap(*next, nullptr, label());
    ASSERT_TRUE(sampled.ok());
    EXPECT_NE(sampled->value, token_not_timed);
    const auto off_again = timer->lap(*sampled, nullptr, off);
    ASSERT_TRUE(off_again.ok());
    EXPECT_EQ(off_again->value, token_not_timed);
    vgpu::run_dry();
    EXPECT_TRUE(timer->collect(*sampled).ok());
}

TEST(CudaQueueTimer, a_thread_that_has_no_context_yet_may_begin_and_collect) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    std::thread([&] {
        const auto token = timer->begin();
        ASSERT_TRUE(token.ok()) << token.error().message;
        ASSERT_TRUE(timer->end(*token).ok());
        vgpu::run_dry();
        EXPECT_TRUE(timer->collect(*token).ok());
        Context now = nullptr;
        bench.calls().ctx_get_current(&now);
        EXPECT_EQ(now, nullptr) << "and still has none";
    }).join();
    EXPECT_TRUE(timer->begin().ok());
}

TEST(CudaQueueTimer, an_immediate_timer_waits_for_the_scope_alone) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    TimerOptions options;
    options.immediate = true;
    const auto timer = bench.timer(stream, options);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok());
    bench.kernel(stream, 50'000);
    ASSERT_TRUE(timer->end(*token).ok());
    bench.kernel(stream, 900'000); // behind the scope: nobody waits for it
    ASSERT_TRUE(timer->wait(*token).ok());
    EXPECT_TRUE(timer->collect(*token).ok());
    ASSERT_EQ(vgpu::synchronisations().size(), 1u);
    EXPECT_EQ(vgpu::synchronisations()[0].call, "cuEventSynchronize");
    EXPECT_LT(vgpu::synchronisations()[0].waited_ns, 900'000);
}

TEST(CudaQueueTimer, a_lost_device_is_an_error_and_is_called_no_more) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    auto timer = bench.timer(stream);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok() && timer->end(*token).ok());
    vgpu::lose_device(CuResult::illegal_address);
    const auto span = timer->collect(*token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::unavailable);
    EXPECT_NE(span.error().message.find("restart"), std::string::npos) << span.error().message;
    EXPECT_EQ(timer->in_flight(), 0u) << "the token is spent";
    const std::uint64_t before = vgpu::calls("*");
    EXPECT_EQ(timer->begin().error().code, ErrorCode::unavailable);
    EXPECT_EQ(timer->clock_pair().error().code, ErrorCode::unavailable);
    EXPECT_EQ(timer->floor_ns().error().code, ErrorCode::unavailable);
    timer.reset();
    EXPECT_EQ(vgpu::calls("*"), before);
}

TEST(CudaQueueTimer, a_device_lost_at_any_call_ends_in_an_error_and_in_no_further_call) {
    for (const char* call :
         {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuStreamCreateWithPriority",
          "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode"}) {
        for (std::uint64_t use = 1; use <= 400; use += 7) {
            VirtualBench bench;
            const Stream stream = bench.new_stream();
            TimerOptions options;
            options.host_clock = &vgpu::host_clock();
            vgpu::lose_device_at(call, CuResult::launch_failed, use);
            Result<std::unique_ptr<CudaQueueTimer>> timer = CudaQueueTimer::create(bench.calls(), stream, options);
            for (int i = 0; timer && i < 80; ++i) {
                const auto token = (*timer)->begin_labelled(label());
                if (token && !(*timer)->end_labelled(*token, nullptr).ok()) {
                    (*timer)->cancel(*token);
                } else if (token) {
                    vgpu::run_dry();
                    static_cast<void>((*timer)->collect(*token));
                }
            }
            if (timer && vgpu::all_failures_struck()) {
                const auto refused = (*timer)->begin();
                ASSERT_FALSE(refused.ok()) << call << " " << use;
                EXPECT_FALSE(refused.error().message.empty());
                EXPECT_EQ((*timer)->in_flight(), 0u);
                const std::uint64_t before = vgpu::calls("*");
                EXPECT_FALSE((*timer)->begin().ok());
                timer->reset();
                EXPECT_EQ(vgpu::calls("*"), before) << call << " " << use;
            }
            ASSERT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
        }
    }
}

TEST(CudaQueueTimer, a_context_that_is_gone_before_its_timer_is_an_error_and_nothing_more) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    auto timer = bench.timer(stream);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok() && timer->end(*token).ok());
    vgpu::run_dry();
    Context popped = nullptr;
    bench.calls().ctx_pop_current(&popped);
    ASSERT_EQ(bench.calls().primary_ctx_release(0), CuResult::success);
    const auto span = timer->collect(*token); // as the drain does, on a thread without a context
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::unavailable) << span.error().message;
    EXPECT_EQ(timer->begin().error().code, ErrorCode::unavailable);
    EXPECT_EQ(timer->clock_pair().error().code, ErrorCode::unavailable);
    EXPECT_EQ(timer->in_flight(), 0u);
    timer.reset();
    EXPECT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
}

TEST(CudaQueueTimer, a_million_scopes_need_bounded_memory_and_none_is_lost) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timer = bench.timer(stream);
    bench.kernel(stream, 1'000);
    std::vector<DeviceToken> tokens;
    std::uint64_t collected = 0;
    std::size_t held = 0;
    for (std::uint64_t i = 0; i < draws(1'000'000); ++i) {
        const auto token = timer->begin();
        ASSERT_TRUE(token.ok() && timer->end(*token).ok());
        tokens.push_back(*token);
        if (tokens.size() == 2'000) {
            vgpu::run_dry();
            for (const DeviceToken one : tokens) {
                collected += timer->collect(one).ok();
            }
            tokens.clear();
            held = held == 0 ? vgpu::alive().total() : held;
        }
    }
    EXPECT_EQ(collected, draws(1'000'000));
    EXPECT_LE(vgpu::alive().total(), held + 64) << "a chunk of anchors at most";
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

TEST(CudaQueueTimer, everything_is_given_back) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const std::string before = vgpu::leaks();
    {
        const auto timer = bench.timer(stream);
        const auto token = timer->begin();
        ASSERT_TRUE(token.ok());
        EXPECT_NE(vgpu::leaks(), before);
    }
    EXPECT_EQ(vgpu::leaks(), before);
    EXPECT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
}

} // namespace
} // namespace plumb::backends::cuda

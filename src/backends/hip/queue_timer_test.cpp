// SPDX-License-Identifier: Apache-2.0
// Scopes of HIP streams on the virtual GPU, whose ledger knows the truth.
#include <deque>
#include <vector>

#include "backends/hip/bench_testing.hpp"

namespace plumb::backends::hip {
namespace {

TEST(HipQueueTimer, scopes_read_what_the_device_did_within_its_tick) {
    HipBench bench;
    const auto timer = bench.timer();
    EXPECT_STREQ(timer->source(), "hip_event");
    EXPECT_EQ(timer->clock_name().substr(0, 5), "hip:0");
    bench.kernel(10'000'000); // the device is busy while the host enqueues
    std::deque<DeviceToken> tokens;
    for (std::int64_t ns = 5'000; ns < 400'000; ns += 5'000) {
        tokens.push_back(scope_of(bench, *timer, ns));
    }
    EXPECT_EQ(timer->collect(tokens.front()).error().code, ErrorCode::pending);
    vgpu::run_dry();
    for (const vgpu::Operation& kernel : vgpu::operations()) {
        if (kernel.kind != vgpu::OpKind::kernel || kernel.end_ns - kernel.start_ns == 10'000'000) {
            continue;
        }
        ASSERT_FALSE(tokens.empty());
        const auto span = timer->collect(tokens.front());
        tokens.pop_front();
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_GE(length_of(*span), kernel.end_ns - kernel.start_ns - 32);
        EXPECT_LE(length_of(*span), kernel.end_ns - kernel.start_ns + 2 * vgpu::config().gap_ns + 32);
        EXPECT_EQ(span->flags, 0u);
    }
    EXPECT_TRUE(tokens.empty());
    EXPECT_TRUE(vgpu::errors().empty());
}

TEST(HipQueueTimer, F2_scopes_of_a_warm_hip_stream_neither_wait_nor_make_events) {
    HipBench bench;
    const auto timer = bench.timer();
    std::uint64_t made = 0;
    for (int step = 0; step < 20; ++step) {
        std::vector<DeviceToken> tokens;
        for (int i = 0; i < 200; ++i) {
            tokens.push_back(scope_of(bench, *timer, 32'000));
        }
        vgpu::run_dry();
        for (const DeviceToken token : tokens) {
            const auto span = timer->collect(token);
            ASSERT_TRUE(span.ok()) << span.error().message;
            EXPECT_LE(length_of(*span), 45'000) << "a 32 us kernel does not read 60 us";
        }
        made = step == 0 ? vgpu::calls("cuEventCreate") : made;
    }
    EXPECT_EQ(vgpu::calls("cuEventCreate"), made);
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

TEST(HipQueueTimer, M4_a_small_negative_time_is_below_the_floor_and_a_large_one_is_an_error) {
    HipBench bench;
    const auto timer = bench.timer();
    bench.kernel(1'000'000);
    const DeviceToken known = scope_of(bench, *timer, 100);
    std::vector<DeviceToken> small;
    for (int i = 0; i < 16; ++i) {
        small.push_back(scope_of(bench, *timer, 100));
    }
    const DeviceToken large = scope_of(bench, *timer, 100);
    const DeviceToken sound = scope_of(bench, *timer, 500'000);
    vgpu::run_dry();
    const auto whole = timer->collect(sound);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(whole->flags & span_below_floor, 0u);
    const auto as_long = timer->collect(known);
    ASSERT_TRUE(as_long.ok());
    const auto shorter_by = [&](std::int64_t ns) {
        vhip::skew(-static_cast<double>(length_of(*as_long) + ns), 1e4);
    };
    shorter_by(
        20); // within the tick of 32 ns; where a tick falls makes some of them a tick longer or shorter than the first
    int swapped = 0;
    for (const DeviceToken token : small) {
        const auto span = timer->collect(token);
        if (!span) {
            EXPECT_EQ(span.error().code, ErrorCode::corrupt);
        } else if (length_of(*span) == 0) {
            EXPECT_NE(span->flags & span_below_floor, 0u);
            ++swapped;
        } else {
            EXPECT_EQ(length_of(*span), 32 - 20);
        }
    }
    EXPECT_GE(swapped, 1);
    shorter_by(5'000);
    const auto wrong = timer->collect(large);
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().code, ErrorCode::corrupt);
    EXPECT_NE(wrong.error().message.find("ended before it began"), std::string::npos);
    EXPECT_EQ(timer->in_flight(), 0u);
}

TEST(HipQueueTimer, F3_collection_pauses_while_a_timed_stream_is_captured) {
    HipBench bench;
    const auto timer = bench.timer();
    Stream captured = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&captured, cuda::stream_non_blocking), CuResult::success);
    const auto its_timer = bench.timer(captured);
    const DeviceToken token = scope_of(bench, *timer, 50'000);
    vgpu::run_dry();
    ASSERT_EQ(hipStreamBeginCapture(captured, cuda::CaptureMode::relaxed), CuResult::success);
    const auto inside = its_timer->begin_labelled(any_label());
    ASSERT_TRUE(inside.ok()) << inside.error().message;
    bench.kernel(20'000, captured);
    EXPECT_TRUE(its_timer->end_labelled(*inside, nullptr).ok()) << "it is noted for graph probes";
    EXPECT_EQ(timer->collect(token).error().code, ErrorCode::pending);
    EXPECT_FALSE(timer->clock_pair().ok());
    EXPECT_FALSE(timer->floor_ns().ok());
    const DeviceToken eager = scope_of(bench, *timer, 10'000); // recording goes on
    const auto late = bench.timer(captured);                   // and a first contact asks nothing
    EXPECT_EQ(vhip::questions_in_captures(), 0u);
    cuda::Graph graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(captured, &graph), CuResult::success) << "the capture lives";
    vgpu::run_dry();
    for (const DeviceToken open : {token, eager}) {
        const auto span = timer->collect(open);
        EXPECT_TRUE(span.ok()) << span.error().message;
    }
    EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
}

TEST(HipQueueTimer, M8_without_the_calls_of_graph_probes_a_captured_scope_is_refused_with_its_reason) {
    HipBench bench;
    const Result<Driver> bare = load_driver(PLUMB_BARE_VIRTUAL_HIP);
    ASSERT_TRUE(bare.ok()) << bare.error().message;
    Driver lacking = *driver(); // the streams of one stand-in are not the other's
    lacking.no_graphs = bare->no_graphs;
    const auto timer = bench.timer(bench.stream, lacking);
    ASSERT_EQ(hipStreamBeginCapture(bench.stream, cuda::CaptureMode::relaxed), CuResult::success);
    const auto inside = timer->begin_labelled(any_label());
    ASSERT_FALSE(inside.ok());
    EXPECT_EQ(inside.error().code, ErrorCode::unsupported);
    EXPECT_NE(inside.error().message.find("has no hipGraphClone, which graph probes need"), std::string::npos)
        << inside.error().message;
    cuda::Graph graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(bench.stream, &graph), CuResult::success);
    EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
    ASSERT_TRUE(load_driver("libamdhip64.so.5").ok());
}

TEST(HipQueueTimer, a_newer_hip_is_never_asked_for_a_stream_that_may_be_gone) {
    HipBench bench;
    vhip::version(70'000'000);
    const Result<Driver> seven = load_driver(PLUMB_NEWER_VIRTUAL_HIP);
    ASSERT_TRUE(seven.ok()) << seven.error().message;
    {
        Stream gone = nullptr;
        ASSERT_EQ(hipStreamCreateWithFlags(&gone, cuda::stream_non_blocking), CuResult::success);
        const auto dead = bench.timer(gone, *seven);
        const auto timer = bench.timer(bench.stream, *seven);
        const DeviceToken token = scope_of(bench, *timer, 50'000);
        vgpu::run_dry();
        ASSERT_EQ(hipStreamBeginCapture(gone, cuda::CaptureMode::relaxed), CuResult::success);
        const auto noted = dead->begin_labelled(any_label()); // seen
        ASSERT_TRUE(noted.ok()) << noted.error().message;
        dead->cancel(*noted);
        EXPECT_EQ(timer->collect(token).error().code, ErrorCode::pending);
        cuda::Graph graph = nullptr;
        ASSERT_EQ(hipStreamEndCapture(gone, &graph), CuResult::success);
        ASSERT_EQ(hipStreamDestroy(gone), CuResult::success);
        EXPECT_EQ(timer->collect(token).error().code, ErrorCode::pending) << "its end was not seen";
        vgpu::advance(11'000'000'000);
        EXPECT_TRUE(timer->collect(token).ok());
        EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
    }
    EXPECT_EQ(vhip::crashes(), 0u);
    EXPECT_EQ(vhip::questions_in_captures(), 0u);
}

TEST(HipQueueTimer, a_capture_on_a_blocking_stream_that_nobody_times_is_spared_too) {
    HipBench bench;
    vhip::version(70'000'000);
    const Result<Driver> seven = load_driver(PLUMB_NEWER_VIRTUAL_HIP);
    ASSERT_TRUE(seven.ok());
    const auto timer = bench.timer(bench.stream, *seven);
    const DeviceToken token = scope_of(bench, *timer, 50'000);
    vgpu::run_dry();
    Stream blocking = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&blocking, 0), CuResult::success);
    ASSERT_EQ(hipStreamBeginCapture(blocking, cuda::CaptureMode::relaxed), CuResult::success);
    EXPECT_EQ(timer->collect(token).error().code, ErrorCode::pending);
    cuda::Graph graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(blocking, &graph), CuResult::success);
    EXPECT_TRUE(timer->collect(token).ok());
    EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
}

TEST(HipQueueTimer, a_newer_hip_is_asked_during_captures) {
    HipBench bench;
    vhip::version(70'300'000);
    const Result<Driver> fixed = load_driver(PLUMB_NEWER_VIRTUAL_HIP);
    ASSERT_TRUE(fixed.ok());
    {
        const auto timer = bench.timer(bench.stream, *fixed);
        const DeviceToken token = scope_of(bench, *timer, 50'000);
        vgpu::run_dry();
        Stream captured = nullptr;
        ASSERT_EQ(hipStreamCreateWithFlags(&captured, cuda::stream_non_blocking), CuResult::success);
        ASSERT_EQ(hipStreamBeginCapture(captured, cuda::CaptureMode::relaxed), CuResult::success);
        EXPECT_TRUE(timer->collect(token).ok());
        cuda::Graph graph = nullptr;
        ASSERT_EQ(hipStreamEndCapture(captured, &graph), CuResult::success);
        EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
    }
}

TEST(HipQueueTimer, a_stream_that_is_gone_ends_no_other_streams_times) {
    HipBench bench;
    Stream gone = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&gone, cuda::stream_non_blocking), CuResult::success);
    const auto dead = bench.timer(gone);
    const auto timer = bench.timer();
    ASSERT_EQ(hipStreamDestroy(gone), CuResult::success);
    EXPECT_FALSE(dead->begin().ok());
    const DeviceToken token = scope_of(bench, *timer, 50'000);
    vgpu::run_dry();
    EXPECT_TRUE(timer->collect(token).ok()) << "709 speaks of one stream";
}

TEST(HipQueueTimer, a_lost_device_is_an_error_and_everything_is_given_back_before) {
    HipBench bench;
    const std::size_t alive = vgpu::alive().total();
    {
        const auto timer = bench.timer();
        static_cast<void>(scope_of(bench, *timer, 50'000));
        vgpu::run_dry();
    }
    EXPECT_EQ(vgpu::alive().total(), alive);
    const auto timer = bench.timer();
    const DeviceToken token = scope_of(bench, *timer, 50'000);
    vgpu::run_dry();
    vgpu::lose_device();
    const auto span = timer->collect(token);
    ASSERT_FALSE(span.ok());
    EXPECT_EQ(span.error().code, ErrorCode::unavailable);
    EXPECT_EQ(span.error().message.find("hip"), 0u) << span.error().message;
    EXPECT_NE(span.error().message.find("this HIP context"), std::string::npos) << span.error().message;
    EXPECT_EQ(span.error().message.find("cu"), std::string::npos) << span.error().message;
}

} // namespace
} // namespace plumb::backends::hip

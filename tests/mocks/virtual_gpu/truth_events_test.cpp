// SPDX-License-Identifier: Apache-2.0
// What truth_table.hpp says of events and streams.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

constexpr CuResult ok = CuResult::success;

void run_for(const char* name, std::int64_t ns) { kernel(name, {{}, ns, ns, {}}); }

float elapsed(Engine& engine, Event begin, Event end) {
    float ms = -1;
    EXPECT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), ok);
    return ms;
}

Operation operation_named(const std::string& name, std::size_t which = 0) {
    for (const Operation& operation : operations()) {
        if (name == operation.name && which-- == 0) {
            return operation;
        }
    }
    ADD_FAILURE() << "no operation " << name;
    return {};
}

TEST(Truth, begin_event_fires_when_stream_drains) {
    Engine engine;
    const Stream stream = engine.stream();
    const Event begin = engine.event();
    engine.cu.event_record(begin, stream);
    advance(100'000); // the host is busy elsewhere before it submits the kernel
    engine.launch("k", stream);
    run_dry();
    EXPECT_GE(operation_named("k").start_ns - operation_named("event").start_ns, 100'000);
}

TEST(Truth, event_ticks_are_whole) {
    for (const unsigned tick : {32u, 500u, 1024u}) {
        Config config;
        config.event_tick_ns = tick;
        config.kernel_min_ns = 3'001;
        config.kernel_max_ns = 9'999;
        Engine engine(config);
        const Stream stream = engine.stream();
        const Event begin = engine.event(), end = engine.event();
        for (int i = 0; i < 20; ++i) {
            engine.cu.event_record(begin, stream);
            engine.launch("k", stream);
            engine.cu.event_record(end, stream);
            run_dry();
            const double ticks = elapsed(engine, begin, end) * 1e6 / tick;
            EXPECT_NEAR(ticks, std::round(ticks), 1e-3);
            const Operation from = operation_named("event", static_cast<std::size_t>(2 * i));
            const Operation to = operation_named("event", static_cast<std::size_t>(2 * i + 1));
            EXPECT_NEAR(ticks * tick, static_cast<double>(to.start_ns - from.start_ns), tick);
        }
    }
}

TEST(Truth, elapsed_is_a_float_of_ms) {
    Engine engine;
    const Stream stream = engine.stream();
    const Event begin = engine.event(), end = engine.event();
    engine.cu.event_record(begin, stream);
    run_for("long", 4'000'000'123);
    engine.launch("long", stream);
    engine.cu.event_record(end, stream);
    run_dry();
    const auto true_ns =
        event_stamp_ns(operation_named("event", 1).start_ns) - event_stamp_ns(operation_named("event", 0).start_ns);
    EXPECT_EQ(elapsed(engine, begin, end), static_cast<float>(static_cast<double>(true_ns) * 1e-6));
    EXPECT_NE(static_cast<double>(elapsed(engine, begin, end)) * 1e6, static_cast<double>(true_ns));
}

TEST(Truth, elapsed_not_ready_before_done) {
    Engine engine;
    const Stream stream = engine.stream();
    const Event begin = engine.event(), end = engine.event();
    engine.cu.event_record(begin, stream);
    run_for("k", 1'000'000);
    engine.launch("k", stream);
    engine.cu.event_record(end, stream);
    float ms = 0;
    EXPECT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), CuResult::not_ready);
    EXPECT_EQ(engine.cu.event_query(end), CuResult::not_ready);
    EXPECT_EQ(engine.cu.stream_query(stream), CuResult::not_ready);
    run_dry();
    EXPECT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), ok);
    EXPECT_EQ(engine.cu.stream_query(stream), ok);
}

TEST(Truth, elapsed_of_unrecorded_event_is_invalid_handle) {
    Engine engine;
    const Event begin = engine.event(), end = engine.event();
    engine.cu.event_record(begin, engine.stream());
    run_dry();
    float ms = 0;
    EXPECT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), CuResult::invalid_handle);
}

TEST(Truth, elapsed_needs_timing) {
    Engine engine;
    const Stream stream = engine.stream();
    const Event begin = engine.event(), end = engine.event(event_disable_timing);
    engine.cu.event_record(begin, stream);
    engine.cu.event_record(end, stream);
    run_dry();
    float ms = 0;
    EXPECT_EQ(engine.cu.event_elapsed_time_v12080(&ms, begin, end), CuResult::invalid_handle);
}

TEST(Truth, query_of_unrecorded_event_succeeds) {
    Engine engine;
    EXPECT_EQ(engine.cu.event_query(engine.event()), ok);
}

TEST(Truth, event_may_be_destroyed_before_done) {
    Engine engine;
    const Stream stream = engine.stream();
    const Event event = engine.event();
    run_for("k", 1'000'000);
    engine.launch("k", stream);
    engine.cu.event_record(event, stream);
    const auto before = now_ns();
    EXPECT_EQ(engine.cu.event_destroy(event), ok);
    EXPECT_LT(now_ns() - before, 10'000);
    run_dry();
    EXPECT_TRUE(errors().empty());
}

TEST(Truth, external_record_outside_capture_is_invalid) {
    Engine engine;
    const Event event = engine.event();
    EXPECT_EQ(engine.cu.event_record_with_flags(event, engine.stream(), event_record_external),
              CuResult::invalid_value);
}

TEST(Truth, streams_overlap) {
    Engine engine;
    run_for("a", 100'000);
    run_for("b", 100'000);
    engine.launch("a", engine.stream());
    engine.launch("b", engine.stream());
    EXPECT_LT(operation_named("b").start_ns, operation_named("a").end_ns);
    EXPECT_GT(operation_named("b").start_ns, operation_named("a").start_ns);
}

TEST(Truth, legacy_stream_waits_for_blocking_streams) {
    Engine engine;
    run_for("blocking", 100'000);
    run_for("legacy", 100'000);
    const Stream blocking = engine.stream(event_default);
    engine.launch("blocking", blocking);
    engine.launch("legacy", nullptr);
    engine.launch("blocking", blocking);
    engine.launch("free", engine.stream());
    EXPECT_GE(operation_named("legacy").start_ns, operation_named("blocking").end_ns);
    EXPECT_GE(operation_named("blocking", 1).start_ns, operation_named("legacy").end_ns);
    EXPECT_LT(operation_named("free").start_ns, operation_named("legacy").end_ns);
}

TEST(Truth, copy_reads_its_source_when_it_executes) {
    Engine engine;
    const Stream stream = engine.stream();
    void* host = nullptr;
    DevicePointer device = 0;
    ASSERT_EQ(engine.cu.mem_host_alloc(&host, 4, 0), ok);
    ASSERT_EQ(engine.cu.mem_alloc(&device, 4), ok);
    int value = 1;
    std::memcpy(host, &value, sizeof value);
    run_for("long", 1'000'000);
    engine.launch("long", stream);
    ASSERT_EQ(engine.cu.memcpy_htod_async(device, host, 4, stream), ok);
    value = 2;
    std::memcpy(host, &value, sizeof value); // too early: the copy has not run
    run_dry();
    EXPECT_EQ(*at<int>(device), 2);
}

TEST(Truth, memset_and_value_write_pass_by_value) {
    Engine engine;
    const Stream stream = engine.stream();
    DevicePointer device = 0;
    ASSERT_EQ(engine.cu.mem_alloc(&device, 32), ok);
    unsigned value = 7;
    WriteValueOp write{mem_op_write_value_32, device + 8, value, 0, 0, 0};
    int seen = 0;
    kernel("k", {{sizeof(unsigned)}, 1'000, 1'000, [&seen](const KernelRun& run) {
                     seen = run.param<int>(0);
                 }});
    void* params[] = {&value};
    engine.launch("k", stream, params);
    ASSERT_EQ(engine.cu.memset_d32_async(device, value, 2, stream), ok);
    ASSERT_EQ(engine.cu.stream_batch_mem_op(stream, 1, &write, 0), ok);
    value = 9;
    write.value = 9;
    run_dry();
    EXPECT_EQ(at<int>(device, 3)[0], 7);
    EXPECT_EQ(at<int>(device, 3)[1], 7);
    EXPECT_EQ(at<int>(device, 3)[2], 7);
    EXPECT_EQ(seen, 7);
}

TEST(Truth, full_launch_queue_blocks) {
    Config config;
    config.launch_queue_depth = 4;
    Engine engine(config);
    const Stream stream = engine.stream();
    run_for("k", 100'000);
    for (int i = 0; i < 4; ++i) {
        engine.launch("k", stream);
    }
    EXPECT_EQ(blocked().launches, 0u);
    const auto before = now_ns();
    engine.launch("k", stream);
    EXPECT_EQ(blocked().launches, 1u);
    EXPECT_GT(now_ns() - before, 80'000);
    EXPECT_EQ(now_ns() >= operation_named("k").end_ns, true);
}

TEST(Truth, mem_free_waits_for_the_device) {
    Engine engine;
    DevicePointer device = 0;
    engine.cu.mem_alloc(&device, 64);
    run_for("k", 1'000'000);
    engine.launch("k", engine.stream());
    EXPECT_EQ(engine.cu.mem_free(device), ok);
    EXPECT_GE(now_ns(), operation_named("k").end_ns);
    ASSERT_EQ(synchronisations().size(), 1u);
    EXPECT_TRUE(synchronisations()[0].implicit);
}

TEST(Streams, leave_a_gap_between_two_kernels) {
    Engine engine;
    const Stream stream = engine.stream();
    run_for("a", 100'000);
    engine.launch("a", stream);
    engine.launch("b", stream);
    EXPECT_EQ(operation_named("b").start_ns - operation_named("a").end_ns, Config{}.gap_ns);
}

TEST(Streams, wait_for_events_of_other_streams) {
    Engine engine;
    const Stream first = engine.stream(), second = engine.stream();
    const Event event = engine.event();
    run_for("a", 100'000);
    engine.launch("a", first);
    engine.cu.event_record(event, first);
    ASSERT_EQ(engine.cu.stream_wait_event(second, event, 0), ok);
    engine.launch("b", second);
    EXPECT_GE(operation_named("b").start_ns, operation_named("a").end_ns);
}

} // namespace
} // namespace plumb::vgpu

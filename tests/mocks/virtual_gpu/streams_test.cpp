// SPDX-License-Identifier: Apache-2.0
// Events and streams on the virtual GPU, to the nanosecond.
#include <cmath>

#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

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

TEST(Events, stamp_true_times_cut_to_ticks) {
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

TEST(Events, give_the_difference_of_their_stamps_as_a_float) {
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

TEST(Streams, have_a_queue_of_the_depth_that_was_set) {
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

TEST(Ledger, tells_waits_that_say_nothing_of_it) {
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

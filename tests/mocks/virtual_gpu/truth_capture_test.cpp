// SPDX-License-Identifier: Apache-2.0
// What truth_table.hpp says of captures, the threads around them, and what ends them.
#include "virtual_gpu/capture_bench.hpp"

namespace plumb::vgpu {
namespace {

TEST(Truth, event_query_breaks_global_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] { EXPECT_EQ(engine.cu.event_query(event), CuResult::stream_capture_unsupported); });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::invalidated);
    ASSERT_EQ(invalidations().size(), 1u);
    EXPECT_EQ(invalidations()[0].call, "cuEventQuery");
    EXPECT_NE(invalidations()[0].thread, invalidations()[0].owner);
    EXPECT_EQ(end(engine, stream, CuResult::stream_capture_invalidated), nullptr);
}

TEST(Truth, thread_local_capture_ignores_other_threads) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::thread_local_mode);
    in_another_thread(engine, [&] { EXPECT_EQ(engine.cu.event_query(event), ok); });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::active);
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Truth, relaxed_thread_breaks_no_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::relaxed;
        EXPECT_EQ(engine.cu.thread_exchange_capture_mode(&mode), ok);
        EXPECT_EQ(mode, CaptureMode::global);
        EXPECT_EQ(engine.cu.event_query(event), ok);
        DevicePointer memory = 0;
        EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), ok);
    });
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::active);
    EXPECT_NE(end(engine, stream), nullptr);
    EXPECT_TRUE(invalidations().empty());
}

TEST(Truth, own_unsafe_call_breaks_own_capture) {
    Engine engine;
    DevicePointer memory = 0;
    for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_mode}) {
        const Stream stream = begin(engine, mode);
        EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), CuResult::stream_capture_unsupported);
        end(engine, stream, CuResult::stream_capture_invalidated);
    }
    const Stream stream = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.mem_alloc(&memory, 16), ok);
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Truth, query_of_captured_event_breaks_any_capture) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::relaxed);
    engine.cu.event_record(event, stream);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::relaxed;
        engine.cu.thread_exchange_capture_mode(&mode);
        EXPECT_EQ(engine.cu.event_query(event), CuResult::captured_event);
    });
    end(engine, stream, CuResult::stream_capture_invalidated);
    EXPECT_EQ(engine.cu.event_query(event), CuResult::captured_event);
    engine.cu.event_record(event, stream);
    run_dry();
    EXPECT_EQ(engine.cu.event_query(event), ok);
}

TEST(Truth, synchronising_a_capturing_stream_breaks_it) {
    Engine engine;
    const Stream queried = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_query(queried), CuResult::stream_capture_unsupported);
    end(engine, queried, CuResult::stream_capture_invalidated);
    const Stream awaited = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_synchronize(awaited), CuResult::stream_capture_unsupported);
    end(engine, awaited, CuResult::stream_capture_invalidated);
    const Stream any = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.ctx_synchronize(), CuResult::stream_capture_unsupported);
    end(engine, any, CuResult::stream_capture_invalidated);
    EXPECT_EQ(synchronising_calls(), 0u);
}

TEST(Truth, invalidated_capture_leaves_the_stream_usable) {
    Engine engine;
    const Stream stream = begin(engine);
    engine.launch("k", stream);
    engine.cu.stream_query(stream);
    EXPECT_EQ(engine.launch("k", stream), CuResult::stream_capture_invalidated);
    EXPECT_EQ(end(engine, stream, CuResult::stream_capture_invalidated), nullptr);
    EXPECT_EQ(status_of(engine, stream), CaptureStatus::none);
    EXPECT_EQ(engine.launch("k", stream), ok);
    EXPECT_EQ(engine.cu.stream_synchronize(stream), ok);
    EXPECT_EQ(alive().graphs, 0u);
}

TEST(Truth, capture_ends_in_its_thread) {
    Engine engine;
    const Stream strict = begin(engine, CaptureMode::thread_local_mode);
    const Stream relaxed = begin(engine, CaptureMode::relaxed);
    in_another_thread(engine, [&] {
        end(engine, strict, CuResult::stream_capture_wrong_thread);
        EXPECT_NE(end(engine, relaxed), nullptr);
    });
    EXPECT_NE(end(engine, strict), nullptr);
}

TEST(Truth, waiting_for_an_outside_event_breaks_the_capture) {
    Engine engine;
    const Event event = engine.event();
    engine.cu.event_record(event, engine.stream());
    const Stream stream = begin(engine);
    EXPECT_EQ(engine.cu.stream_wait_event(stream, event, 0), CuResult::stream_capture_isolation);
    end(engine, stream, CuResult::stream_capture_invalidated);
}

TEST(Truth, merging_two_captures_breaks_both) {
    Engine engine;
    const Stream first = begin(engine), second = begin(engine);
    const Event event = engine.event();
    engine.cu.event_record(event, first);
    EXPECT_EQ(engine.cu.stream_wait_event(second, event, 0), CuResult::stream_capture_merge);
    end(engine, first, CuResult::stream_capture_invalidated);
    end(engine, second, CuResult::stream_capture_invalidated);
}

TEST(Truth, legacy_stream_is_implicit) {
    Engine engine;
    const Stream blocking = engine.stream(event_default);
    engine.cu.stream_begin_capture(blocking, CaptureMode::relaxed);
    CaptureStatus status{};
    EXPECT_EQ(engine.cu.stream_is_capturing(nullptr, &status), CuResult::stream_capture_implicit);
    EXPECT_EQ(status_of(engine, blocking), CaptureStatus::active); // asking does no harm
    EXPECT_EQ(engine.launch("k", nullptr), CuResult::stream_capture_implicit);
    end(engine, blocking, CuResult::stream_capture_invalidated);
    const Stream free = begin(engine, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.stream_is_capturing(nullptr, &status), ok);
    EXPECT_EQ(engine.launch("k", nullptr), ok);
    EXPECT_NE(end(engine, free), nullptr);
}

TEST(Truth, legacy_stream_cannot_capture) {
    Engine engine;
    EXPECT_EQ(engine.cu.stream_begin_capture(nullptr, CaptureMode::relaxed), CuResult::stream_capture_unsupported);
}

TEST(Truth, stream_ids_are_not_reused) {
    Engine engine;
    const Stream first = engine.stream();
    unsigned long long first_id = 0, second_id = 0;
    engine.cu.stream_get_id(first, &first_id);
    engine.cu.stream_destroy(first);
    const Stream second = engine.stream();
    engine.cu.stream_get_id(second, &second_id);
    EXPECT_EQ(first, second);
    EXPECT_NE(first_id, second_id);
}

TEST(Capture, must_end_where_it_began_and_cannot_begin_twice) {
    Engine engine;
    const Stream main = begin(engine, CaptureMode::relaxed), side = engine.stream();
    EXPECT_EQ(engine.cu.stream_begin_capture(main, CaptureMode::relaxed), CuResult::illegal_state);
    const Event fork = engine.event();
    engine.cu.event_record(fork, main);
    engine.cu.stream_wait_event(side, fork, 0);
    end(engine, side, CuResult::stream_capture_unmatched);
    end(engine, main, CuResult::stream_capture_invalidated);
    end(engine, main, CuResult::illegal_state);
}

TEST(Capture, is_left_alone_by_a_thread_in_thread_local_mode) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    in_another_thread(engine, [&] {
        CaptureMode mode = CaptureMode::thread_local_mode;
        engine.cu.thread_exchange_capture_mode(&mode);
        EXPECT_EQ(engine.cu.event_query(event), ok);
    });
    EXPECT_NE(end(engine, stream), nullptr);
}

TEST(Capture, is_left_alone_by_its_own_thread_in_relaxed_mode) {
    Engine engine;
    const Event event = engine.event();
    const Stream stream = begin(engine, CaptureMode::global);
    CaptureMode mode = CaptureMode::relaxed;
    engine.cu.thread_exchange_capture_mode(&mode);
    EXPECT_EQ(engine.cu.event_query(event), ok);
    engine.cu.thread_exchange_capture_mode(&mode);
    EXPECT_EQ(mode, CaptureMode::relaxed);
    EXPECT_EQ(engine.cu.event_query(event), CuResult::stream_capture_unsupported);
    end(engine, stream, CuResult::stream_capture_invalidated);
}

} // namespace
} // namespace plumb::vgpu

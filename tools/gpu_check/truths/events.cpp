// SPDX-License-Identifier: Apache-2.0
// Truths about streams, events, copies and the launch queue.
#include <algorithm>
#include <cmath>

#include "truths/ticks.hpp"
#include "truths/truth.hpp"

namespace gpu_check {

void truth_begin_event_fires_when_stream_drains(Gpu& gpu) {
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    gpu.wait();
    gpu.record(begin, gpu.stream);
    gpu.time.sleep_ns(3'000'000);
    gpu.launch_spin(gpu.stream, 20);
    gpu.record(end, gpu.stream);
    gpu.wait();
    const double span = gpu.elapsed_ns(begin, end);
    expect(span > 2.9e6, "the pair reads " + std::to_string(span) + " ns though its kernel was launched 3 ms after it");
}

void truth_event_ticks_are_whole(Gpu& gpu) {
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) {
        const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
        gpu.record(begin, gpu.stream);
        gpu.launch_spin(gpu.stream, i % 2 == 0 ? 5 : 20);
        gpu.record(end, gpu.stream);
        gpu.wait();
        values.push_back(gpu.elapsed_ns(begin, end));
    }
    const int tick = tick_of(values);
    say("tick " + std::to_string(tick) + " ns");
    expect(tick > 0 && tick <= 1024, "elapsed times are multiples of no whole number of nanoseconds up to 1,024");
}

void truth_elapsed_is_a_float_of_ms(Gpu& gpu) {
    const OwnedEvent first = make_event(gpu), second = make_event(gpu), third = make_event(gpu);
    gpu.record(first, gpu.stream);
    gpu.wait();
    gpu.time.sleep_ns(400'000'000);
    gpu.record(second, gpu.stream);
    gpu.launch_spin(gpu.stream, 100);
    gpu.record(third, gpu.stream);
    gpu.wait();
    const double whole = gpu.elapsed_ns(first, third), head = gpu.elapsed_ns(first, second);
    const double tail = gpu.elapsed_ns(second, third);
    const double ulp = std::ldexp(1.0, std::ilogb(whole * 1e-6) - 23) * 1e6;
    const double off = std::abs(whole - head - tail);
    say("parts and whole of " + std::to_string(whole * 1e-6) + " ms differ by " + std::to_string(off) +
        " ns, an ulp is " + std::to_string(ulp) + " ns");
    expect(off <= 2 * ulp, "parts and whole differ by more than two units in the last place");
}

void truth_elapsed_not_ready_before_done(Gpu& gpu) {
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    gpu.record(begin, gpu.stream);
    gpu.launch_spin(gpu.stream, 5000);
    gpu.record(end, gpu.stream);
    float ms = 0;
    const CuResult early = gpu.d.elapsed(&ms, begin, end);
    const CuResult event = gpu.d.event_query(end), stream = gpu.d.stream_query(gpu.stream);
    gpu.wait();
    gpu.expect_result(early, CuResult::not_ready, "cuEventElapsedTime while the kernel runs");
    gpu.expect_result(event, CuResult::not_ready, "cuEventQuery while the kernel runs");
    gpu.expect_result(stream, CuResult::not_ready, "cuStreamQuery while the kernel runs");
    gpu.must(gpu.d.elapsed(&ms, begin, end), "cuEventElapsedTime after the kernel");
    gpu.must(gpu.d.stream_query(gpu.stream), "cuStreamQuery after the kernel");
}

void truth_elapsed_of_unrecorded_event_is_invalid_handle(Gpu& gpu) {
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    gpu.record(begin, gpu.stream);
    gpu.wait();
    float ms = 0;
    gpu.expect_result(gpu.d.elapsed(&ms, begin, end), CuResult::invalid_handle, "with an event never recorded");
}

void truth_elapsed_needs_timing(Gpu& gpu) {
    const OwnedEvent untimed[] = {make_event(gpu, event_disable_timing), make_event(gpu, event_disable_timing)};
    const OwnedEvent timed = make_event(gpu);
    for (const Event event : {Event(timed), Event(untimed[0]), Event(untimed[1])}) {
        gpu.record(event, gpu.stream);
    }
    gpu.wait();
    float ms = 0;
    gpu.expect_result(gpu.d.elapsed(&ms, untimed[0], untimed[1]), CuResult::invalid_handle,
                      "events made without timing");
    gpu.expect_result(gpu.d.elapsed(&ms, timed, untimed[0]), CuResult::invalid_handle, "one event made without timing");
}

void truth_query_of_unrecorded_event_succeeds(Gpu& gpu) {
    const OwnedEvent event = make_event(gpu);
    gpu.expect_result(gpu.d.event_query(event), CuResult::success, "cuEventQuery");
}

void truth_event_may_be_destroyed_before_done(Gpu& gpu) {
    OwnedEvent event = make_event(gpu);
    gpu.launch_spin(gpu.stream, 5000);
    gpu.record(event, gpu.stream);
    const std::int64_t before = gpu.time.now_ns();
    const CuResult destroyed = gpu.d.event_destroy(event.release());
    const std::int64_t took = gpu.time.now_ns() - before;
    gpu.wait();
    gpu.must(destroyed, "cuEventDestroy");
    say("took " + std::to_string(took) + " ns");
    expect(took < 3'000'000, "cuEventDestroy waited");
}

void truth_external_record_outside_capture_is_invalid(Gpu& gpu) {
    const OwnedEvent event = make_event(gpu);
    gpu.expect_result(gpu.d.event_record_with_flags(event, gpu.stream, event_record_external), CuResult::invalid_value,
                      "cuEventRecordWithFlags with the external flag");
}

void truth_streams_overlap(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu), other_end = make_event(gpu);
    gpu.record(begin, gpu.stream);
    gpu.launch_spin(gpu.stream, 5000);
    gpu.launch_spin(other, 5000);
    gpu.record(end, gpu.stream);
    gpu.record(other_end, other);
    gpu.wait();
    gpu.wait(other);
    const double span = std::max(gpu.elapsed_ns(begin, end), gpu.elapsed_ns(begin, other_end));
    say("two kernels of 5 ms took " + std::to_string(span * 1e-6) + " ms");
    expect(span < 9e6, "the kernels ran one after the other");
}

void truth_legacy_stream_waits_for_blocking_streams(Gpu& gpu) {
    const OwnedStream blocking = make_stream(gpu, 0);
    const auto span_behind = [&gpu](Stream busy, Stream other) {
        const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
        gpu.record(begin, busy);
        gpu.launch_spin(busy, 5000);
        gpu.launch_empty(other);
        gpu.record(end, other);
        gpu.wait(busy);
        gpu.wait(other);
        return gpu.elapsed_ns(begin, end);
    };
    gpu.wait();
    expect(span_behind(blocking, nullptr) > 4.9e6, "the legacy stream did not wait for a blocking stream");
    expect(span_behind(nullptr, blocking) > 4.9e6, "a blocking stream did not wait for the legacy stream");
    expect(span_behind(gpu.stream, nullptr) < 4.5e6, "the legacy stream waited for a non-blocking stream");
    expect(span_behind(nullptr, gpu.stream) < 4.5e6, "a non-blocking stream waited for the legacy stream");
}

void truth_copy_reads_its_source_when_it_executes(Gpu& gpu) {
    DevicePointer mapped = 0;
    const OwnedHostMemory host = allocate_mapped(gpu, 64, mapped);
    const OwnedMemory device = allocate(gpu, 64);
    auto* word = static_cast<volatile unsigned*>(static_cast<void*>(host));
    *word = 1;
    gpu.launch_spin(gpu.stream, 5000);
    gpu.must(gpu.d.memcpy_htod_async(device, host, 4, gpu.stream), "cuMemcpyHtoDAsync");
    *word = 2;
    gpu.wait();
    const unsigned seen = gpu.read<unsigned>(device, 1)[0];
    expect(seen == 2, "the copy took the value that was there when it was enqueued");
}

void truth_memset_and_value_write_pass_by_value(Gpu& gpu) {
    const OwnedMemory device = allocate(gpu, 64);
    gpu.set32(device, 0, 16);
    gpu.launch_spin(gpu.stream, 5000);
    unsigned value = 7;
    gpu.must(gpu.d.memset_d32_async(device, value, 1, gpu.stream), "cuMemsetD32Async");
    value = 8;
    WriteValueOp write{mem_op_write_value_32, device + 4, 9, 0, 0, 0};
    const bool writes = gpu.d.stream_batch_mem_op != nullptr &&
                        gpu.d.stream_batch_mem_op(gpu.stream, 1, &write, 0) == CuResult::success;
    write.value = 10;
    DevicePointer at = device + 8;
    unsigned by = 3;
    void* parameters[] = {&at, &by};
    gpu.must(gpu.d.launch_kernel(gpu.kernel("check_add"), 1, 1, 1, 1, 1, 1, 0, gpu.stream, parameters, nullptr),
             "cuLaunchKernel");
    by = 4;
    gpu.wait();
    const auto seen = gpu.read<unsigned>(device, 3);
    expect(seen[0] == 7, "the memset wrote " + std::to_string(seen[0]));
    expect(!writes || seen[1] == 9, "the value write wrote " + std::to_string(seen[1]));
    expect(seen[2] == 3, "the kernel's parameter was " + std::to_string(seen[2]));
    say(writes ? "" : "cuStreamBatchMemOp is not there");
}

void truth_full_launch_queue_blocks(Gpu& gpu) {
    gpu.launch_spin(gpu.stream, 50'000);
    std::int64_t longest = 0;
    int launches = 0;
    const std::int64_t began = gpu.time.now_ns();
    while (longest < 10'000'000 && gpu.time.now_ns() - began < 45'000'000) {
        const std::int64_t before = gpu.time.now_ns();
        gpu.launch_empty(gpu.stream);
        longest = std::max(longest, gpu.time.now_ns() - before);
        ++launches;
    }
    gpu.wait();
    say(std::to_string(launches) + " launches until one took " + std::to_string(static_cast<double>(longest) * 1e-6) +
        " ms");
    expect(longest >= 10'000'000, "no launch waited while a kernel of 50 ms ran");
}

void truth_mem_free_waits_for_the_device(Gpu& gpu) {
    OwnedMemory memory = allocate(gpu, 1 << 20);
    gpu.launch_spin(gpu.stream, 5000);
    const std::int64_t before = gpu.time.now_ns();
    memory.reset();
    const std::int64_t took = gpu.time.now_ns() - before;
    gpu.wait();
    say("took " + std::to_string(took) + " ns");
    expect(took > 3'000'000, "cuMemFree did not wait for a kernel that runs");
}

} // namespace gpu_check

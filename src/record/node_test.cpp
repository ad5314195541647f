// SPDX-License-Identifier: Apache-2.0
// Kernels, transfers, tasks and dependencies as they are recorded.
#include <gtest/gtest.h>

#include <thread>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

constexpr Name gemm{300};

TEST(Node, a_kernel_has_both_shapes_whole_and_its_code) {
    TestRecorder recorder;
    const NodeHandle kernel = recorder.record_kernel(gemm, 77, {8, 4, 2}, {128, 2}, 4096);
    EXPECT_EQ(recorder.take(),
              (Words{"kernel_code 300 hash=77 shared=4096", "grid 8x4x2", "block 128x2x1", "kernel 300 @1000"}));
    EXPECT_TRUE(kernel.recorded());
    EXPECT_EQ(kernel.sequence, 3u) << "of the last of its records";
    EXPECT_EQ(kernel.track, recorder.thread()->track);
}

TEST(Node, a_kernel_that_was_timed_has_its_own_begin_and_end_and_its_work) {
    TestRecorder recorder;
    const NodeHandle kernel =
        recorder.record_kernel(gemm, 0, 1, 1, 0, flops(2), timed(Timestamp{30}, Timestamp{70}), bytes(8));
    const Words all = recorder.take();
    EXPECT_EQ(all.front(), "work 300 bytes=8");
    EXPECT_EQ(all.back(), "kernel 300 @30 +40 work");
    EXPECT_EQ(kernel.sequence + 1, all.size());
}

TEST(Node, longer_than_40_bits_is_written_in_full_and_is_still_one_node) {
    TestRecorder recorder;
    const NodeHandle node = recorder.record_transfer(1, 2, 64, TransferDirection::device_to_host,
                                                     timed(Timestamp{5}, Timestamp{5 + payload_mask}));
    const Words all = recorder.take();
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[2], "transfer_part 2=64");
    EXPECT_EQ(all[3], "long " + std::to_string(payload_mask));
    EXPECT_EQ(all[4], "transfer 1 @5 +" + std::to_string(payload_mask));
    EXPECT_EQ(node.sequence, 4u);
}

TEST(Node, buffers_are_addresses_or_any_number) {
    TestRecorder recorder;
    int there = 0;
    recorder.record_transfer(&there, 7, 4, TransferDirection::host_to_device);
    const Words all = recorder.take();
    EXPECT_EQ(all[0], "transfer_part 0=" + std::to_string(reinterpret_cast<std::uintptr_t>(&there)));
    EXPECT_EQ(all[1], "transfer_part 1=7");
    EXPECT_EQ(all[3], "transfer 0 @1000");
}

TEST(Node, a_task_says_how_often_it_was_polled_and_yielded_and_for_how_long) {
    TestRecorder recorder;
    recorder.record_task(gemm, 5, 4, 1'000'000);
    recorder.record_task(1, 0, 9);
    EXPECT_EQ(recorder.take(), (Words{"task_part 0=5", "task_part 1=4", "task_part 2=1000000", "task 300 @1000",
                                      "task_part 0=1", "task_part 1=0", "task_part 2=9", "task 0 @1000"}));
}

TEST(Node, a_dependency_joins_nodes_of_any_two_threads) {
    TestRecorder recorder;
    const NodeHandle mine = recorder.record_task(1, 0, 9);
    NodeHandle theirs;
    std::thread([&] { theirs = recorder.record_task(1, 0, 9); }).join();
    EXPECT_NE(mine.track, theirs.track);
    (void)recorder.take();
    recorder.add_dependency(theirs, mine);
    EXPECT_EQ(recorder.take(),
              (Words{"from " + std::to_string(theirs.track) + "#3", "to " + std::to_string(mine.track) + "#3"}));
}

TEST(Node, T5_nothing_is_recorded_while_off_and_its_dependencies_are_refused_and_counted) {
    TestRecorder recorder;
    recorder.off();
    const NodeHandle off = recorder.record_kernel(gemm, 1, 1, 1, 0);
    EXPECT_FALSE(recorder.record_transfer(1, 2, 3, TransferDirection::host_to_device).recorded());
    EXPECT_FALSE(recorder.record_task(1, 1, 1).recorded());
    EXPECT_FALSE(off.recorded());
    recorder.on();
    const NodeHandle on = recorder.record_task(1, 1, 1);
    recorder.add_dependency(off, on);
    recorder.add_dependency(on, NodeHandle{});
    EXPECT_EQ(recorder.take().size(), 4u);
    EXPECT_EQ(recorder.drops(Drop::unrecorded_node), 2u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 0u) << "no end was without its begin";
}

TEST(Node, that_ends_before_it_begins_is_refused_and_counted) {
    TestRecorder recorder;
    const TimedTag backwards = timed(Timestamp{30}, Timestamp{10});
    EXPECT_FALSE(recorder.record_kernel(gemm, 1, 1, 1, 0, backwards).recorded());
    EXPECT_FALSE(recorder.record_transfer(1, 2, 3, TransferDirection::host_to_device, backwards).recorded());
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::negative_span), 2u);
}

// Parts alone would be taken for those of another node.
TEST(Node, M3_in_a_full_ring_is_left_out_whole_and_counted) {
    for (unsigned before = 56; before <= 64; ++before) {
        TestRecorder recorder(TestOptions{false, 1024, "", {}}); // 64 records
        for (unsigned i = 0; i < before; ++i) {
            recorder.record(gemm, i);
        }
        const NodeHandle kernel = recorder.record_kernel(gemm, 7, 1, 1, 0);
        const NodeHandle task = recorder.record_task(1, 1, 1);
        recorder.add_dependency(kernel, task);
        std::uint64_t nodes = 0, parts = 0, edges = 0;
        for (const auto& [track, records] : recorder.take_tracks()) {
            for (const Record& record : records) {
                nodes += kind_of(record) == RecordKind::kernel || kind_of(record) == RecordKind::task ? 1 : 0;
                edges += kind_of(record) == RecordKind::dependency ? 1 : 0;
                parts += kind_of(record) == RecordKind::kernel_code || kind_of(record) == RecordKind::kernel_extent ||
                                 kind_of(record) == RecordKind::task_part
                             ? 1
                             : 0;
            }
        }
        EXPECT_EQ(parts, 3 * nodes) << before;
        EXPECT_EQ(edges % 2, 0u) << before;
        EXPECT_EQ((kernel.recorded() ? 1u : 0u) + (task.recorded() ? 1u : 0u), nodes) << before;
        EXPECT_EQ(recorder.all_drops(), 3 - nodes - edges / 2) << before;
    }
}

TEST(CodeHash, is_fnv_1a_of_64_bits) {
    EXPECT_EQ(code_hash("", 0), 0xcbf29ce484222325u);
    EXPECT_EQ(code_hash("a", 1), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(code_hash("foobar", 6), 0x85944171f73967e8u);
    const unsigned char high[] = {0xff};
    EXPECT_EQ(code_hash(static_cast<const void*>(high), 1), 0xaf64724c8602eb6eu);
    static_assert(code_hash("a", 1) == 0xaf63dc4c8601ec8cu, "known at compile time");
}

} // namespace
} // namespace plumb::record

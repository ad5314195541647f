// SPDX-License-Identifier: Apache-2.0
// Nodes from their records: whole ones, and what damage leaves of them.
#include "resolve/node_reader.hpp"

#include <gtest/gtest.h>

#include <random>

#include "planted/tape.hpp"
#include "resolve/resolve.hpp"

namespace plumb::resolve {
namespace {

using planted::Tape;
using planted::us;

constexpr Name gemm{300};

struct ResolvedNodes {
    std::vector<RecordedNode> nodes;
    std::vector<NodeDependency> dependencies;
    std::uint64_t incomplete = 0, unresolved = 0, samples = 0;
};

ResolvedNodes resolved_nodes(Tape& source) {
    ResolvedNodes all;
    const auto done = resolve(
        source, {}, [](const StepTable&, const TrackTable&) {},
        [&all](const ResolvedBatch& batch) {
            all.nodes.insert(all.nodes.end(), batch.nodes.begin(), batch.nodes.end());
            all.dependencies.insert(all.dependencies.end(), batch.dependencies.begin(), batch.dependencies.end());
            all.samples += batch.samples.size();
        });
    EXPECT_TRUE(done.ok());
    if (done.ok()) {
        all.incomplete = done->losses.of(Loss::node_incomplete);
        all.unresolved = done->losses.unresolved();
    }
    return all;
}

TEST(NodeReader, a_kernel_has_step_layer_shape_time_and_work) {
    Tape source;
    source.track(1);
    source.work(1, gemm, WorkQuantity::flops, 12);
    source.step_begin(1, 7, Phase::decode, 0);
    source.layer_begin(1, 3, 5 * us);
    const NodeKey key = source.kernel(1, gemm, 10 * us, 30 * us, 77, {8, 4, 2}, {128, 2}, 4096, flag_work);
    source.layer_end(1, 3, 5 * us, 40 * us);
    source.step_end(1, Phase::decode, 0, 50 * us);
    const ResolvedNodes all = resolved_nodes(source);
    ASSERT_EQ(all.nodes.size(), 1u);
    const RecordedNode& node = all.nodes[0];
    EXPECT_EQ(node.key, key);
    EXPECT_EQ(node.step, 7u);
    EXPECT_EQ(node.layer, 3u);
    EXPECT_TRUE(node.timed);
    EXPECT_EQ(node.begin_ns, 10 * us);
    EXPECT_EQ(node.duration_ns, 20 * us);
    EXPECT_TRUE(node.has_parts);
    EXPECT_EQ(node.code_hash, 77u);
    EXPECT_EQ(node.grid.y, 4u);
    EXPECT_EQ(node.block.x, 128u);
    EXPECT_EQ(node.shared_bytes, 4096u);
    EXPECT_EQ(node.flops, 12);
    EXPECT_TRUE(node.bytes != node.bytes) << "not given is not 0";
    EXPECT_EQ(all.samples, 2u) << "a node is no sample: coverage and busy time are those of the scopes";
}

TEST(NodeReader, what_was_only_told_has_no_duration) {
    Tape source;
    source.track(1);
    source.kernel(1, gemm, 10 * us);
    source.task(1, gemm, 3, 2, 5000, 20 * us);
    const ResolvedNodes all = resolved_nodes(source);
    ASSERT_EQ(all.nodes.size(), 2u);
    EXPECT_FALSE(all.nodes[0].timed);
    EXPECT_FALSE(all.nodes[1].timed);
    EXPECT_EQ(all.nodes[1].begin_ns, 20 * us);
    EXPECT_EQ(all.nodes[1].polled_ns, 5000u);
}

TEST(NodeReader, a_task_that_was_polled_for_years_is_unresolved) {
    Tape source;
    source.track(1);
    source.task(1, gemm, 3, 2, (std::uint64_t{1} << 62) - 1, 20 * us);
    source.task(1, gemm, 3, 2, 5000, 20 * us);
    const ResolvedNodes all = resolved_nodes(source);
    ASSERT_EQ(all.nodes.size(), 1u);
    EXPECT_EQ(all.nodes[0].polled_ns, 5000u);
    EXPECT_EQ(all.unresolved, 1u);
    EXPECT_EQ(all.incomplete, 0u);
}

TEST(NodeReader, M4_a_duration_of_more_than_40_bits_belongs_to_its_node_and_keeps_the_parts) {
    Tape source;
    source.clock_pairs_[1] = {0, Tape::first_tick + (std::uint64_t{1} << 42), std::int64_t{1} << 43, 0, 0};
    source.track(1);
    for (std::uint16_t part = 0; part < 3; ++part) {
        source.raw(1, {part + 1u, pack(RecordKind::transfer_part, part)});
    }
    source.raw(1, {payload_mask + 5, pack(RecordKind::long_value)});
    source.raw(1, {Tape::at(0), pack(RecordKind::transfer, 1, payload_mask)});
    const ResolvedNodes all = resolved_nodes(source);
    ASSERT_EQ(all.nodes.size(), 1u);
    EXPECT_EQ(all.nodes[0].duration_ns, static_cast<std::int64_t>(2 * (payload_mask + 5)));
    EXPECT_TRUE(all.nodes[0].has_parts);
    EXPECT_EQ(all.nodes[0].transferred, 3u);
    EXPECT_EQ(all.nodes[0].direction, TransferDirection::device_to_host);
}

TEST(NodeReader, parts_never_cross_a_gap_or_another_record) {
    Tape source;
    source.track(1);
    source.kernel(1, gemm, 10 * us);
    source.raw(1, {77, pack(RecordKind::kernel_code, gemm.id)});
    source.lose(1, 2); // its extents
    source.raw(1, {Tape::at(20 * us), pack(RecordKind::kernel, gemm.id) | flag_moment});
    for (std::uint16_t part = 0; part < 3; ++part) {
        source.raw(1, {1, pack(RecordKind::task_part, part)});
    }
    source.label(1, gemm, 5);
    source.raw(1, {Tape::at(30 * us), pack(RecordKind::task, gemm.id) | flag_moment});
    source.raw(1, {3, pack(RecordKind::dependency, 0, 1)});
    source.lose(1, 1);
    source.raw(1, {3, pack(RecordKind::dependency, 1, 1)});
    const ResolvedNodes all = resolved_nodes(source);
    ASSERT_EQ(all.nodes.size(), 3u);
    EXPECT_TRUE(all.nodes[0].has_parts);
    EXPECT_FALSE(all.nodes[1].has_parts);
    EXPECT_FALSE(all.nodes[2].has_parts);
    EXPECT_TRUE(all.dependencies.empty());
    EXPECT_EQ(all.incomplete, 3u);
}

TEST(NodeReader, a_time_outside_the_recording_is_counted_as_unresolved) {
    Tape source;
    source.track(1);
    source.raw(1, {std::uint64_t{1} << 62, pack(RecordKind::kernel, gemm.id, 5)});
    const ResolvedNodes all = resolved_nodes(source);
    EXPECT_TRUE(all.nodes.empty());
    EXPECT_EQ(all.unresolved, 1u);
}

TEST(NodeReader, any_records_at_all_give_nodes_that_can_be_used) {
    std::mt19937_64 random(20);
    for (int round = 0; round < 200; ++round) {
        Tape source;
        source.track(1);
        for (int i = 0; i < 100; ++i) {
            const auto kind = static_cast<RecordKind>(19 + random() % 10);
            const std::uint64_t first =
                random() % 3 == 0 ? random() : Tape::at(static_cast<std::int64_t>(random() % 1'000'000));
            source.raw(1, {first, pack(kind, static_cast<std::uint16_t>(random() % 4),
                                       random() % 2 == 0 ? random() : random() % 9) |
                                      (random() % 2 == 0 ? flag_moment : 0)});
        }
        for (const RecordedNode& node : resolved_nodes(source).nodes) {
            EXPECT_GE(node.duration_ns, 0);
            EXPECT_LE(static_cast<unsigned>(node.direction), 2u);
        }
    }
}

} // namespace
} // namespace plumb::resolve

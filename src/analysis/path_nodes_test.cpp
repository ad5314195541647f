// SPDX-License-Identifier: Apache-2.0
// Kernels, transfers, tasks and dependencies that a run recorded one by one, in the graph of a step.
#include <gtest/gtest.h>

#include "analysis/path_testing.hpp"
#include "analysis/roofline.hpp"

namespace plumb::analysis::path_test {
namespace {

using planted::Tape;
using planted::us;
using resolve::NodeKey;

constexpr std::uint32_t other_queue = 0x80000002;
constexpr Name gemm{300}, rope{301}, poller{302};

void prepare(Tape& source) {
    source.track(host);
    source.names_ = {
        {300, Category::other, "gemm_kernel"}, {301, Category::other, "rope_kernel"}, {302, Category::other, "poller"}};
}

/// One brick of 20 to 60 us in a step of 100.
template <class Inside>
PathReport step_with(Tape& source, Inside inside) {
    prepare(source);
    source.step_begin(host, 1, Phase::decode, 0);
    source.step_value(host, StepValue::decode_tokens, 2);
    inside();
    source.scope(host, Brick::attention, 20 * us, 60 * us);
    source.step_end(host, Phase::decode, 0, 100 * us);
    return path_of(source);
}

TEST(PathNodes, a_kernel_alone_in_its_brick_has_its_time_and_only_one_of_them_counts) {
    Tape source;
    const PathReport report = step_with(source, [&] {
        source.kernel(host, gemm, 30 * us, -1, 77, {8, 4, 2}, {128, 2}, 4096);
    });
    const auto kernels = nodes(report, "gemm_kernel", NodeKind::kernel);
    ASSERT_EQ(kernels.size(), 1u);
    const GraphNode& kernel = report.graph[kernels[0]];
    EXPECT_EQ(kernel.begin_ns, 20 * us);
    EXPECT_EQ(kernel.duration_ns, 40 * us);
    EXPECT_EQ(report.graph.name_of(kernel.parent), "attention");
    EXPECT_TRUE(report.graph[kernel.parent].container);
    const LaunchShape& shape = *report.graph.launch_of(kernels[0]);
    EXPECT_EQ(shape.code_hash, 77u);
    EXPECT_EQ(shape.grid[2], 2u);
    EXPECT_EQ(shape.block[1], 2u);
    EXPECT_EQ(shape.shared_bytes, 4096u);
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    ASSERT_EQ(report.slowest.size(), 1u);
    EXPECT_EQ(report.slowest[0].node, kernels[0]);
}

TEST(PathNodes, several_kernels_of_one_brick_share_a_time_that_nobody_divides) {
    Tape source;
    const PathReport report = step_with(source, [&] {
        source.kernel(host, gemm, 30 * us);
        source.kernel(host, rope, 40 * us);
    });
    EXPECT_EQ(report.analysis.length_ns, 100 * us) << "neither lost nor counted twice";
    EXPECT_TRUE(report.slowest.empty()) << "a time that is not known is not the slowest";
    for (const char* name : {"gemm_kernel", "rope_kernel"}) {
        const auto kernels = nodes(report, name, NodeKind::kernel);
        ASSERT_EQ(kernels.size(), 1u);
        EXPECT_FALSE(report.graph[kernels[0]].timed);
        EXPECT_EQ(report.graph.name_of(report.graph[kernels[0]].parent), "attention");
    }
    for (const PathRow& row : report.rows) {
        EXPECT_NE(row.kind, NodeKind::kernel);
    }
    ASSERT_EQ(report.kernels.size(), 1u);
    EXPECT_EQ(report.kernels[0].name, "attention");
    EXPECT_EQ(*report.kernels[0].kernels.value, 2);
    EXPECT_EQ(report.launches, 2u);
    EXPECT_DOUBLE_EQ(*report.launches_per_token.value, 1);
}

TEST(PathNodes, T10_a_kernel_that_was_timed_lies_in_its_brick_and_the_rest_of_the_brick_stays) {
    Tape source;
    const PathReport report = step_with(source, [&] { source.kernel(host, gemm, 30 * us, 50 * us); });
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    const auto kernels = nodes(report, "gemm_kernel", NodeKind::kernel);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(report.graph[kernels[0]].duration_ns, 20 * us);
    EXPECT_EQ(report.graph.name_of(report.graph[kernels[0]].parent), "attention");
}

TEST(PathNodes, a_kernel_launched_for_a_device_scope_lies_in_it_on_the_device) {
    Tape source;
    prepare(source);
    add_queue(source, queue, "stream");
    source.step_begin(host, 1, Phase::decode, 0);
    source.layer_begin(host, 5, 5 * us);
    source.kernel(host, gemm, 12 * us);
    source.submit_scope(host, Brick::attention, queue, 10 * us, 15 * us);
    source.layer_end(host, 5, 5 * us, 30 * us);
    source.submit_scope(host, Brick::lm_head, queue, 40 * us, 45 * us);
    source.device_scope(queue, Brick::attention, 1, 5, 20 * us, 120 * us);
    source.device_scope(queue, Brick::lm_head, 1, -1, 120 * us, 320 * us);
    source.step_end(host, Phase::decode, 0, 350 * us);
    const PathReport report = path_of(source);
    const auto kernels = nodes(report, "gemm_kernel", NodeKind::kernel);
    ASSERT_EQ(kernels.size(), 1u);
    const GraphNode& kernel = report.graph[kernels[0]];
    EXPECT_TRUE(kernel.device);
    EXPECT_EQ(kernel.duration_ns, 100 * us);
    EXPECT_EQ(kernel.layer, 5u);
    EXPECT_NE(std::find(report.analysis.path.begin(), report.analysis.path.end(), kernels[0]),
              report.analysis.path.end());
    EXPECT_EQ(report.launches, 2u) << "one kernel, and a scope in which none was recorded";
    ASSERT_EQ(report.kernels.size(), 2u);
    EXPECT_EQ(report.kernels[0].name, "lm_head");
    EXPECT_EQ(report.kernels[0].kernels.reason, "nobody recorded the kernels of this scope");
    EXPECT_EQ(report.kernels[1].name, "attention");
    EXPECT_EQ(report.kernels[1].layer, 5u);
    EXPECT_EQ(report.kernels[1].device_scopes, 1u);
    EXPECT_EQ(*report.kernels[1].kernels.value, 1);
}

TEST(PathNodes, a_launch_timed_on_the_host_leaves_the_device_waiting_for_its_submission) {
    Tape source;
    prepare(source);
    add_queue(source, queue, "stream");
    source.step_begin(host, 1, Phase::decode, 0);
    source.kernel(host, gemm, 11 * us, 14 * us);
    source.submit_scope(host, Brick::attention, queue, 10 * us, 15 * us);
    source.device_scope(queue, Brick::attention, 1, -1, 20 * us, 320 * us);
    source.step_end(host, Phase::decode, 0, 350 * us);
    const PathReport report = path_of(source);
    const auto bricks = nodes(report, "attention", NodeKind::brick);
    const auto submissions = nodes(report, "submit attention", NodeKind::task);
    ASSERT_EQ(bricks.size(), 1u);
    ASSERT_EQ(submissions.size(), 1u);
    EXPECT_TRUE(depends(report.graph, submissions[0], bricks[0]));
    EXPECT_FALSE(report.graph[submissions[0]].container);
    EXPECT_EQ(report.launches, 1u);
}

/// Two queues side by side: 100 us on the one, 300 us on the other.
PathReport two_queues(bool joined) {
    Tape source;
    prepare(source);
    add_queue(source, queue, "first");
    add_queue(source, other_queue, "second");
    source.step_begin(host, 1, Phase::decode, 0);
    const NodeKey from = source.kernel(host, gemm, 11 * us);
    source.submit_scope(host, Brick::attention, queue, 10 * us, 12 * us);
    const NodeKey to = source.kernel(host, rope, 14 * us);
    source.submit_scope(host, Brick::lm_head, other_queue, 13 * us, 15 * us);
    if (joined) {
        source.depend(host, from, to);
    }
    source.device_scope(queue, Brick::attention, 1, -1, 20 * us, 120 * us);
    source.device_scope(other_queue, Brick::lm_head, 1, -1, 120 * us, 420 * us);
    source.step_end(host, Phase::decode, 0, 450 * us);
    return path_of(source);
}

TEST(PathNodes, a_dependency_as_added_puts_the_earlier_kernel_on_the_path) {
    const PathReport apart = two_queues(false), joined = two_queues(true);
    const NodeId from = nodes(joined, "gemm_kernel", NodeKind::kernel).at(0);
    const NodeId to = nodes(joined, "rope_kernel", NodeKind::kernel).at(0);
    EXPECT_TRUE(depends(joined.graph, from, to));
    EXPECT_EQ(joined.analysis.length_ns - apart.analysis.length_ns, 97 * us)
        << "100 us of the earlier kernel, less the 3 us in which the later one was submitted";
    EXPECT_GT(apart.analysis.slack_ns[nodes(apart, "gemm_kernel", NodeKind::kernel).at(0)], 0);
    EXPECT_EQ(joined.analysis.slack_ns[from], 0);
}

TEST(PathNodes, T10_dependencies_that_go_round_are_an_error_that_names_them) {
    Tape source;
    prepare(source);
    source.step_begin(host, 1, Phase::decode, 0);
    const NodeKey first = source.kernel(host, gemm, 10 * us, 20 * us);
    const NodeKey second = source.kernel(host, rope, 30 * us, 40 * us);
    source.depend(host, second, first);
    source.step_end(host, Phase::decode, 0, 100 * us);
    const auto report = build_path(source, {});
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find("gemm_kernel"), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find("rope_kernel"), std::string::npos) << report.error().message;
}

TEST(PathNodes, a_dependency_of_what_the_step_does_not_hold_is_told) {
    Tape source;
    const PathReport report = step_with(source, [&] {
        const NodeKey here = source.kernel(host, gemm, 30 * us);
        source.depend(host, {99, 3}, here);
    });
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0], "1 dependencies lead out of this step, or to what was lost.");
}

TEST(PathNodes, a_task_has_the_time_of_its_polls_beside_the_brick_it_ran_in) {
    Tape source;
    const PathReport report =
        step_with(source, [&] { source.task(host, poller, 7, 6, static_cast<std::uint64_t>(30 * us), 50 * us); });
    const auto tasks = nodes(report, "poller", NodeKind::task);
    ASSERT_EQ(tasks.size(), 1u);
    EXPECT_EQ(report.graph[tasks[0]].duration_ns, 30 * us);
    EXPECT_EQ(report.graph.task_of(tasks[0])->polls, 7u);
    EXPECT_EQ(report.graph.task_of(tasks[0])->yields, 6u);
    EXPECT_EQ(report.analysis.length_ns, 100 * us) << "it ran in the time of the brick, not after it";
}

struct Copies {
    std::uint64_t back_from = 20, back_to = 10;
};

PathReport copies(Copies there_and_back) {
    Tape source;
    return step_with(source, [&] {
        source.transfer(host, 10, 20, 4096, TransferDirection::host_to_device, 22 * us, 25 * us);
        source.transfer(host, there_and_back.back_from, there_and_back.back_to, 4096, TransferDirection::device_to_host,
                        30 * us, 35 * us);
    });
}

TEST(PathNodes, T11_ping_pong_goes_by_buffers_and_a_clean_twin_with_the_same_sizes_names_none) {
    const PathReport planted = copies({});
    ASSERT_EQ(planted.ping_pong.size(), 1u);
    EXPECT_EQ(planted.graph.name_of(planted.ping_pong[0].there), "copy_h2d");
    EXPECT_EQ(planted.graph.name_of(planted.ping_pong[0].back), "copy_d2h");
    EXPECT_EQ(planted.ping_pong[0].between_ns, 5 * us);
    EXPECT_TRUE(copies({21, 10}).ping_pong.empty()) << "another buffer came back";
    EXPECT_EQ(planted.analysis.length_ns, 100 * us);
}

TEST(PathNodes, a_transfer_alone_in_a_copy_brick_is_one_transfer) {
    Tape source;
    prepare(source);
    source.step_begin(host, 1, Phase::decode, 0);
    source.transfer(host, 10, 20, 4096, TransferDirection::host_to_device, 25 * us);
    source.scope(host, Brick::copy_h2d, 20 * us, 30 * us);
    source.step_end(host, Phase::decode, 0, 100 * us);
    const PathReport report = path_of(source);
    const auto transfers = nodes(report, "copy_h2d", NodeKind::transfer);
    ASSERT_EQ(transfers.size(), 1u);
    EXPECT_EQ(report.graph.transfer_of(transfers[0])->source, 10u);
    EXPECT_EQ(report.graph[transfers[0]].duration_ns, 10 * us);
}

/// Eight layers of one gemm each; kernel times by layer.
PathReport layered(std::int64_t slow_layer) {
    Tape source;
    prepare(source);
    source.kernels_ = {{77, "gemm_kernel", "kernels/gemm.cu", "", 0, 10, 1}, {78, "other", "x.cu", "", 0, 10, 2}};
    source.step_begin(host, 1, Phase::decode, 0);
    source.work(host, gemm, WorkQuantity::bytes, 1e6);
    source.work(host, gemm, WorkQuantity::flops, 2e6);
    std::int64_t now = 0;
    for (std::uint16_t layer = 0; layer < 8; ++layer) {
        const std::int64_t begin = now;
        source.layer_begin(host, layer, begin);
        const std::int64_t end = now + (layer == slow_layer ? 50 : 10) * us;
        source.kernel(host, gemm, now, end, 77, {}, {}, 0, flag_work);
        source.scope(host, Brick::qkv_projection, begin, end);
        source.layer_end(host, layer, begin, end);
        now = end;
    }
    source.step_end(host, Phase::decode, 0, now);
    return path_of(source);
}

TEST(PathNodes, a_slow_kernel_is_the_first_of_the_slowest_with_its_layer_and_file) {
    const PathReport planted = layered(5), clean = layered(-1);
    ASSERT_EQ(planted.slowest.size(), 8u);
    const GraphNode& first = planted.graph[planted.slowest[0].node];
    EXPECT_EQ(first.layer, 5u);
    EXPECT_EQ(first.duration_ns, 50 * us);
    EXPECT_EQ(planted.slowest[0].file, "kernels/gemm.cu");
    EXPECT_EQ(planted.graph[planted.slowest[1].node].duration_ns, 10 * us);
    EXPECT_EQ(planted.slowest[0].roofline_share.reason, no_peaks);
    for (const SlowKernel& kernel : clean.slowest) {
        EXPECT_EQ(clean.graph[kernel.node].duration_ns, 10 * us) << "no kernel of the clean twin stands out";
    }
    ASSERT_EQ(planted.kernels.size(), 8u);
    for (const KernelRow& row : planted.kernels) {
        EXPECT_EQ(*row.kernels.value, 1);
    }
    EXPECT_EQ(planted.analysis.length_ns, 120 * us);
}

/// Six layers of three bricks; one may lack one, or be of another kind.
std::vector<std::string> notes_of_layers(int without_rope, int of_another_kind) {
    Tape source;
    prepare(source);
    source.step_begin(host, 1, Phase::decode, 0);
    std::int64_t now = 0;
    for (std::uint16_t layer = 0; layer < 6; ++layer) {
        const std::int64_t begin = now;
        source.layer_begin(host, layer, begin);
        for (const Brick brick : {Brick::rms_norm, Brick::rope_embedding, Brick::attention}) {
            const bool left_out = brick == Brick::rope_embedding && layer == without_rope;
            const bool other = brick == Brick::attention && layer == of_another_kind;
            if (!left_out) {
                source.scope(host, other ? Brick::linear_attention : brick, now, now + 10 * us);
            }
            now += 10 * us;
        }
        source.layer_end(host, layer, begin, now);
    }
    source.step_end(host, Phase::decode, 0, now);
    return path_of(source).notes;
}

TEST(PathNodes, a_missing_brick_is_named_with_its_layer_and_the_clean_twin_names_none) {
    EXPECT_EQ(notes_of_layers(4, -1), std::vector<std::string>{"Layer 4 has no rope_embedding, unlike 5 of 6 layers."});
    EXPECT_TRUE(notes_of_layers(-1, -1).empty());
    EXPECT_TRUE(notes_of_layers(-1, 2).empty()) << "a layer of another kind misses nothing";
    EXPECT_TRUE(notes_of_layers(2, 2).empty());
}

TEST(PathNodes, kernels_of_a_layer_without_scopes_leave_its_time_to_nobody) {
    Tape source;
    prepare(source);
    source.step_begin(host, 1, Phase::decode, 0);
    source.layer_begin(host, 0, 0);
    source.kernel(host, gemm, 10 * us);
    source.layer_end(host, 0, 0, 100 * us);
    source.step_end(host, Phase::decode, 0, 100 * us);
    const PathReport report = path_of(source);
    EXPECT_EQ(report.analysis.length_ns, 100 * us);
    EXPECT_EQ(nodes(report, "unattributed", NodeKind::task).size(), 1u);
    ASSERT_EQ(report.kernels.size(), 1u);
    EXPECT_EQ(report.kernels[0].name, "outside any brick");
    EXPECT_EQ(report.kernels[0].layer, 0u);
}

TEST(PathNodes, a_kernel_that_lost_its_shape_is_told_and_has_none) {
    Tape source;
    const PathReport report = step_with(source, [&] {
        source.raw(host, {Tape::at(30 * us), pack(RecordKind::kernel, gemm.id) | flag_moment});
    });
    const auto kernels = nodes(report, "gemm_kernel", NodeKind::kernel);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(report.graph.launch_of(kernels[0]), nullptr);
    ASSERT_FALSE(report.notes.empty());
    EXPECT_NE(report.notes[0].find("lost their shapes"), std::string::npos);
}

} // namespace
} // namespace plumb::analysis::path_test

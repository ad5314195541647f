// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

TEST(SlowestKernels, T11_a_brick_or_a_transfer_is_never_a_kernel_however_slow) {
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("x");
    node.kind = NodeKind::brick;
    node.duration_ns = 1'000'000;
    const NodeId brick = builder.add(node);
    builder.add_transfer(node, {1, 2, 3, TransferDirection::host_to_device});
    node.parent = brick;
    std::vector<NodeId> kernels;
    for (const std::int64_t duration : {5, 90, 20, 90, 1}) {
        node.duration_ns = duration;
        kernels.push_back(builder.add_kernel(node, {{2, 3, 4}, {32, 8, 1}, 1024}));
    }
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(graph->slowest_kernels(3), (std::vector<NodeId>{kernels[1], kernels[3], kernels[2]}));
    EXPECT_EQ(graph->slowest_kernels(100).size(), 5u);
    EXPECT_TRUE(graph->slowest_kernels(0).empty());
    ASSERT_NE(graph->launch_of(kernels[0]), nullptr);
    EXPECT_EQ(graph->launch_of(kernels[0])->block[1], 8u);
    EXPECT_EQ(graph->launch_of(brick), nullptr);
    EXPECT_EQ(graph->transfer_of(kernels[0]), nullptr);
}

} // namespace
} // namespace plumb

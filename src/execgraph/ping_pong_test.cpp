// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

constexpr auto up = TransferDirection::host_to_device;
constexpr auto down = TransferDirection::device_to_host;

struct Transfers {
    ExecGraphBuilder builder;

    NodeId add(std::int64_t begin, TransferShape shape, std::int64_t duration = 10) {
        GraphNode node;
        node.name = builder.name("copy");
        node.begin_ns = begin;
        node.duration_ns = duration;
        return builder.add_transfer(node, shape);
    }
    std::vector<PingPong> found(std::int64_t window) {
        const auto graph = builder.build();
        EXPECT_TRUE(graph.ok());
        return graph->ping_pong(window);
    }
};

TEST(PingPong, T11_only_what_comes_back_within_the_window_counts) {
    for (const std::int64_t window : {89, 90}) {
        Transfers t;
        const NodeId there = t.add(0, {1, 2, 4096, up});
        const NodeId back = t.add(100, {2, 1, 4096, down});
        const auto found = t.found(window);
        ASSERT_EQ(found.size(), window == 90 ? 1u : 0u);
        if (window == 90) {
            EXPECT_EQ(found[0].there, there);
            EXPECT_EQ(found[0].back, back);
            EXPECT_EQ(found[0].between_ns, 90);
        }
    }
}

TEST(PingPong, a_transfer_too_short_for_the_clock_comes_before_the_one_that_begins_with_it) {
    Transfers t;
    const NodeId back = t.add(100, {2, 1, 4096, down});
    const NodeId there = t.add(100, {1, 2, 4096, up}, 0);
    const auto found = t.found(1000);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].there, there);
    EXPECT_EQ(found[0].back, back);
    EXPECT_EQ(found[0].between_ns, 0);
}

TEST(PingPong, buffers_decide_where_both_are_known_and_size_and_direction_where_they_are_not) {
    Transfers other;
    other.add(0, {1, 2, 4096, up});
    other.add(20, {2, 3, 4096, down}); // to another buffer
    EXPECT_TRUE(other.found(1000).empty());
    Transfers unknown;
    unknown.add(0, {0, 0, 4096, down});
    unknown.add(20, {0, 0, 4096, down});
    unknown.add(40, {0, 0, 4097, up});
    unknown.add(60, {0, 0, 4096, up});
    unknown.add(80, {0, 0, 0, down}); // nothing known
    unknown.add(100, {0, 0, 0, up});
    const auto found = unknown.found(1000);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].there, 1u) << "the nearest one";
    EXPECT_EQ(found[0].back, 3u);
}

TEST(PingPong, T11_a_hundred_thousand_transfers_that_never_come_back_in_any_order_are_none) {
    Transfers t;
    for (std::uint64_t i = 100'000; i > 0; --i) {
        t.add(static_cast<std::int64_t>(20 * i), {2 * i, 2 * i + 1, 1, up});
    }
    t.add(-100, {0, 0, 1, up});
    const NodeId back = t.add(-50, {0, 0, 1, down});
    const auto found = t.found(1000);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].back, back);
}

} // namespace
} // namespace plumb

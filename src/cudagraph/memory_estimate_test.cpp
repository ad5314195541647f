// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/memory_estimate.hpp"

#include <gtest/gtest.h>

namespace plumb::cudagraph {
namespace {

TEST(MemoryEstimate, grows_with_the_nodes_and_is_a_belief_at_first) {
    const MemoryEstimate estimate;
    EXPECT_FALSE(estimate.fitted());
    EXPECT_LT(estimate.bytes({{"kernel", 10}}), estimate.bytes({{"kernel", 100}}));
    EXPECT_LT(estimate.bytes({{"empty", 100}}), estimate.bytes({{"kernel", 100}}));
}

TEST(MemoryEstimate, is_fitted_over_many_instantiations_though_memory_goes_in_large_pieces) {
    MemoryEstimate estimate;
    const NodeCounts nodes = {{"kernel", 300}};
    const std::uint64_t before = estimate.bytes(nodes);
    constexpr std::uint64_t piece = 2 << 20;
    constexpr std::uint64_t every = 8; // one piece serves so many: 256 KiB a graph
    std::uint64_t free_bytes = std::uint64_t{8} << 30;
    for (std::uint64_t i = 0; i < 64; ++i) {
        const std::uint64_t after = free_bytes - (i % every == 0 ? piece : 0);
        estimate.watched(nodes, free_bytes, after);
        free_bytes = after;
        if (i + 1 < MemoryEstimate::watched_before_fit) {
            EXPECT_EQ(estimate.bytes(nodes), before) << "not before there are 32";
        }
    }
    EXPECT_TRUE(estimate.fitted());
    EXPECT_NEAR(static_cast<double>(estimate.bytes(nodes)), static_cast<double>(piece / every), 1);
}

TEST(MemoryEstimate, what_others_allocate_meanwhile_cannot_drive_it_beyond_reason) {
    MemoryEstimate estimate;
    const NodeCounts nodes = {{"kernel", 300}};
    const std::uint64_t before = estimate.bytes(nodes);
    for (int i = 0; i < 40; ++i) {
        estimate.watched(nodes, std::uint64_t{8} << 30, 0);
    }
    EXPECT_LE(estimate.bytes(nodes), before * 16);
    MemoryEstimate freed;
    for (int i = 0; i < 40; ++i) {
        freed.watched(nodes, 0, std::uint64_t{8} << 30);
    }
    EXPECT_FALSE(freed.fitted());
    EXPECT_EQ(freed.bytes(nodes), before);
}

} // namespace
} // namespace plumb::cudagraph

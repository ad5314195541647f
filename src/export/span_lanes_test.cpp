// SPDX-License-Identifier: Apache-2.0
#include "export/span_lanes.hpp"

#include <gtest/gtest.h>
#include <random>

namespace {

using plumb::exporting::SpanLanes;

struct Placed {
    std::int64_t begin, end;
    std::size_t lane;
};

/// Pairs that lie in one lane and neither are disjoint nor nested.
std::size_t conflicts(const std::vector<Placed>& all) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const Placed &a = all[i], &b = all[j];
            const bool disjoint = a.end <= b.begin || b.end <= a.begin;
            const bool nested = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
            found += a.lane == b.lane && !disjoint && !nested;
        }
    }
    return found;
}

TEST(SpanLanes, spans_in_random_order_never_cross_in_a_lane) {
    std::mt19937 random(7);
    SpanLanes lanes;
    std::vector<Placed> placed;
    for (int index = 0; index < 3000; ++index) {
        const auto begin = static_cast<std::int64_t>(random() % 100'000);
        const auto end = begin + static_cast<std::int64_t>(random() % 200);
        if (const auto lane = lanes.place(begin, end)) {
            placed.push_back({begin, end, *lane});
        }
    }
    EXPECT_GT(placed.size(), 2500U);
    EXPECT_EQ(conflicts(placed), 0U);
}

TEST(SpanLanes, disjoint_and_nested_spans_share_the_first_lane) {
    SpanLanes lanes;
    for (std::int64_t begin = 0; begin < 100'000; begin += 10) {
        EXPECT_EQ(lanes.place(begin + 2, begin + 5), 0U);
        EXPECT_EQ(lanes.place(begin, begin + 10), 0U);
    }
}

TEST(SpanLanes, lanes_are_bounded) {
    SpanLanes lanes;
    for (std::size_t index = 0; index < SpanLanes::max_lanes; ++index) {
        const auto begin = static_cast<std::int64_t>(index);
        EXPECT_EQ(lanes.place(begin, begin + 1000), index);
    }
    EXPECT_EQ(lanes.place(500, 5000), std::nullopt);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
#include "resolve/nesting.hpp"

#include <gtest/gtest.h>

namespace plumb::resolve {
namespace {

TEST(Nesting, F8_the_children_of_a_scope_are_those_that_ended_inside_it) {
    Nesting nesting;
    EXPECT_TRUE(nesting.close(0, 5).leaf); // before the parent
    EXPECT_TRUE(nesting.close(12, 3).leaf);
    const auto inner = nesting.close(11, 6); // holds 12..15
    EXPECT_FALSE(inner.leaf);
    EXPECT_EQ(inner.children, 3u);
    EXPECT_TRUE(nesting.close(20, 4).leaf);
    const auto outer = nesting.close(10, 20); // holds 11..17 and 20..24, not the grandchild
    EXPECT_FALSE(outer.leaf);
    EXPECT_EQ(outer.children, 10u);
    EXPECT_TRUE(nesting.close(40, 1).leaf);
}

TEST(Nesting, neighbours_that_share_a_tick_are_not_nested) {
    Nesting nesting;
    EXPECT_TRUE(nesting.close(0, 10).leaf);
    EXPECT_TRUE(nesting.close(10, 10).leaf);
    EXPECT_TRUE(nesting.close(20, 0).leaf); // no length, on the border
    EXPECT_TRUE(nesting.close(20, 5).leaf);
    const auto parent = nesting.close(0, 25);
    EXPECT_EQ(parent.children, 25u);
}

TEST(Nesting, a_child_that_fills_its_parent_is_a_child) {
    Nesting nesting;
    EXPECT_TRUE(nesting.close(5, 10).leaf);
    const auto parent = nesting.close(5, 10);
    EXPECT_FALSE(parent.leaf);
    EXPECT_EQ(parent.children, 10u);
}

TEST(Nesting, an_overlap_without_nesting_is_told) {
    Nesting nesting;
    EXPECT_FALSE(nesting.close(0, 10).overlaps);
    EXPECT_TRUE(nesting.close(5, 10).overlaps);
}

TEST(Nesting, a_parent_of_a_million_children_knows_their_sum) {
    Nesting nesting;
    for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
        EXPECT_TRUE(nesting.close(i * 10, 7).leaf);
    }
    const auto parent = nesting.close(10, 10'000'000);
    EXPECT_EQ(parent.children, 7'000'000u);
}

TEST(Nesting, where_records_are_missing_nothing_that_began_before_is_called_a_leaf) {
    Nesting nesting;
    nesting.close(0, 5);
    nesting.records_missing_until(30);
    EXPECT_FALSE(nesting.close(10, 20).leaf);
    EXPECT_FALSE(nesting.close(6, 30).leaf);
    EXPECT_TRUE(nesting.close(40, 5).leaf);
}

} // namespace
} // namespace plumb::resolve

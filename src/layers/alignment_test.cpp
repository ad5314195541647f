// SPDX-License-Identifier: Apache-2.0
#include "layers/alignment.hpp"

#include <gtest/gtest.h>

namespace plumb {
namespace {

RepeatUnit unit_of(std::initializer_list<std::uint32_t> names) {
    RepeatUnit unit;
    for (const std::uint32_t name : names) {
        unit.slots.push_back({name});
        unit.anchors.push_back(LayerAnchor::none);
    }
    return unit;
}

Alignment aligned(const std::vector<std::uint32_t>& symbols, const std::vector<RepeatUnit>& units) {
    return align(symbols, std::vector<LayerAnchor>(symbols.size(), LayerAnchor::none), units);
}

TEST(Alignment, whole_copies_cost_their_borders_alone) {
    const Alignment found = aligned({9, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 8}, {unit_of({1, 2, 3, 4, 5})});
    ASSERT_EQ(found.copies.size(), 2u);
    EXPECT_EQ(found.copies[0].begin, 1u);
    EXPECT_EQ(found.copies[1].end, 11u);
    EXPECT_EQ(found.copies[1].matched, 5u);
    const AlignmentCosts costs;
    EXPECT_EQ(found.cost, 2 * costs.outside + 2 * costs.border);
}

TEST(Alignment, a_missing_kernel_leaves_its_slot_empty) {
    const Alignment found = aligned({1, 2, 3, 4, 5, 1, 2, 4, 5, 1, 2, 3, 4, 5}, {unit_of({1, 2, 3, 4, 5})});
    ASSERT_EQ(found.copies.size(), 3u);
    EXPECT_EQ(found.copies[1].slots[2], std::nullopt);
    EXPECT_EQ(found.copies[1].slots[3], std::optional<std::size_t>(7));
}

TEST(Alignment, a_foreign_kernel_takes_no_slot) {
    const Alignment found = aligned({1, 2, 3, 4, 5, 1, 2, 7, 3, 4, 5, 1, 2, 3, 4, 5}, {unit_of({1, 2, 3, 4, 5})});
    ASSERT_EQ(found.copies.size(), 3u);
    EXPECT_EQ(found.copies[1].slots[2], std::optional<std::size_t>(8));
    EXPECT_EQ(found.copies[1].end, 11u);
}

TEST(Alignment, another_name_takes_the_slot_unless_it_is_another_anchor) {
    const std::vector<std::uint32_t> symbols = {1, 2, 3, 4, 5, 1, 2, 7, 4, 5};
    EXPECT_EQ(aligned(symbols, {unit_of({1, 2, 3, 4, 5})}).copies.at(1).slots[2], std::optional<std::size_t>(7));
    std::vector<LayerAnchor> anchors(symbols.size(), LayerAnchor::none);
    anchors[7] = LayerAnchor::norm;
    EXPECT_EQ(align(symbols, anchors, std::vector{unit_of({1, 2, 3, 4, 5})}).copies.at(1).slots[2], std::nullopt);
}

TEST(Alignment, two_units_take_turns_at_their_borders) {
    const Alignment found = aligned({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 6, 7, 8, 1, 2, 6, 7, 8},
                                    {unit_of({1, 2, 3, 4}), unit_of({1, 2, 6, 7, 8})});
    ASSERT_EQ(found.copies.size(), 4u);
    EXPECT_EQ(found.copies[1].unit, 0u);
    EXPECT_EQ(found.copies[2].unit, 1u);
    EXPECT_EQ(found.copies[2].matched, 5u);
}

TEST(Alignment, what_is_cut_in_the_middle_is_marked) {
    const Alignment found =
        aligned({5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, {unit_of({1, 2, 3, 4, 5, 6, 7, 8})});
    ASSERT_EQ(found.copies.size(), 3u);
    EXPECT_TRUE(found.copies[0].midway);
    EXPECT_FALSE(found.copies[1].midway);
}

TEST(Alignment, nothing_repeats_without_units) {
    EXPECT_TRUE(aligned({1, 2, 3}, {}).copies.empty());
    EXPECT_TRUE(aligned({}, {unit_of({1, 2, 3})}).copies.empty());
}

} // namespace
} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "layers/alignment.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

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

/// What the cheapest way costs, where none is left early.
std::int32_t cheapest(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                      std::span<const RepeatUnit> units) {
    const AlignmentCosts costs;
    constexpr std::int32_t never = 1'000'000;
    std::vector<std::vector<std::int32_t>> at; // before each slot
    for (const RepeatUnit& unit : units) {
        at.emplace_back(unit.slots.size(), never);
    }
    std::int32_t border = never, outside = 0;
    const auto settle = [&] {
        for (int round = 0; round < 3; ++round) {
            for (std::vector<std::int32_t>& unit : at) {
                unit[0] = std::min(unit[0], border);
                for (std::size_t slot = 0; slot < unit.size(); ++slot) {
                    unit[slot] = std::min(unit[slot], outside + costs.midway);
                    outside = std::min(outside, unit[slot] + costs.midway);
                    std::int32_t& next = slot + 1 < unit.size() ? unit[slot + 1] : border;
                    next = std::min(next, unit[slot] + costs.skip);
                }
            }
            outside = std::min(outside, border + costs.border);
            border = std::min(border, outside + costs.border);
        }
    };
    settle();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        border = never;
        for (std::size_t u = 0; u < units.size(); ++u) {
            std::vector<std::int32_t> next(at[u].size(), never);
            for (std::size_t slot = 0; slot < at[u].size(); ++slot) {
                const std::vector<std::uint32_t>& names = units[u].slots[slot];
                const LayerAnchor anchor = units[u].anchors[slot];
                const bool same = std::find(names.begin(), names.end(), symbols[i]) != names.end();
                const std::int32_t take = same                          ? 0
                                          : anchor != anchors[i]        ? costs.another_anchor
                                          : anchor == LayerAnchor::none ? costs.substitute
                                                                        : costs.same_anchor;
                next[slot] = std::min(next[slot], at[u][slot] + (slot == 0 ? costs.between : costs.insert));
                std::int32_t& after = slot + 1 < at[u].size() ? next[slot + 1] : border;
                after = std::min(after, at[u][slot] + take);
            }
            at[u] = next;
        }
        outside += costs.outside;
        settle();
    }
    return outside;
}

TEST(Alignment, no_way_that_is_left_early_would_have_been_cheaper) {
    std::mt19937 random(5);
    const auto below = [&random](std::size_t end) {
        return static_cast<std::uint32_t>(random() % end);
    };
    for (int trial = 0; trial < 300; ++trial) {
        const std::uint32_t names = 3 + below(9);
        const auto anchor_of = [names](std::uint32_t name) {
            return static_cast<LayerAnchor>(name < names && name % 3 == 0 ? name / 3 + 1 : 0);
        };
        std::vector<RepeatUnit> units(1 + below(3));
        for (RepeatUnit& unit : units) {
            for (std::uint32_t length = 3 + below(20); length > 0; --length) {
                const std::uint32_t name = below(names);
                unit.slots.push_back({name});
                unit.anchors.push_back(anchor_of(name));
            }
        }
        std::vector<std::uint32_t> symbols;
        const std::uint32_t rare = 2 + below(30);
        for (std::uint32_t parts = below(15); parts > 0; --parts) {
            const RepeatUnit& unit = units[below(units.size())];
            for (std::size_t slot = below(4) == 0 ? below(unit.slots.size()) : 0; slot < unit.slots.size(); ++slot) {
                if (below(rare) == 0) {
                    symbols.push_back(below(names + 2));
                }
                if (below(rare) != 0) {
                    symbols.push_back(unit.slots[slot][0]);
                }
            }
        }
        std::vector<LayerAnchor> anchors;
        for (const std::uint32_t symbol : symbols) {
            anchors.push_back(anchor_of(symbol));
        }
        ASSERT_EQ(align(symbols, anchors, units).cost, cheapest(symbols, anchors, units)) << trial;
    }
}

TEST(Alignment, nothing_repeats_without_units) {
    EXPECT_TRUE(aligned({1, 2, 3}, {}).copies.empty());
    EXPECT_TRUE(aligned({}, {unit_of({1, 2, 3})}).copies.empty());
}

} // namespace
} // namespace plumb

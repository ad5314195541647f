// SPDX-License-Identifier: Apache-2.0
#include "layers/repeats.hpp"

#include <gtest/gtest.h>

#include "layers/lags.hpp"

namespace plumb {
namespace {

/// Kernels as letters: their names, and what each is to a layer.
struct Letters {
    std::vector<std::uint32_t> symbols;
    std::vector<LayerAnchor> anchors;

    explicit Letters(std::string_view text) {
        for (const char letter : text) {
            symbols.push_back(static_cast<std::uint32_t>(letter));
            anchors.push_back(letter == 'A'   ? LayerAnchor::attention
                              : letter == 'n' ? LayerAnchor::norm
                              : letter == 'g' ? LayerAnchor::gemm
                              : letter == 'M' ? LayerAnchor::mlp
                                              : LayerAnchor::none);
        }
    }
};

std::string text_of(const RepeatUnit& unit) {
    std::string text;
    for (const auto& names : unit.slots) {
        text += static_cast<char>(names.front());
    }
    return text;
}

TEST(Repeats, the_lag_of_most_repeats_comes_first) {
    const Letters letters("xyz"
                          "abcdefg"
                          "abcdefg"
                          "abcdefg"
                          "abcdefg"
                          "w");
    EXPECT_EQ(likely_lags(letters.symbols).at(0), 7u);
}

TEST(Repeats, a_unit_begins_at_the_norm_before_attention) {
    const std::string layer = "ngxAgmgMd";
    const Letters letters("ee" + layer + layer + layer + layer + "nl");
    const Repeats found = find_repeats(letters.symbols, letters.anchors);
    ASSERT_EQ(found.units.size(), 1u);
    EXPECT_EQ(text_of(found.units[0]), layer);
    ASSERT_EQ(found.alignment.copies.size(), 4u);
    EXPECT_EQ(found.alignment.copies[0].begin, 2u);
}

TEST(Repeats, layers_of_another_kind_are_a_unit_of_their_own) {
    const std::string dense = "ngxAgmgMd", experts = "ngxAgmgrstuvMwM";
    std::string text = "ee" + dense + dense + dense;
    for (int i = 0; i < 8; ++i) {
        text += experts;
    }
    const Letters letters(text + "l");
    const Repeats found = find_repeats(letters.symbols, letters.anchors);
    ASSERT_EQ(found.units.size(), 2u);
    EXPECT_EQ(text_of(found.units[0]), experts);
    EXPECT_EQ(text_of(found.units[1]), dense);
    EXPECT_EQ(found.alignment.copies.size(), 11u);
}

TEST(Repeats, a_slot_may_have_two_names) {
    std::string text = "ee";
    for (int i = 0; i < 6; ++i) {
        text += "ngxAgmgMd";
        text += "ngyAgmgMd";
    }
    const Letters letters(text + "l");
    const Repeats found = find_repeats(letters.symbols, letters.anchors);
    ASSERT_EQ(found.units.size(), 1u);
    EXPECT_EQ(found.units[0].slots.size(), 9u);
    EXPECT_EQ(found.units[0].slots[2].size(), 2u);
}

TEST(Repeats, a_long_sequence_is_looked_at_in_parts) {
    const std::string dense = "ngxAgmgMd", experts = "ngxAgmgrstuvMwM";
    std::string text = "ee" + dense + dense + dense;
    for (int i = 0; i < 20'000; ++i) {
        text += i % 7 == 3 ? "ngAgmgrstuvMwM" : experts;
    }
    const Letters letters(text + "l");
    const Repeats found = find_repeats(letters.symbols, letters.anchors);
    ASSERT_EQ(found.units.size(), 2u);
    ASSERT_EQ(found.alignment.copies.size(), 20'003u);
    std::size_t begin = 2;
    for (const UnitCopy& copy : found.alignment.copies) {
        ASSERT_EQ(copy.begin, begin);
        ASSERT_FALSE(copy.midway);
        begin = copy.end;
    }
}

TEST(Repeats, nothing_is_found_once_it_is_to_stop) {
    const std::atomic<bool> stop = true;
    const Letters letters("ngxAgmgMdngxAgmgMdngxAgmgMdngxAgmgMd");
    EXPECT_TRUE(find_repeats(letters.symbols, letters.anchors, &stop).alignment.copies.empty());
}

TEST(Repeats, what_does_not_repeat_has_no_units) {
    const Letters letters("abcdefghijklmnopqrstuvw");
    EXPECT_TRUE(find_repeats(letters.symbols, letters.anchors).units.empty());
    EXPECT_TRUE(find_repeats({}, {}).units.empty());
}

TEST(Repeats, two_attentions_before_an_mlp_begin_one_layer) {
    const auto starts = [](std::string_view text) {
        return layer_starts(Letters(text).anchors);
    };
    EXPECT_EQ(starts("ngAgngMg"), (std::vector<std::size_t>{0}));
    EXPECT_EQ(starts("gMgngAgn"), (std::vector<std::size_t>{3}));
    EXPECT_EQ(starts("ngAgngAgngMgngMg"), (std::vector<std::size_t>{0}));
    EXPECT_EQ(starts("ngAgngMgngAgngMg"), (std::vector<std::size_t>{0, 8}));
    EXPECT_EQ(starts("ngAgngxg"), (std::vector<std::size_t>{0})); // no MLP is known: over a GEMM to a norm
}

} // namespace
} // namespace plumb

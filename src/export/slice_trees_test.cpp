// SPDX-License-Identifier: Apache-2.0
#include "export/slice_trees.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace plumb::exporting {
namespace {

struct Piece {
    std::int64_t begin_ns = 0, end_ns = 0;
    char name = 'a';
};

/// "0<a b> …": by lane, begins and ends as they are given.
std::string given(SliceTrees<Piece>& trees) {
    std::string text;
    trees.flush(
        [&](std::size_t lane, const Piece& piece, const Piece* parent) {
            text += std::to_string(lane) + "+" + piece.name +
                    (parent != nullptr ? std::string("in") + parent->name : "") + " ";
        },
        [&](std::size_t lane, const Piece& piece) { text += std::to_string(lane) + "-" + piece.name + " "; });
    return text;
}

TEST(SliceTrees, children_that_come_first_are_given_inside_their_parents) {
    SliceTrees<Piece> trees;
    trees.add({10, 20, 'a'});
    trees.add({20, 30, 'b'});
    trees.add({10, 30, 'c'}); // begins and ends with them
    trees.add({30, 40, 'd'});
    trees.add({5, 50, 'e'});
    EXPECT_EQ(given(trees), "0+e 0+cine 0+ainc 0-a 0+binc 0-b 0-c 0+dine 0-d 0-e ");
}

TEST(SliceTrees, F4_what_overlaps_without_nesting_has_a_lane_of_its_own) {
    SliceTrees<Piece> trees;
    trees.add({0, 20, 'a'});
    trees.add({10, 30, 'b'});
    trees.add({40, 50, 'c'});
    EXPECT_EQ(given(trees), "0+a 0-a 0+c 0-c 1+b 1-b ");
}

TEST(SliceTrees, what_began_before_others_that_were_given_has_a_lane_of_its_own) {
    SliceTrees<Piece> trees;
    trees.add({10, 20, 'a'});
    EXPECT_EQ(given(trees), "0+a 0-a ");
    trees.add({20, 30, 'b'});
    trees.add({0, 40, 'c'});
    EXPECT_EQ(given(trees), "0+b 0-b 1+c 1-c ");
    trees.add({40, 50, 'd'});
    EXPECT_EQ(given(trees), "0+d 0-d ");
}

TEST(SliceTrees, a_slice_of_no_length_before_another_is_its_neighbour) {
    SliceTrees<Piece> trees;
    trees.add({5, 5, 'a'});
    trees.add({5, 9, 'b'});
    EXPECT_EQ(given(trees), "0+a 0-a 0+b 0-b ");
}

TEST(SliceTrees, in_further_lanes_too_parents_are_around_their_children) {
    SliceTrees<Piece> trees;
    trees.add({0, 20, 'a'});
    trees.add({10, 30, 'b'});
    trees.add({10, 30, 'c'});
    trees.add({30, 35, 'd'});
    trees.add({10, 40, 'e'});
    EXPECT_EQ(given(trees), "0+a 0-a 0+d 0-d 1+e 1+cine 1+binc 1-b 1-c 1-e ");
}

TEST(SliceTrees, as_many_lanes_as_slices_overlap_are_enough_from_flush_to_flush) {
    constexpr std::int64_t at_once = SliceTrees<Piece>::max_lanes, all = at_once * 10;
    SliceTrees<Piece> trees;
    std::size_t lanes = 0, given = 0;
    const auto flush = [&] {
        trees.flush(
            [&](std::size_t lane, const Piece&, const Piece*) {
                lanes = std::max(lanes, lane + 1);
                ++given;
            },
            [](std::size_t, const Piece&) {});
    };
    for (std::int64_t i = 0; i < all; ++i) {
        trees.add({i, i + at_once});
        if (i % 9999 == 0) {
            flush();
        }
    }
    flush();
    EXPECT_EQ(trees.left_out(), 0U);
    EXPECT_EQ(given, static_cast<std::size_t>(all));
    EXPECT_EQ(lanes, static_cast<std::size_t>(at_once));
}

TEST(SliceTrees, any_slices_in_any_order_nest_in_their_lanes_and_none_is_lost) {
    std::mt19937 random(7); // NOLINT(cert-msc51-cpp): the same each time
    for (int round = 0; round < 200; ++round) {
        SliceTrees<Piece> trees;
        std::vector<std::vector<Piece>> open(SliceTrees<Piece>::max_lanes);
        std::vector<std::int64_t> now(open.size(), -1);
        std::size_t begun = 0, ended = 0, added = 0;
        for (int group = 0; group < 4; ++group) {
            for (std::size_t i = random() % 60; i > 0; --i, ++added) {
                const auto begin = static_cast<std::int64_t>(random() % 40 + static_cast<unsigned>(group) * 20);
                trees.add({begin, begin + static_cast<std::int64_t>(random() % 20), 'x'});
            }
            trees.flush(
                [&](std::size_t lane, const Piece& piece, const Piece* parent) {
                    ASSERT_LE(now[lane], piece.begin_ns);
                    ASSERT_EQ(parent == nullptr, open[lane].empty());
                    ASSERT_TRUE(open[lane].empty() || piece.end_ns <= open[lane].back().end_ns);
                    now[lane] = piece.begin_ns;
                    open[lane].push_back(piece);
                    ++begun;
                },
                [&](std::size_t lane, const Piece& piece) {
                    ASSERT_LE(now[lane], piece.end_ns);
                    ASSERT_EQ(open[lane].back().end_ns, piece.end_ns);
                    now[lane] = piece.end_ns;
                    open[lane].pop_back();
                    ++ended;
                });
        }
        ASSERT_EQ(begun + trees.left_out(), added);
        ASSERT_EQ(ended, begun);
    }
}

} // namespace
} // namespace plumb::exporting

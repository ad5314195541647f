// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/node_map.hpp"

#include <gtest/gtest.h>

#include "cudagraph/stamp_plan.hpp"

namespace plumb::cudagraph {
namespace {

GraphShape shape_of(std::size_t nodes, std::vector<ShapeEdge> edges) {
    GraphShape shape;
    shape.nodes.resize(nodes);
    shape.edges = std::move(edges);
    return shape;
}

GraphShape chain(std::uint32_t nodes) {
    std::vector<ShapeEdge> edges;
    for (std::uint32_t i = 1; i < nodes; ++i) {
        edges.push_back(ShapeEdge{i - 1, i, true});
    }
    return shape_of(nodes, std::move(edges));
}

MappedScope scope(std::vector<std::uint32_t> begin, std::vector<std::uint32_t> end, std::uint32_t parent = no_index,
                  std::uint32_t stream = 0) {
    return MappedScope{parent, stream, std::move(begin), std::move(end)};
}

TEST(NodeMap, nodes_of_a_chain_belong_to_the_innermost_scope) {
    const NodeMap map = map_nodes(chain(6), {scope({}, {4}), scope({0}, {2}, 0), scope({2}, {3}, 0)});
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{0, 1, 1, 2, 0, no_index}));
    // head, behind 0, behind 2, behind 3, behind 4, tail
    ASSERT_EQ(map.places.size(), 6u);
    EXPECT_EQ(map.begin_place, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(map.end_place, (std::vector<std::uint32_t>{4, 2, 3}));
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_TRUE(map.places[i].in_line) << i;
        EXPECT_EQ(map.places[i].level, i);
    }
    EXPECT_FALSE(map.places[5].in_line);
    EXPECT_EQ(map.places[5].level, 5u);
}

TEST(NodeMap, a_stamp_is_a_leaf_where_branches_run_side_by_side) {
    // 0 -> 1 -> 3, 0 -> 2 -> 3, 3 -> 4: a scope around 1 alone, and one around 3.
    const GraphShape shape = shape_of(5, {{0, 1, true}, {0, 2, true}, {1, 3, true}, {2, 3, true}, {3, 4, true}});
    const NodeMap map = map_nodes(shape, {scope({0}, {1}), scope({1, 2}, {3})});
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{no_index, 0, no_index, 1, no_index}));
    EXPECT_TRUE(map.places[map.begin_place[0]].in_line); // all that follows waits for 0
    EXPECT_FALSE(map.places[map.end_place[0]].in_line);  // 2 runs beside
    EXPECT_TRUE(map.places[map.begin_place[1]].in_line); // 3 waits for both
    EXPECT_EQ(map.places[map.begin_place[1]].cut.size(), 2u);
    EXPECT_TRUE(map.places[map.end_place[1]].in_line);
}

TEST(NodeMap, an_edge_holds_one_stamp_though_it_leaps_over_a_node) {
    // a -> x -> b and a -> b: the last one lies behind {a} and behind {a, x}.
    const GraphShape shape = shape_of(4, {{0, 1, true}, {0, 2, true}, {1, 2, true}, {2, 3, true}});
    const NodeMap map = map_nodes(shape, {scope({0}, {0, 1}), scope({0, 1}, {2})});
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{no_index, 0, 1, no_index}));
    std::vector<int> stamps(shape.edges.size(), 0);
    for (const StampPlace& place : map.places) {
        for (const std::uint32_t edge : place.cut) {
            EXPECT_EQ(++stamps[edge], 1) << edge;
        }
    }
    EXPECT_TRUE(map.places[map.begin_place[0]].in_line);
    EXPECT_FALSE(map.places[map.end_place[0]].in_line);
    EXPECT_EQ(map.places[map.end_place[0]].after, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_TRUE(map.places[map.end_place[1]].in_line);
}

TEST(NodeMap, nothing_is_put_into_a_programmatic_edge) {
    const NodeMap map = map_nodes(shape_of(3, {{0, 1, false}, {1, 2, true}}), {scope({}, {0}), scope({0}, {1})});
    EXPECT_FALSE(map.places[map.end_place[0]].in_line);
    EXPECT_TRUE(map.places[map.end_place[1]].in_line);
}

TEST(NodeMap, work_forked_off_inside_a_scope_and_joined_again_is_its_own_unless_its_stream_says_otherwise) {
    // Stream 0: 0, fork, 1, join, 4. Stream 1: 2, 3; a scope of its own around 3.
    const GraphShape shape = shape_of(5, {{0, 1, true}, {0, 2, true}, {2, 3, true}, {1, 4, true}, {3, 4, true}});
    const NodeMap map = map_nodes(shape, {scope({}, {4}), scope({2}, {3}, no_index, 1)});
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{0, 0, 0, 1, 0}));
}

TEST(NodeMap, a_scope_that_ended_before_another_stream_went_on_keeps_its_nodes) {
    // Stream 0: scope around 0, then 1 in none; stream 1 forks behind 1 with a scope around 2, and is joined by 3.
    const GraphShape shape = shape_of(4, {{0, 1, true}, {1, 2, true}, {1, 3, true}, {2, 3, true}});
    const NodeMap map = map_nodes(shape, {scope({}, {0}), scope({1}, {2}, no_index, 1)});
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{0, no_index, 1, no_index}));
}

TEST(NodeMap, an_empty_scope_has_one_place) {
    const NodeMap map = map_nodes(chain(2), {scope({0}, {0}), scope({0}, {1})});
    EXPECT_EQ(map.begin_place[0], map.end_place[0]);
    EXPECT_EQ(map.owner, (std::vector<std::uint32_t>{no_index, 1}));
}

TEST(NodeMap, a_hundred_thousand_nodes_with_a_scope_each_take_linear_time) {
    constexpr std::uint32_t count = 100'000;
    std::vector<MappedScope> scopes{scope({}, {count - 1})};
    for (std::uint32_t i = 1; i < count; ++i) {
        scopes.push_back(scope({i - 1}, {i}, 0));
    }
    const NodeMap map = map_nodes(chain(count), scopes);
    EXPECT_EQ(map.places.size(), std::size_t{count} + 1);
    EXPECT_EQ(map.owner[count - 1], count - 1);
}

std::vector<ScopePlaces> layers_of(std::uint32_t layers, std::uint32_t each, NodeMap& map) {
    std::vector<MappedScope> scopes;
    std::vector<ScopePlaces> places;
    for (std::uint32_t i = 0; i < layers * each; ++i) {
        scopes.push_back(scope(i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i - 1}, {i}));
    }
    map = map_nodes(chain(layers * each), scopes);
    for (std::uint32_t i = 0; i < scopes.size(); ++i) {
        places.push_back(
            ScopePlaces{map.begin_place[i], map.end_place[i], no_index, static_cast<std::uint16_t>(i / each + 1)});
    }
    return places;
}

TEST(StampPlan, layers_take_turns_that_tile_the_replay) {
    NodeMap map;
    const std::vector<ScopePlaces> scopes = layers_of(12, 8, map);
    const StampPlans plans = plan_stamps(map.places, scopes, 40);
    ASSERT_GT(plans.turns.size(), 1u);
    std::vector<int> scope_turns(scopes.size(), 0);
    std::vector<int> part_turns(plans.parts, 0);
    for (const StampPlan& plan : plans.turns) {
        EXPECT_LE(plan.cost_units(), 40u);
        EXPECT_EQ(plan.stamps.front().copies, 2u);
        EXPECT_EQ(plan.stamps.back().copies, 2u);
        for (const std::uint32_t one : plan.scopes) {
            ++scope_turns[one];
        }
        for (const Part& part : plan.parts) {
            ++part_turns[part.number];
        }
    }
    EXPECT_EQ(scope_turns, std::vector<int>(scopes.size(), 1));
    EXPECT_EQ(part_turns, std::vector<int>(plans.parts, 1));
    EXPECT_EQ(plans.parts, 96u);
}

TEST(StampPlan, one_turn_holds_everything_that_fits) {
    NodeMap map;
    const std::vector<ScopePlaces> scopes = layers_of(2, 4, map);
    const StampPlans plans = plan_stamps(map.places, scopes, 512);
    ASSERT_EQ(plans.turns.size(), 1u);
    EXPECT_EQ(plans.turns[0].scopes.size(), 8u);
    EXPECT_EQ(plans.turns[0].stamps.size(), 9u);
    EXPECT_EQ(plans.turns[0].cost_units(), 12u); // three empty pairs
    EXPECT_EQ(plans.turns[0].parts.size(), 8u);
}

} // namespace
} // namespace plumb::cudagraph

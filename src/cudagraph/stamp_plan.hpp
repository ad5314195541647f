// SPDX-License-Identifier: Apache-2.0
// Which places of a graph one twin stamps. All of them where they fit; else layers take turns: contiguous ranges of
// places that meet at a place in line, so that together they tile the replay. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "cudagraph/node_map.hpp"

namespace plumb::cudagraph {

struct PlannedStamp {
    std::uint32_t place = 0;
    /// Two at the head, in the middle and at the tail: with nothing between them they read what one stamp costs there.
    std::uint32_t copies = 1;
    std::uint32_t anchor = no_index; // planned stamp, in line, that it is measured from; none for the head
};

/// Between two neighbouring places in line of the whole graph.
struct Part {
    std::uint32_t begin = 0; // planned stamps
    std::uint32_t end = 0;
    std::uint32_t number = 0; // among the parts of the graph
};

struct StampPlan {
    std::vector<PlannedStamp> stamps;  // in order of time; the first is the head, the last the tail
    std::vector<std::uint32_t> scopes; // whose begin and end are stamped, children before parents
    std::vector<Part> parts;
    [[nodiscard]] std::size_t cost_units() const; // stamps, copies counted
};

struct ScopePlaces {
    std::uint32_t begin = 0;
    std::uint32_t end = 0; // the same as begin: holds no node, is not measured
    std::uint32_t parent = no_index;
    std::uint16_t layer_plus_one = 0;
};

struct StampPlans {
    std::vector<StampPlan> turns;
    std::uint32_t parts = 0; // of the whole graph
};

/// `most` stamps in one turn, at least 16.
[[nodiscard]] StampPlans plan_stamps(const std::vector<StampPlace>& places, const std::vector<ScopePlaces>& scopes,
                                     std::size_t most);

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// A sequence laid along units that repeat: each symbol gets a slot of a unit, or stands outside. Missing, foreign and
// exchanged symbols cost something; the cheapest way is taken. O(symbols x slots) time, one byte of memory for each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layers/layers.hpp"

namespace plumb {

/// A unit as a cycle of slots. A slot may have several names, the usual one first, and has the anchor of most of its copies.
struct RepeatUnit {
    std::vector<std::vector<std::uint32_t>> slots;
    std::vector<LayerAnchor> anchors;

    friend bool operator==(const RepeatUnit&, const RepeatUnit&) = default;
};

/// What a change of the sequence costs; a symbol outside all units costs `outside`. To insert, or to put in for another kernel, costs
/// more than that: it is no way to go on from where none was.
struct AlignmentCosts {
    std::int32_t skip = 10, insert = 12, outside = 9;
    std::int32_t between = 13;        // to insert between two copies: a swap at the end of one is rather told within it
    std::int32_t substitute = 12;     // another name, where neither is an anchor
    std::int32_t same_anchor = 6;     // another name, but the same anchor
    std::int32_t another_anchor = 23; // never: to skip and to insert costs less
    std::int32_t border = 5;          // to begin or end the repeats with a whole unit
    std::int32_t midway = 30;         // to begin or end them within a unit
};

/// One pass through a unit. Positions are indices of the sequence.
struct UnitCopy {
    std::size_t unit = 0;
    std::size_t begin = 0, end = 0;
    std::vector<std::optional<std::size_t>> slots; // what stands in each slot; absent: missing
    std::size_t matched = 0;
    bool midway = false; // entered or left within the unit

    double share() const { return static_cast<double>(matched) / static_cast<double>(slots.size()); }
};

struct Alignment {
    std::vector<UnitCopy> copies; // in order
    std::int64_t cost = 0;
};

/// Symbols are small numbers, each with the anchor of its place. Once `stop` is set there are no copies.
[[nodiscard]] Alignment align(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                              std::span<const RepeatUnit> units, const std::atomic<bool>* stop = nullptr);

} // namespace plumb

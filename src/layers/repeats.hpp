// SPDX-License-Identifier: Apache-2.0
// The units that repeat in a sequence, without knowing what they are: distances that many symbols agree on, the stretch that
// repeats best at each, and what most of its copies have in each slot.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/alignment.hpp"

namespace plumb {

struct Repeats {
    std::vector<RepeatUnit> units;
    Alignment alignment;
};

/// Few units that explain the sequence, the one that explains most first. Symbols are small numbers, with an anchor each. A unit
/// begins where a layer does: at the norm before attention, or where its repeats begin if no anchor is known. Says nothing once
/// `stop` is set.
[[nodiscard]] Repeats find_repeats(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                                   const std::atomic<bool>* stop = nullptr);

/// The slots at which a layer begins: one for each attention of the unit that is not followed by another before an MLP.
[[nodiscard]] std::vector<std::size_t> layer_starts(std::span<const LayerAnchor> slots);

} // namespace plumb

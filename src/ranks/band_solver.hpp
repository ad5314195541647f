// SPDX-License-Identifier: Apache-2.0
// The bands of all clocks against one of them, by rounds: what a round learns of one clock bounds the others. A band is never narrower
// than what all joints together allow; where every clock meets the root's in many joints it is no wider either (the tests show it).
// Pure; no thread rule.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/clock_band.hpp"
#include "ranks/seen_joints.hpp"

namespace plumb::ranks {

/// Which clocks take part; what the others say is not looked at.
using ClockSet = std::vector<bool>;

struct SolvedBands {
    std::vector<ClockBand> bands; // of each domain; open where it takes no part
    std::vector<std::uint32_t>
        contradicting;   // whose band came out empty: no round follows, and unless `direct` `bands` are from before
    bool direct = false; // they contradict the root's clock, in the first round
    double miss_ns = 0;  // the most by which bounds of one of them miss each other, at least
};

/// REQUIRES: `root` takes part.
[[nodiscard]] SolvedBands solve_bands(const SeenJoints& joints, std::uint32_t root, const ClockSet& among);

} // namespace plumb::ranks

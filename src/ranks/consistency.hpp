// SPDX-License-Identifier: Apache-2.0
// Whether all clocks can be lines at once, and which ones stand in the way where they cannot: one against the first clock, two against each
// other, or a circle of several of which any fewer would fit. Bands are of the clocks that are left. Pure; no thread rule.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/band_solver.hpp"
#include "ranks/seen_joints.hpp"

namespace plumb::ranks {

struct Contradiction {
    std::vector<std::uint32_t> domains; // that are not judged because of it; ascending
    double miss_ns = 0;                 // bounds miss each other by so much, at least
    enum class Cause : std::uint8_t {
        itself, // what bounds it against the first clock
        alone,  // without it all others fit
        unclear // others fit without any one of them, or nothing is known of that
    } cause = Cause::unclear;
};

struct ConsistentClocks {
    std::vector<ClockBand> bands; // of each domain, against the first; empty where it contradicts
    std::vector<Contradiction> contradictions;
    bool proven = true; // lines that fit all joints were found, for all clocks that are bounded on both sides
};

[[nodiscard]] ConsistentClocks find_consistent(const SeenJoints& joints, std::uint32_t domains);

} // namespace plumb::ranks

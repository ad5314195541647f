// SPDX-License-Identifier: Apache-2.0
// One line for each clock such that all joints hold at once: the proof that clocks do not contradict each other. Bands cannot give it,
// since each of them is what one clock may be where the others are free to be anything. Pure; no thread rule.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/band_solver.hpp"
#include "ranks/seen_joints.hpp"

namespace plumb::ranks {

/// What to add to a moment of a clock to have the job's: `offset` at the moment `at`, in nanoseconds.
struct FittingLine {
    std::int64_t at = 0;
    std::int64_t offset = 0;
    double more = 0; // of the offset: its part below a nanosecond, and what is corrected
    double drift = 0;
    bool fixed = false; // it is as it stands
};

/// Two clocks of which one ended a joint before the other one began it, and how often that was corrected.
struct Misfit {
    std::uint32_t a = 0, b = 0;
    std::uint64_t times = 0;
};

struct FittingLines {
    bool found = false;
    std::vector<FittingLine> lines; // of each domain; they fit all joints to within a nanosecond where found
    std::vector<Misfit> misfits;    // else: what did not hold in the second half of the rounds, the most often first
    double least_miss = 0;          // else: the least that any round missed the worst joint by, in nanoseconds
};

/// Starts from `lines`; looks at joints between clocks of `among`. Not found proves nothing: lines may exist all the same. Planted runs of
/// 1,024 ranks take fewer than 20 rounds, 64 ranks with one clock at the border of its band some hundreds.
[[nodiscard]] FittingLines fit_lines(const SeenJoints& joints, std::vector<FittingLine> lines, const ClockSet& among,
                                     int most_rounds = 500);

} // namespace plumb::ranks

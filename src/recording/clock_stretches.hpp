// SPDX-License-Identifier: Apache-2.0
// Where the pairs of a clock contradict any one line: a machine that sleeps, or a virtual one that is paused, lets one of the two
// clocks go on while the other stands. Pure; no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::recording {

/// Pairs through which one line can pass, in the order of their time.
struct ClockStretch {
    std::vector<ClockPair> pairs;
    // Where it ends at a jump: ticks there that a counter which fell behind may have given twice.
    std::optional<std::uint64_t> unsure_at_begin = std::nullopt;
    std::optional<std::uint64_t> unsure_at_end = std::nullopt;
};

struct ClockStretches {
    std::vector<ClockStretch> all; // the clock did not jump: one, of all pairs. None: the pairs tell no rate
    std::string jumped;            // one sentence; empty: the clock did not jump
};

/// Those of `clock`, pairs read in an unusually wide bracket left out. Drift below 0.5 % is no jump, nor is what the brackets
/// explain.
[[nodiscard]] ClockStretches stretches_of(const std::vector<ClockPair>& all, std::uint32_t clock);

} // namespace plumb::recording

// SPDX-License-Identifier: Apache-2.0
// The checks of plumb/invariants.hpp, on what is already read: one recording at a time, then all runs together.
// Pure functions; no thread rule.
#pragma once

#include <vector>

#include "analysis/call_counts.hpp"
#include "analysis/replay_builder.hpp"
#include "plumb/invariants.hpp"
#include "plumb/results.hpp"

namespace plumb::analysis {

/// Error invalid_argument: nothing is asked for, or what is asked for is no invariant.
[[nodiscard]] Status validate(const Invariants& invariants);

/// What one recording says.
struct Checked {
    std::string path;
    std::uint64_t recording_id[2] = {0, 0};
    Report report;
    std::vector<CallCount> calls; // one for each of Invariants::calls
    ReplayReport replays;
};
[[nodiscard]] std::vector<CheckRow> check_one(const Checked& run, const Invariants& invariants);

/// Standard deviation / mean over the runs of the mean period of the phase.
[[nodiscard]] CheckRow check_variation(const std::vector<Figure>& mean_periods, const Invariants& invariants);
[[nodiscard]] Figure mean_period(const Report& report, Phase phase);

[[nodiscard]] Outcome verdict_of(const std::vector<CheckRow>& rows);

} // namespace plumb::analysis

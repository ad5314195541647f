// SPDX-License-Identifier: Apache-2.0
// A sentence about what a run lost, for reports that have no rows for it. Pure functions; no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/results.hpp"
#include "recording/recorded_run.hpp"

namespace plumb::analysis {

/// Nothing where nothing was lost.
inline void add_loss_note(std::uint64_t lost, std::vector<std::string>& notes) {
    if (lost != 0) {
        notes.push_back(
            std::to_string(lost) +
            " records of this run were lost or have no time, so something may be missing here; plumb report "
            "names them.");
    }
}

[[nodiscard]] inline std::uint64_t lost_of(const std::vector<LossRow>& losses) {
    std::uint64_t lost = 0;
    for (const LossRow& loss : losses) {
        lost += loss.count;
    }
    return lost;
}

/// Dropped, and never timed.
[[nodiscard]] inline std::uint64_t lost_of(const recording::RunFacts& facts) {
    std::uint64_t lost = facts.counters.unresolved;
    for (const auto& [reason, count] : facts.counters.drops) {
        lost += count;
    }
    return lost;
}

/// Written, and neither removed by a limit nor among the `resolved` ones: they were in damaged chunks.
[[nodiscard]] inline std::uint64_t damaged_records(const recording::Counters& counters, std::uint64_t resolved) {
    const std::uint64_t accounted = resolved + counters.records_removed;
    return counters.records > accounted ? counters.records - accounted : 0;
}

/// `damaged`: records are missing that may have said so.
[[nodiscard]] inline Figure not_given(const std::string& what, bool damaged) {
    return {{}, "no " + what + " were given" + (damaged ? ", or what says so was lost with damaged records" : "")};
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Runs of two sides -> a comparison; runs of one machine -> their history. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare_run.hpp"
#include "plumb/compare.hpp"

namespace plumb::analysis {

struct NamedRun {
    std::string name;
    RunFigures figures;
};

/// Gates on fingerprints stay undecided: see settle_fingerprint_gates() of the session.
[[nodiscard]] Comparison compare_runs(const std::vector<NamedRun>& base, const std::vector<NamedRun>& changed,
                                      const std::vector<Gate>& gates, const CompareOptions& options);

/// Runs that do not compare with the newest are left out, with a note.
[[nodiscard]] History history_of_runs(std::vector<NamedRun> runs, const CompareOptions& options);

} // namespace plumb::analysis

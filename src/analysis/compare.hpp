// SPDX-License-Identifier: Apache-2.0
// Runs of two sides -> a comparison; runs of one machine -> their history. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare_run.hpp"
#include "analysis/comparison.hpp"
#include "plumb/outcome.hpp"

namespace plumb {

/// Of the gates; without gates: pass where the step of the main phase has a verdict.
[[nodiscard]] Outcome outcome_of(const Comparison& comparison) noexcept;

namespace analysis {

struct NamedRun {
    std::string name;
    RunFigures figures;
};

/// Gates on fingerprints stay undecided: src/answers/compare settles them.
[[nodiscard]] Comparison compare_runs(const std::vector<NamedRun>& base, const std::vector<NamedRun>& changed,
                                      const std::vector<Gate>& gates, const CompareOptions& options);

/// "a.plumb, b.plumb: …": what the runs have to say, each sentence once.
[[nodiscard]] std::vector<std::string> notes_of(const std::vector<NamedRun>& runs);

/// Runs that do not compare with the newest are left out, with a note.
[[nodiscard]] History history_of_runs(std::vector<NamedRun> runs, const CompareOptions& options);

} // namespace analysis
} // namespace plumb

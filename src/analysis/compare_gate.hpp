// SPDX-License-Identifier: Apache-2.0
// What the runs of two sides say to a gate. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare_run.hpp"
#include "analysis/comparison.hpp"
#include "plumb/result.hpp"

namespace plumb {

[[nodiscard]] Result<Gate> parse_gate(const std::string& text);

namespace analysis {

/// Decode where there is any, else mixed, else prefill.
[[nodiscard]] Phase main_phase(const std::vector<RunFigures>& runs);

/// A brick, category or layer may look faster than it is where a run of either side lost records.
[[nodiscard]] bool lost_records(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed);

/// `confidence`: of the two-sided interval that must lie below the limit to pass, and above it to fail.
[[nodiscard]] GateResult judge_gate(const Gate& gate, const std::vector<RunFigures>& base,
                                    const std::vector<RunFigures>& changed, double confidence);

} // namespace analysis
} // namespace plumb

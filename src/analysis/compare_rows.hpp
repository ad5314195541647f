// SPDX-License-Identifier: Apache-2.0
// The rows of a comparison with their verdicts, and what each brick contributed to the step's change. Pure functions.
#pragma once

#include <vector>

#include "analysis/compare_run.hpp"
#include "analysis/comparison.hpp"

namespace plumb::analysis {

/// Fills rows and rows_corrected_for.
void compare_rows(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed,
                  const CompareOptions& options, Comparison& out);

/// Fills attributions.
void attribute(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed, Comparison& out);

} // namespace plumb::analysis

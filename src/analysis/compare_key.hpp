// SPDX-License-Identifier: Apache-2.0
// Whether runs may be compared: what they ran on and what they ran must be equal; when, from which commit and at which
// momentary clock may not matter. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/compare_run.hpp"
#include "analysis/comparison.hpp"

namespace plumb::analysis {

using KeyFields = std::vector<std::pair<std::string, std::string>>;

/// What a recording says of its key before its steps are read: the recorded settings, and of the description what must be equal.
[[nodiscard]] KeyFields head_key(KeyFields settings, const KeyFields& description);

/// The same, with what the steps themselves say about their shape: tokens, sequences and kv length of a step.
[[nodiscard]] KeyFields key_of(const RunFigures& run);

/// Fills key, differences and comparable. A field that differs within a side differs, too.
void compare_keys(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed,
                  const std::vector<std::string>& ignored, Comparison& out);

/// Of these the first that no run has, and that none would have elsewhere; "": each may differ.
[[nodiscard]] std::string unknown_field(const std::vector<std::string>& ignored, const Comparison& compared);

/// Clocks, throttling and the like: shown, never compared.
[[nodiscard]] KeyFields conditions_of(const RunFigures& run);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// The words that all forms of a comparison share. Pure functions.
#pragma once

#include <string>

#include "analysis/comparison.hpp"

namespace plumb {

/// "+3.10 %", "n/a".
[[nodiscard]] std::string percent_text(const Figure& share);
/// "+2.50 .. +3.70 %", "n/a".
[[nodiscard]] std::string interval_text(const Change& change);
/// "layer 3", "attention", "step", "attention (device)".
[[nodiscard]] std::string subject_text(const CompareRow& row);
/// "decode step p50: SLOW  +3.1 %  (+2.5 .. +3.7 %)"; one line per phase.
[[nodiscard]] std::string headline(const Comparison& comparison, const CompareRow& step);
/// The change that the verdict stands on.
[[nodiscard]] const Change& judged_change(const CompareRow& row);
/// Microseconds with digits that suit its size.
[[nodiscard]] std::string microseconds(double ns);
/// With a sign.
[[nodiscard]] std::string signed_microseconds(double ns);
/// "brick (sampled)"
[[nodiscard]] std::string kind_text(const CompareRow& row);
/// What the numbers of a table of rows are.
[[nodiscard]] std::string means_text(const Comparison& comparison);
/// Beneath a table in which a verdict is marked.
inline constexpr const char* own_change_legend = "*  against the pace of the other bricks of the same runs";
/// Above the parts of a step's change.
[[nodiscard]] std::string attribution_text(const Attribution& attribution);
/// "5 runs against 5"; of ranks of one step that nothing is said of the builds.
[[nodiscard]] std::string runs_text(const Comparison& comparison);

} // namespace plumb

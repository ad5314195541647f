// SPDX-License-Identifier: Apache-2.0
// How the figures of a phase are said in a headline, wherever one stands. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plumb/results.hpp"

namespace plumb::answers {

[[nodiscard]] std::string plural(std::uint64_t count, std::string_view word);
/// "98.3 %"
[[nodiscard]] std::string percent(const Figure& figure, double scale);
[[nodiscard]] std::string milliseconds(double ns);
/// "119 steps (8 warm-up apart)"
[[nodiscard]] std::string steps_words(const PhaseSummary& phase);
/// "p50 48.1 ms/tok  p90 50.3"; the mean where there are too few steps for a median.
[[nodiscard]] std::string period_words(const PhaseSummary& phase);
/// "21.1 tok/s"
[[nodiscard]] std::string tokens_words(const PhaseSummary& phase);
/// "coverage 98.3 % of busy"
[[nodiscard]] std::string coverage_words(const PhaseSummary& phase);

} // namespace plumb::answers

// SPDX-License-Identifier: Apache-2.0
// One run's checks -> whether it is sound; with a twin, how far from it. Pure; any thread, one at a time per run.
#pragma once

#include "numerics/checked_run.hpp"
#include "plumb/numerics.hpp"

namespace plumb::numerics {

// What counts as a finding (docs/diverge.md).
inline constexpr double exploding_growth = 100;  // of a layer's rms over that of the layer before
inline constexpr double vanishing_growth = 0.01; // the same
inline constexpr double saturated_share = 0.5;   // of the element type's range: one doubling from Inf
inline constexpr std::size_t most_worst = 16;

/// `twin` may be null. Errors: not_found when the run holds no checks and `looked_at` is empty, or when the twin has none
/// in common; out_of_memory beyond most_checks. `looked_at`: what the run says of tensors that left no check.
[[nodiscard]] Result<HealthReport> health(const recording::RecordedRun& run, const recording::RecordedRun* twin,
                                          const std::string& looked_at);

/// What the run, or the twin, counted itself, where that is more than the checks show: an entry may be gone.
void add_count(HealthReport& report, std::uint64_t counted, bool of_twin);

/// The largest finite number of a floating type; infinite for integers, which reach their limits in good health.
[[nodiscard]] double range_of(DType type) noexcept;

} // namespace plumb::numerics

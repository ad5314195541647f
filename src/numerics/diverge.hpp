// SPDX-License-Identifier: Apache-2.0
// Two runs' checks -> where they part. Pure; any thread, one at a time per run.
#pragma once

#include <cstddef>

#include "numerics/checked_run.hpp"
#include "plumb/numerics.hpp"

namespace plumb::numerics {

inline constexpr std::size_t most_rows = 64; // of lists in a report; what is beyond is only counted

/// Error not_found when neither holds any check; out_of_memory beyond most_checks.
[[nodiscard]] Result<DivergeReport> diverge(const recording::RecordedRun& a, const recording::RecordedRun& b,
                                            const DivergeOptions& options);

} // namespace plumb::numerics

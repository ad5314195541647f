// SPDX-License-Identifier: Apache-2.0
// Why threads were not on a CPU, as far as the kernel counts it (docs/reference/wall.md): between two samples it says for how long a thread ran
// and for how long it waited for a CPU, but not at which moments. Pure; any thread.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/wall_report.hpp"
#include "recording/run_facts.hpp"
#include "resolve/step_table.hpp"

namespace plumb::analysis {

/// By phase; `only`: of the step of that id alone.
[[nodiscard]] std::array<OffCpuCauses, 4> off_cpu_causes(const recording::RunFacts& facts,
                                                         const resolve::StepTable& steps,
                                                         std::optional<std::uint64_t> only = std::nullopt);

/// At most 1000, neighbours added up.
[[nodiscard]] std::vector<OffCpuInterval> off_cpu_intervals(const recording::RunFacts& facts,
                                                            const resolve::StepTable& steps);

} // namespace plumb::analysis

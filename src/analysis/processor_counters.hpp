// SPDX-License-Identifier: Apache-2.0
// What the processor's counters say of a run. Pure; any thread.
#pragma once

#include <optional>

#include "plumb/results.hpp"
#include "recording/recording.hpp"

namespace plumb::analysis {

/// None where counters were not asked for.
[[nodiscard]] std::optional<ProcessorCounters> processor_counters(const recording::Counters& counters);

} // namespace plumb::analysis

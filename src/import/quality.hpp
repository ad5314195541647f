// SPDX-License-Identifier: Apache-2.0
// What must be said of a trace beside its figures, one sentence each. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "import/labels.hpp"
#include "import/steps.hpp"
#include "import/trace.hpp"

namespace plumb::imported {

/// Most operations begin where the one before ended: the gaps between them lie inside of their durations.
[[nodiscard]] bool hides_gaps(const Trace& trace);
[[nodiscard]] std::vector<std::string> quality_notes(const Trace& trace, const EngineSteps& steps);
/// Of one process: by what its bricks are known and what is not, and the witnesses of its layers.
[[nodiscard]] std::vector<std::string> label_notes(const Trace& trace, const Labels& labels, std::uint16_t process);

/// Of one process: each brick of which something is known, and by what: "name", "place 93.1 %, name 6.9 %", "weak name".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> evidence_of_bricks(const Trace& trace,
                                                                                  const Labels& labels,
                                                                                  std::uint16_t process);

} // namespace plumb::imported

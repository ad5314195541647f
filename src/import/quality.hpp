// SPDX-License-Identifier: Apache-2.0
// What must be said of a trace beside its figures, one sentence each. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "import/labels.hpp"
#include "import/steps.hpp"
#include "import/trace.hpp"

namespace plumb::imported {

/// Most operations of the process begin where the one before ended: the gaps between them lie inside of their durations.
[[nodiscard]] bool hides_gaps(const Trace& trace, std::uint16_t process);
[[nodiscard]] std::vector<std::string> quality_notes(const Trace& trace, const EngineSteps& steps,
                                                     std::uint16_t process);

/// The time of all operations of one process.
struct OpTimes {
    std::uint64_t operations = 0;
    double ns = 0;
    using OfBrick = std::array<std::array<double, 3>, 6>; // by evidence and certainty
    std::vector<OfBrick> bricks;
};
[[nodiscard]] OpTimes op_times(const Trace& trace, const Labels& labels, std::uint16_t process);

/// By what bricks are known and what is not, and the witnesses of layers.
[[nodiscard]] std::vector<std::string> label_notes(const Trace& trace, const Labels& labels, const OpTimes& times,
                                                   std::uint16_t process);

/// Each brick of which something is known, and by what: "name", "place 93.1 %, name 6.9 %", "weak name".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> evidence_of_bricks(const Labels& labels,
                                                                                  const OpTimes& times);

} // namespace plumb::imported

// SPDX-License-Identifier: Apache-2.0
// Why there is nothing of a phase, in one spelling. Pure functions; no thread rule.
#pragma once

#include <string>

#include "plumb/bricks.hpp"

namespace plumb::analysis {

[[nodiscard]] inline std::string no_step_of(Phase phase) {
    return "the recording has no complete " + std::string(phase_word(phase)) + " step";
}

} // namespace plumb::analysis

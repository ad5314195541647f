// SPDX-License-Identifier: Apache-2.0
// Why there is nothing of a phase, in one spelling. Pure functions; no thread rule.
#pragma once

#include <string>

#include "plumb/bricks.hpp"
#include "resolve/step_table.hpp"

namespace plumb::analysis {

/// Of a recording whose table of steps is empty.
[[nodiscard]] inline std::string no_step(const resolve::StepTable& steps) {
    return steps.phaseless().empty()
               ? "this recording holds no complete step; put PLUMB_STEP around each forward pass of the engine"
               : "the steps of this recording are of phase none; give PLUMB_STEP the phase prefill, decode or mixed";
}

[[nodiscard]] inline std::string no_step_of(Phase phase) {
    return "the recording has no complete " + std::string(phase_word(phase)) + " step";
}

} // namespace plumb::analysis

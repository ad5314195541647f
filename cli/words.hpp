// SPDX-License-Identifier: Apache-2.0
// What several commands make of words and verdicts. Pure functions.
#pragma once

#include <string>

#include "cli/output.hpp"
#include "plumb/bricks.hpp"
#include "plumb/outcome.hpp"

namespace plumb::cli {

/// Of a word that --phase allows.
[[nodiscard]] inline Phase phase_of_word(const std::string& word) {
    return word == "prefill" ? Phase::prefill : word == "mixed" ? Phase::mixed : Phase::decode;
}

[[nodiscard]] inline int exit_code_of(Outcome verdict) {
    return verdict == Outcome::pass ? exit_ok : verdict == Outcome::fail ? exit_failed : exit_undecided;
}

} // namespace plumb::cli

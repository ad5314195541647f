// SPDX-License-Identifier: Apache-2.0
// Bricks as people name them on a command line: names and aliases, and "brick=value/unit". Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plumb/results.hpp"

namespace plumb::analysis {

/// A row of the wall account, and what it is.
inline constexpr const char* bricks_outside = "bricks outside its steps";
inline constexpr const char* bricks_outside_legend =
    "bricks outside its steps: leaf bricks between its steps, or of other steps at that time: they have no row here";

/// Both of a phase with rows: what these hold beyond its periods, and what the unmarked ones lack.
inline constexpr const char* bricks_elsewhere = "its bricks in other periods";
inline constexpr const char* bricks_elsewhere_legend =
    "its bricks in other periods: leaf bricks in the rows above that ran while other steps did: not in its period";
inline constexpr const char* leaf_calls_in_marked = "leaf calls in marked rows";
inline constexpr const char* leaf_calls_in_marked_legend =
    "leaf calls in marked rows: of bricks marked + or ~, the calls that hold no bricks and are no laps";

/// Of a phase, per step: the calls that hold no bricks and are no laps, also those of bricks that hold some in other calls.
[[nodiscard]] double leaf_calls_ns(const Report& report, Phase phase);

/// Whether device work of these steps is in rows only: the wall account is then that of the host's threads, and the rows do not add up
/// with it.
[[nodiscard]] bool wall_is_of_the_host(const PhaseSummary& phase);

/// " (brick)" behind the name of a brick that is that of a row of the wall account; else empty.
[[nodiscard]] std::string_view mark_beside_account(std::string_view brick);

/// The well-known brick of that name or alias, else the word itself.
[[nodiscard]] std::string brick_of_word(std::string_view word);
/// Whether a brick of a recording is the one a word names: by its own name, or by an alias of it.
[[nodiscard]] bool names_brick(std::string_view word, std::string_view brick);

/// "lm_head=400us/step" -> "lm_head", "400us", "step"; the last is empty where there is no slash behind the last "=".
struct Assignment {
    std::string_view brick, value, per;
};
[[nodiscard]] std::optional<Assignment> assignment_of(std::string_view words);

} // namespace plumb::analysis

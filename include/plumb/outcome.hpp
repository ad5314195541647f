// SPDX-License-Identifier: Apache-2.0
// How a limit, an invariant or a gate came out. Plain values; no thread rule.
#pragma once

#include <cstdint>

namespace plumb {

/// unknown: what would decide was not measured. It never passes.
enum class Outcome : std::uint8_t { pass, fail, unknown };

/// The word that texts and schemas use.
constexpr const char* outcome_word(Outcome verdict) noexcept {
    return verdict == Outcome::pass ? "pass" : verdict == Outcome::fail ? "fail" : "unknown";
}

/// Of two: a failure outweighs what is unknown, and that outweighs a pass.
constexpr Outcome worse(Outcome a, Outcome b) noexcept {
    return a == Outcome::fail || b == Outcome::fail         ? Outcome::fail
           : a == Outcome::unknown || b == Outcome::unknown ? Outcome::unknown
                                                            : Outcome::pass;
}

} // namespace plumb

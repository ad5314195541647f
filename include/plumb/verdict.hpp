// SPDX-License-Identifier: Apache-2.0
// How a limit, an invariant or a gate came out. Plain values; no thread rule.
#pragma once

#include <cstdint>

namespace plumb {

/// unknown: what would decide was not measured. It never passes.
enum class Verdict : std::uint8_t { pass, fail, unknown };

/// The word that texts and schemas use.
constexpr const char* verdict_word(Verdict verdict) noexcept {
    return verdict == Verdict::pass ? "pass" : verdict == Verdict::fail ? "fail" : "unknown";
}

/// Of two: a failure outweighs what is unknown, and that outweighs a pass.
constexpr Verdict worse(Verdict a, Verdict b) noexcept {
    return a == Verdict::fail || b == Verdict::fail         ? Verdict::fail
           : a == Verdict::unknown || b == Verdict::unknown ? Verdict::unknown
                                                            : Verdict::pass;
}

} // namespace plumb

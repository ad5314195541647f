// SPDX-License-Identifier: Apache-2.0
// What is known of one kernel: its brick, how surely, and by what. Plain values; the texts belong to the rules that gave them
// or to the program, so that they live as long as those rules. No thread rule.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb::imported {

/// weak: the name says little (elementwise, copy, fill, fused, a GEMM of no role); such time is counted apart.
enum class Certainty : std::uint8_t { unknown = 0, weak = 1, strong = 2 };

/// What the search for layers takes a kernel for.
enum class Anchor : std::uint8_t {
    none = 0,
    attention = 1,
    norm = 2,
    mlp = 3,
    router = 4,
    gemm = 5,
    embedding = 6,
    sampling = 7,
};

/// By what a label is known, the least to be trusted first.
enum class LabelEvidence : std::uint8_t { none = 0, place = 1, name = 2, capture = 3, stack = 4, annotation = 5 };

/// "name"; in front of "of the time": by no evidence at all it is unknown.
[[nodiscard]] const char* evidence_word(LabelEvidence evidence) noexcept;

struct KernelLabel {
    std::string_view brick = "unknown";
    std::string_view piece; // of that brick, where a place may say more: the mul of elementwise; else empty
    Certainty certainty = Certainty::unknown;
    Anchor anchor = Anchor::none;
    LabelEvidence evidence = LabelEvidence::none;

    friend bool operator==(const KernelLabel&, const KernelLabel&) = default;
};

/// The anchor of a brick of that name; of a name that is not well known: none.
[[nodiscard]] Anchor anchor_of(std::string_view brick) noexcept;

} // namespace plumb::imported

// SPDX-License-Identifier: Apache-2.0
// The words and colours that all parts of the text report share. Plain values; no thread rule.
#pragma once

#include <string_view>

#include "plumb/bricks.hpp"

namespace plumb::render {

/// Escape sequences, or empty texts where colour is not wanted.
struct Style {
    std::string_view heading, faint, warning, plain;
};

inline constexpr Style colored{"\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"};
inline constexpr Style uncolored{};

[[nodiscard]] constexpr std::string_view phase_word(Phase phase) noexcept {
    switch (phase) {
    case Phase::prefill:
        return "prefill";
    case Phase::decode:
        return "decode";
    case Phase::mixed:
        return "mixed";
    case Phase::none:
        break;
    }
    return "none";
}

[[nodiscard]] constexpr std::string_view category_word(Category category) noexcept {
    switch (category) {
    case Category::norm:
        return "norm";
    case Category::attention:
        return "attention";
    case Category::ffn:
        return "ffn";
    case Category::moe:
        return "moe";
    case Category::embedding:
        return "embedding";
    case Category::output:
        return "output";
    case Category::cache:
        return "cache";
    case Category::collective:
        return "collective";
    case Category::transfer:
        return "transfer";
    case Category::other:
        break;
    }
    return "other";
}

} // namespace plumb::render

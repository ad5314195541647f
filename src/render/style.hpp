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

} // namespace plumb::render

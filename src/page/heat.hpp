// SPDX-License-Identifier: Apache-2.0
// Maps of values against a median, in shades. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "page/page.hpp"

namespace plumb::page {

/// How far above or below the median: each `step` of it is a shade, the middle one is alike. A blank where one is absent.
[[nodiscard]] inline Span shade(const Figure& value, const Figure& median, double step) {
    if (!value.value || !median.value) {
        return Span(" ");
    }
    Span span("", Tone::shade);
    constexpr int middle = static_cast<int>(shades) / 2;
    double steps = *value.value > *median.value ? middle : 0;
    if (*median.value > 0) {
        steps = std::clamp(std::round((*value.value / *median.value - 1) / step), -double{middle}, double{middle});
    }
    span.heat = static_cast<std::uint8_t>(static_cast<int>(steps) + middle);
    return span;
}

/// What the shades mean; `step`: "25 %".
[[nodiscard]] inline std::string legend_of_shades(bool color, const std::string& step) {
    return color ? "blue below, grey alike, red above, each shade " + step
                 : "'=' alike, '-' '.' ',' '_' below, '+' 'o' '#' '@' above, " + step + " each";
}

[[nodiscard]] inline std::string padded(std::string text, std::size_t columns) {
    text.append(columns - std::min(columns, columns_of(text)), ' ');
    return text;
}

[[nodiscard]] inline std::string padded_left(const std::string& text, std::size_t columns) {
    return std::string(columns - std::min(columns, columns_of(text)), ' ') + text;
}

} // namespace plumb::page

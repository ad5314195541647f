// SPDX-License-Identifier: Apache-2.0
// Names in the order that a reader expects: numbers inside of them count as numbers, so that "r-2" stands before "r-10". Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace plumb::base {

/// A strict order of all names. Those that differ in leading zeros alone, as "r-1" and "r-01", stand by their characters.
[[nodiscard]] inline bool natural_before(std::string_view a, std::string_view b) noexcept {
    const auto digits_end = [](std::string_view text, std::size_t at) {
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
            ++at;
        }
        return at;
    };
    // The number that begins there, without leading zeros.
    const auto number = [](std::string_view text, std::size_t begin, std::size_t end) {
        while (begin + 1 < end && text[begin] == '0') {
            ++begin;
        }
        return text.substr(begin, end - begin);
    };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const std::size_t a_end = digits_end(a, i), b_end = digits_end(b, j);
        if (a_end != i && b_end != j) {
            const std::string_view one = number(a, i, a_end), other = number(b, j, b_end);
            if (one != other) {
                return one.size() != other.size() ? one.size() < other.size() : one < other;
            }
            i = a_end;
            j = b_end;
        } else if (a[i] != b[j]) {
            return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
        } else {
            ++i;
            ++j;
        }
    }
    const bool a_ends = i == a.size(), b_ends = j == b.size();
    return a_ends && b_ends ? a < b : a_ends;
}

} // namespace plumb::base

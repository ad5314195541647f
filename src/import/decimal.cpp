// SPDX-License-Identifier: Apache-2.0
#include "import/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace plumb::imported {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 10 - 1;
constexpr int nano = 3; // decimals of a microsecond

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the exponent off the text's end; 0 without one.
std::optional<int> take_exponent(std::string_view& text) {
    const std::size_t at = text.find_first_of("eE");
    if (at == text.npos) {
        return 0;
    }
    std::string_view digits = text.substr(at + 1);
    if (digits.starts_with('+')) {
        digits.remove_prefix(1);
    }
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < -400 || value > 400) {
        return std::nullopt;
    }
    text = text.substr(0, at);
    return value;
}

} // namespace

std::optional<std::int64_t> microseconds_to_ns(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) {
        text.remove_prefix(1);
    }
    const std::optional<int> exponent = take_exponent(text);
    if (!exponent || text.empty() || !is_digit(text.front())) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    // How many digits from the front count: the ones before the point, and those that the nanosecond has.
    auto left = static_cast<std::int64_t>(std::min(text.find('.'), text.size())) + nano + *exponent;
    bool point = false;
    for (const char c : text) {
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(c) || (left > 0 && value > most)) {
            return std::nullopt;
        }
        if (left > 0) {
            value = value * 10 + (c - '0');
        } else if (left == 0) {
            value += c >= '5' ? 1 : 0;
        }
        --left;
    }
    for (; left > 0 && value != 0; --left) {
        if (value > most) {
            return std::nullopt;
        }
        value *= 10;
    }
    return negative ? -value : value;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

} // namespace plumb::imported

// SPDX-License-Identifier: Apache-2.0
// Where characters end in bytes that should be UTF-8. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace plumb::decoder {

/// Bytes that the first one asks for; 1 for what begins no character.
[[nodiscard]] constexpr std::size_t wanted_bytes(char first) noexcept {
    const auto byte = static_cast<unsigned char>(first);
    return byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
}

/// Following bytes of the first character that are there, and it.
[[nodiscard]] constexpr std::size_t present_bytes(std::string_view text) noexcept {
    const std::size_t wanted = std::min(wanted_bytes(text[0]), text.size());
    std::size_t at = 1;
    while (at < wanted && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U) {
        ++at;
    }
    return at;
}

/// Bytes of the first character; 1 where it is not whole. REQUIRES: not empty.
[[nodiscard]] constexpr std::size_t character_bytes(std::string_view text) noexcept {
    const std::size_t wanted = wanted_bytes(text[0]);
    return present_bytes(text) == wanted ? wanted : 1;
}

/// Bytes before a last character that may still be completed.
[[nodiscard]] constexpr std::size_t whole_characters(std::string_view text) noexcept {
    for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const std::size_t at = text.size() - back;
        const std::size_t wanted = wanted_bytes(text[at]);
        if (wanted > 1) {
            return wanted > back && present_bytes(text.substr(at)) == back ? at : text.size();
        }
    }
    return text.size();
}

} // namespace plumb::decoder

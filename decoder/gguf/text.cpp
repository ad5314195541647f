// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/text.hpp"

#include <array>
#include <cstdint>

namespace plumb::decoder::gguf {
namespace {

/// Bytes of the well-formed UTF-8 sequence at the start of `text` that is no control character; 0 if there is none.
std::size_t shown_sequence(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint8_t>(text[i]);
    };
    const std::uint8_t first = byte(0);
    if (first < 0x80) {
        return first >= 0x20 && first != 0x7f ? 1 : 0;
    }
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) {
        return 0;
    }
    std::uint32_t code = first & (0xffU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
        code = (code << 6) | (byte(i) & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    const bool control = code < 0xa0; // C1 controls
    return code < smallest[length] || code > 0x10ffff || surrogate || control ? 0 : length;
}

} // namespace

std::string printable(std::string_view text, std::size_t limit) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (out.size() >= limit) {
            return out + "…";
        }
        if (const std::size_t length = shown_sequence(text.substr(at))) {
            out.append(text.substr(at, length));
            at += length;
            continue;
        }
        const auto byte = static_cast<std::uint8_t>(text[at++]);
        out += "\\x";
        out += hex[byte >> 4];
        out += hex[byte & 15];
    }
    return out;
}

} // namespace plumb::decoder::gguf

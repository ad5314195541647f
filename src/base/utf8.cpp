// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

namespace plumb::base {

namespace {

struct SequenceForm {
    std::size_t length;            // 0: no sequence starts with this byte
    unsigned char lowest, highest; // of the second byte: this is where overlong forms and surrogates show
};

SequenceForm form_of(unsigned char lead) noexcept {
    if (lead < 0x80) {
        return {1, 0, 0};
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return {2, 0x80, 0xBF};
    }
    if ((lead & 0xF0) == 0xE0) {
        return {3, static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        return {4, static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
    }
    return {0, 0, 0};
}

} // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t at) noexcept {
    const auto byte = [text](std::size_t index) {
        return static_cast<unsigned char>(text[index]);
    };
    const SequenceForm form = form_of(byte(at));
    if (form.length == 0 || text.size() - at < form.length) {
        return 0;
    }
    if (form.length > 1 && (byte(at + 1) < form.lowest || byte(at + 1) > form.highest)) {
        return 0;
    }
    for (std::size_t index = at + 2; index < at + form.length; ++index) {
        if ((byte(index) & 0xC0) != 0x80) {
            return 0;
        }
    }
    return form.length;
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_sequence(text, at);
        out += length == 0 ? replacement_character : text.substr(at, length);
        at += length == 0 ? 1 : length;
    }
    return out;
}

} // namespace plumb::base

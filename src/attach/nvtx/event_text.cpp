// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/event_text.hpp"

#include <cstring>
#include <exception>

namespace plumb::attach::nvtx {
namespace {

/// In UTF-8; empty where it cannot be said so.
std::string narrow(const wchar_t* text) noexcept {
    try {
        std::string made;
        for (std::size_t i = 0; text != nullptr && text[i] != 0 && made.size() < longest_text; ++i) {
            const auto code = static_cast<std::uint32_t>(text[i]);
            if (code < 0x80) {
                made += static_cast<char>(code);
            } else if (code < 0x800) {
                made += static_cast<char>(0xc0 | code >> 6);
                made += static_cast<char>(0x80 | (code & 63));
            } else if (code < 0x10000) {
                made += static_cast<char>(0xe0 | code >> 12);
                made += static_cast<char>(0x80 | (code >> 6 & 63));
                made += static_cast<char>(0x80 | (code & 63));
            } else {
                made += static_cast<char>(0xf0 | (code >> 18 & 7));
                made += static_cast<char>(0x80 | (code >> 12 & 63));
                made += static_cast<char>(0x80 | (code >> 6 & 63));
                made += static_cast<char>(0x80 | (code & 63));
            }
        }
        return made;                  // what is no text is made valid where it becomes a name
    } catch (const std::exception&) { // no memory
        return {};
    }
}

} // namespace

std::string_view plain_text(const Attributes* attributes, const Texts& texts, std::string& place) noexcept {
    if (attributes == nullptr || attributes->size < sizeof(Attributes)) {
        return {};
    }
    const auto& message = attributes->message;
    switch (static_cast<MessageType>(attributes->message_type)) {
    case MessageType::ascii:
        return message.ascii != nullptr ? std::string_view(message.ascii, strnlen(message.ascii, longest_text))
                                        : std::string_view();
    case MessageType::wide:
        place = narrow(message.wide);
        return place;
    case MessageType::registered: {
        const KnownRange* known = texts.registered(reinterpret_cast<std::uintptr_t>(message.registered));
        return known != nullptr ? known->text : std::string_view();
    }
    case MessageType::none:
        break;
    }
    return {};
}

} // namespace plumb::attach::nvtx

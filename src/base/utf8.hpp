// SPDX-License-Identifier: Apache-2.0
// UTF-8 as the standard defines it: names come from anywhere, and whatever leaves here must be valid text.
// Pure functions; safe from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb::base {

/// Bytes of the well-formed sequence that starts at text[at] (at < size), 0 where none does: overlong forms,
/// surrogates and code points above U+10FFFF are not well-formed.
[[nodiscard]] std::size_t utf8_sequence(std::string_view text, std::size_t at) noexcept;

/// What stands for a byte that is not part of well-formed text: U+FFFD.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// `text` with every such byte replaced.
[[nodiscard]] std::string valid_utf8(std::string_view text);

} // namespace plumb::base

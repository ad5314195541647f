// SPDX-License-Identifier: Apache-2.0
// Strings of a file as they may be shown: control characters and broken UTF-8 are escaped, long ones are cut.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb::decoder::gguf {

/// Valid UTF-8 without control characters, at most about `limit` bytes; what was cut ends in "…".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

} // namespace plumb::decoder::gguf

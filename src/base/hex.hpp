// SPDX-License-Identifier: Apache-2.0
// 64 bits as 16 hexadecimal digits: hashes, which are more than a JSON number holds. Pure; no thread rule.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::base {

[[nodiscard]] inline std::string hex_digits(std::uint64_t value) {
    std::string text(16, '0');
    for (unsigned i = 0; i < text.size(); ++i) {
        text[i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
    }
    return text;
}

} // namespace plumb::base

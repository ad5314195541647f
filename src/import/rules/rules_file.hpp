// SPDX-License-Identifier: Apache-2.0
// The text of a rules file as lines (share/plumb/kernels.rules says what stands in one). Views into the text given.
// Pure function; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/rules/kernel_label.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

struct RuleLine {
    std::size_t number = 0; // from 1
    std::string_view brick; // empty: this line unwraps
    std::string_view piece;
    Certainty certainty = Certainty::unknown;
    bool whole = false;
    std::string_view regex;
};

/// The rules of a file in their order. An error names `file` and the line.
[[nodiscard]] Result<std::vector<RuleLine>> read_rules(std::string_view text, const std::string& file);
/// Such an error.
[[nodiscard]] Error rule_error(const std::string& file, std::size_t line, const std::string& why);

/// The rules that are built in: share/plumb/kernels.rules of the source tree.
[[nodiscard]] std::string_view built_in_rules() noexcept;

} // namespace plumb::imported

// SPDX-License-Identifier: Apache-2.0
// The text of a rules file as lines (share/plumb/kernels.rules says what stands in one). Views into the text given.
// Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
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

/// What reads a rule: the number of its line, and the line without blanks around it. Gives an empty sentence, or what is wrong with it.
using ReadRule = std::function<std::string(std::size_t number, std::string_view line)>;
/// Every line that is a rule: comments start with #. Stops at the first that is none; at most 4,096 of them.
[[nodiscard]] Status each_rule(std::string_view text, const std::string& file, const ReadRule& read);
/// The next word, which is taken off the line; empty at its end.
[[nodiscard]] std::string_view rule_word(std::string_view& line);
/// What is left of the line, without blanks around it.
[[nodiscard]] std::string_view rest_of_rule(std::string_view line);
/// Small letters, digits and _, at most 64.
[[nodiscard]] bool is_brick_word(std::string_view word);
/// For a sentence.
[[nodiscard]] std::string quoted_word(std::string_view word);

/// The rules that are built in: share/plumb/kernels.rules of the source tree.
[[nodiscard]] std::string_view built_in_rules() noexcept;

} // namespace plumb::imported

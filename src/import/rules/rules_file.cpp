// SPDX-License-Identifier: Apache-2.0
#include "import/rules/rules_file.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t most_rules = 4096;
constexpr std::size_t longest_brick = 64;

std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    return word;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::string quoted(std::string_view word) {
    std::string text = base::valid_utf8(word.substr(0, longest_brick));
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return '"' + text + '"';
}

bool is_brick(std::string_view word) {
    return !word.empty() && word.size() <= longest_brick && std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

/// An empty sentence where the line is a rule.
std::string read_line(std::string_view line, RuleLine& into) {
    const std::string_view brick = next_word(line);
    if (brick != "unwrap") {
        const std::size_t colon = brick.find(':');
        into.brick = brick.substr(0, colon);
        into.piece = colon == brick.npos ? std::string_view() : brick.substr(colon + 1);
        if (!is_brick(into.brick) || (colon != brick.npos && !is_brick(into.piece))) {
            return quoted(brick) + " is no brick: write small letters, digits and _, with :piece or without";
        }
        const std::string_view known = next_word(line);
        if (known != "strong" && known != "weak") {
            return quoted(known) + " stands where strong or weak is expected";
        }
        into.certainty = known == "strong" ? Certainty::strong : Certainty::weak;
    }
    const std::string_view part = next_word(line);
    if (part != "base" && (part != "whole" || into.brick.empty())) {
        return quoted(part) + " stands where base" + (into.brick.empty() ? "" : " or whole") + " is expected";
    }
    into.whole = part == "whole";
    into.regex = trimmed(line);
    return into.regex.empty() ? "the regex is missing" : "";
}

} // namespace

Error rule_error(const std::string& file, std::size_t line, const std::string& why) {
    return Error{ErrorCode::invalid_argument, file + ":" + std::to_string(line) + ": " + why};
}

Result<std::vector<RuleLine>> read_rules(std::string_view text, const std::string& file) {
    std::vector<RuleLine> rules;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::string_view content = trimmed(line);
        if (content.empty() || content.front() == '#') {
            continue;
        }
        RuleLine rule;
        rule.number = number;
        if (const std::string why = read_line(content, rule); !why.empty()) {
            return rule_error(file, number, why);
        }
        if (rules.size() == most_rules) {
            return rule_error(file, number, "there are more than " + std::to_string(most_rules) + " rules");
        }
        rules.push_back(rule);
    }
    return rules;
}

} // namespace plumb::imported

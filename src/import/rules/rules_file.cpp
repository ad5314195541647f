// SPDX-License-Identifier: Apache-2.0
#include "import/rules/rules_file.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t most_rules = 4096;
constexpr std::size_t longest_brick_word = 64;

/// An empty sentence where the line is a rule.
std::string read_line(std::string_view line, RuleLine& into) {
    const std::string_view brick = rule_word(line);
    if (brick != "unwrap") {
        const std::size_t colon = brick.find(':');
        into.brick = brick.substr(0, colon);
        into.piece = colon == brick.npos ? std::string_view() : brick.substr(colon + 1);
        if (!is_brick_word(into.brick) || (colon != brick.npos && !is_brick_word(into.piece))) {
            return quoted_word(brick) + " is no brick: write small letters, digits and _, with :piece or without";
        }
        const std::string_view known = rule_word(line);
        if (known != "strong" && known != "weak") {
            return quoted_word(known) + " stands where strong or weak is expected";
        }
        into.certainty = known == "strong" ? Certainty::strong : Certainty::weak;
    }
    const std::string_view part = rule_word(line);
    if (part != "base" && (part != "whole" || into.brick.empty())) {
        return quoted_word(part) + " stands where base" + (into.brick.empty() ? "" : " or whole") + " is expected";
    }
    into.whole = part == "whole";
    into.regex = rest_of_rule(line);
    return into.regex.empty() ? "the regex is missing" : "";
}

} // namespace

Error rule_error(const std::string& file, std::size_t line, const std::string& why) {
    return Error{ErrorCode::invalid_argument, file + ":" + std::to_string(line) + ": " + why};
}

std::string_view rule_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    return word;
}

std::string_view rest_of_rule(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    return first == line.npos ? std::string_view() : line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

std::string quoted_word(std::string_view word) {
    std::string text = base::valid_utf8(word.substr(0, longest_brick_word));
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return '"' + text + '"';
}

bool is_brick_word(std::string_view word) {
    return !word.empty() && word.size() <= longest_brick_word &&
           std::all_of(word.begin(), word.end(),
                       [](unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

Status each_rule(std::string_view text, const std::string& file, const ReadRule& read) {
    std::size_t rules = 0;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::string_view content = rest_of_rule(line);
        if (content.empty() || content.front() == '#') {
            continue;
        }
        if (const std::string why = read(number, content); !why.empty()) {
            return rule_error(file, number, why);
        }
        if (++rules > most_rules) {
            return rule_error(file, number, "there are more than " + std::to_string(most_rules) + " rules");
        }
    }
    return {};
}

Result<std::vector<RuleLine>> read_rules(std::string_view text, const std::string& file) {
    std::vector<RuleLine> rules;
    const Status read = each_rule(text, file, [&rules](std::size_t number, std::string_view line) {
        RuleLine& rule = rules.emplace_back();
        rule.number = number;
        return read_line(line, rule);
    });
    return read.ok() ? Result<std::vector<RuleLine>>(std::move(rules)) : Result<std::vector<RuleLine>>(read.error());
}

} // namespace plumb::imported

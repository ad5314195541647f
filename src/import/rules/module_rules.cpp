// SPDX-License-Identifier: Apache-2.0
#include "import/rules/module_rules.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace plumb::imported {
namespace {

std::vector<std::string_view> parts(std::string_view text, char between) {
    std::vector<std::string_view> found;
    while (!text.empty() && text != "-") {
        const std::size_t end = std::min(text.find(between), text.size());
        found.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return found;
}

std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    return word;
}

struct ModuleRules {
    std::vector<ModuleRule> rules;
    std::vector<std::string_view> helpers; // of all modules
};

ModuleRules read_rules() {
    ModuleRules made;
    std::string_view text = built_in_module_rules();
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::string_view module = next_word(line);
        if (module.empty() || module.front() == '#') {
            continue;
        }
        ModuleRule rule;
        rule.modules = parts(module, '|');
        rule.inside = parts(next_word(line), '|');
        std::string_view bricks = next_word(line);
        rule.decides = !bricks.starts_with('?');
        bricks.remove_prefix(rule.decides ? 0 : 1);
        rule.bricks = parts(bricks, ',');
        rule.helpers = parts(next_word(line), ',');
        if (module == "*") {
            made.helpers = rule.helpers;
        } else {
            rule.helpers.insert(rule.helpers.end(), made.helpers.begin(), made.helpers.end());
            made.rules.push_back(std::move(rule));
        }
    }
    return made;
}

/// "RMSNorm_12": RMSNorm.
std::string_view without_number(std::string_view module) {
    const std::size_t last = module.find_last_not_of("0123456789");
    return last != module.npos && last + 1 < module.size() && module[last] == '_' ? module.substr(0, last) : module;
}

bool is_one(std::string_view module, const std::vector<std::string_view>& words) {
    module = without_number(module);
    return std::any_of(words.begin(), words.end(), [module](std::string_view word) {
        return word.starts_with('=') ? module == word.substr(1) : module.find(word) != module.npos;
    });
}

bool has(const std::vector<std::string_view>& bricks, std::string_view brick) {
    return std::find(bricks.begin(), bricks.end(), brick) != bricks.end();
}

std::optional<std::uint32_t> layer_in_path(std::string_view digits) {
    std::uint32_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return !digits.empty() && read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? std::optional(value)
                                                                                                  : std::nullopt;
}

} // namespace

bool ModuleRule::owns(std::string_view brick) const { return has(bricks, brick); }
bool ModuleRule::holds(std::string_view brick) const { return has(helpers, brick); }

const ModuleRule* module_rule(std::span<const std::string_view> path) {
    static const ModuleRules known = read_rules();
    if (path.empty()) {
        return nullptr;
    }
    const auto around = path.first(path.size() - 1);
    const auto fits = [&](const ModuleRule& rule) {
        return is_one(path.back(), rule.modules) &&
               (rule.inside.empty() || std::any_of(around.begin(), around.end(), [&rule](std::string_view module) {
                    return is_one(module, rule.inside);
                }));
    };
    const auto found = std::find_if(known.rules.begin(), known.rules.end(), fits);
    return found == known.rules.end() ? nullptr : &*found;
}

std::optional<LayerOfModel> layer_of_modules(std::span<const std::string_view> path) {
    constexpr std::string_view lists[] = {"layers", "layer", "h", "blocks", "block"};
    for (std::size_t i = 0; i < path.size(); ++i) {
        const std::string_view kind = without_number(path[i]);
        if (kind.size() < path[i].size() && (kind.ends_with("Layer") || kind.ends_with("Block"))) {
            if (const auto layer = layer_in_path(path[i].substr(kind.size() + 1))) {
                return LayerOfModel{kind, *layer};
            }
        }
        const bool list = std::find(std::begin(lists), std::end(lists), path[i]) != std::end(lists);
        if (list && i + 1 < path.size()) {
            if (const auto layer = layer_in_path(path[i + 1])) {
                return LayerOfModel{kind, *layer};
            }
        }
    }
    return std::nullopt;
}

void apply(const ModuleRule& rule, LabelEvidence evidence, KernelLabel& label) {
    const bool named = label.certainty == Certainty::strong && label.evidence == LabelEvidence::name;
    if (rule.owns(label.brick)) {
        label.certainty = Certainty::strong;
        label.evidence = evidence;
    } else if (rule.decides && !(named && rule.holds(label.brick))) {
        label = {rule.bricks.front(), {}, Certainty::strong, anchor_of(rule.bricks.front()), evidence};
    }
}

} // namespace plumb::imported

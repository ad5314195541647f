// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.hpp"

#include <algorithm>
#include <CLI/CLI.hpp>

namespace plumb::cli {
namespace {

constexpr std::size_t columns = 110;
constexpr std::size_t meaning_column = 30;
constexpr std::size_t longest_choices = 60; // longer ones are told with the meaning

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : between) + word;
    }
    return out;
}

/// "UINT:UINT in [1 - 65535]" of an option that takes a range.
struct ValueRange {
    std::size_t at = std::string::npos; // where it begins in the name of the type
    std::string least, most;
};

ValueRange range_of(const std::string& type) {
    const std::string in = " in [";
    const std::size_t open = type.find(in);
    const std::size_t dash = type.find(" - ", open);
    if (open == type.npos || dash == type.npos) {
        return {};
    }
    return {type.rfind(':', open), type.substr(open + in.size(), dash - open - in.size()),
            type.substr(dash + 3, type.size() - dash - 4)};
}

/// Bounds that are only there to keep an overflow out are not worth a word.
std::string words_of(const ValueRange& range) {
    constexpr std::size_t digits = 6;
    if (range.at == std::string::npos || (range.most.size() > digits && range.least == "0")) {
        return {};
    }
    return range.most.size() > digits ? " (at least " + range.least + ")"
                                      : " (" + range.least + " to " + range.most + ")";
}

/// `name` in the left column, `text` beside it or below, in lines of at most `columns` where words allow.
void add_row(std::string& out, const std::string& name, const std::string& text) {
    std::string line = "  " + name;
    if (line.size() + 2 <= meaning_column) {
        line.resize(meaning_column, ' ');
    } else {
        out += line + '\n';
        line.assign(meaning_column, ' ');
    }
    std::size_t used = meaning_column;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        if (used > meaning_column && used + 1 + (end - at) > columns) {
            out += line + '\n';
            line.assign(meaning_column, ' ');
            used = meaning_column;
        }
        line += (used > meaning_column ? " " : "") + text.substr(at, end - at);
        used += (used > meaning_column ? 1 : 0) + end - at;
        at = end + 1;
    }
    out += line + '\n';
}

void add_options(std::string& out, const CLI::App& app, bool positional) {
    bool first = true;
    for (const CLI::Option* option : visible_options(app)) {
        if (option->get_positional() != positional) {
            continue;
        }
        out += first ? (positional ? "\nArguments:\n" : "\nOptions:\n") : "";
        first = false;
        const std::string value = value_of(*option);
        const bool apart = value.size() > longest_choices && !choices_of(*option).empty();
        const std::string name = names_of(*option) + (value.empty() ? "" : apart ? " WORD" : " " + value);
        add_row(out, name, meaning_of(*option) + (apart ? ": " + joined(choices_of(*option), ", ") : ""));
    }
}

} // namespace

std::vector<CLI::App*> visible_commands(const CLI::App& app) {
    std::vector<CLI::App*> found;
    for (CLI::App* command : const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; })) {
        if (!command->get_group().empty()) {
            found.push_back(command);
        }
    }
    return found;
}

std::vector<const CLI::Option*> visible_options(const CLI::App& app) {
    std::vector<const CLI::Option*> found;
    for (const CLI::Option* option : app.get_options()) {
        if (!option->get_group().empty()) {
            found.push_back(option);
        }
    }
    return found;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}');
    std::vector<std::string> choices;
    if (open == std::string::npos || close == std::string::npos || close < open) {
        return choices;
    }
    for (std::size_t at = open + 1; at < close;) {
        const std::size_t comma = std::min(type.find(',', at), close);
        choices.push_back(type.substr(at, comma - at));
        at = comma + 1;
    }
    return choices;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
    std::vector<std::string> flags;
    for (const std::string& name : option.get_snames()) {
        flags.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
        flags.push_back("--" + name);
    }
    return flags;
}

std::string names_of(const CLI::Option& option) {
    return option.get_positional() ? option.get_name() : joined(flags_of(option), ", ");
}

std::string value_of(const CLI::Option& option) {
    if (const auto choices = choices_of(option); !choices.empty()) {
        return joined(choices, "|");
    }
    const std::string type = option.get_type_name();
    return option.get_items_expected_max() == 0 ? std::string() : type.substr(0, range_of(type).at);
}

std::string meaning_of(const CLI::Option& option) {
    return option.get_description() + words_of(range_of(option.get_type_name())) +
           (option.get_required() ? " (required)" : "") +
           (option.get_default_str().empty() ? "" : " (default " + option.get_default_str() + ")");
}

std::string path_of(const CLI::App& app) {
    const CLI::App* parent = app.get_parent();
    return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::string usage_of(const CLI::App& app) {
    std::string usage = path_of(app) + " [OPTIONS]";
    for (const CLI::Option* option : visible_options(app)) {
        if (option->get_positional()) {
            const std::string name = option->get_name() + (option->get_items_expected_max() > 1 ? "…" : "");
            usage += option->get_required() ? " " + name : " [" + name + "]";
        }
    }
    return usage + (app.get_prefix_command() ? " -- COMMAND…" : visible_commands(app).empty() ? "" : " COMMAND");
}

std::string help_of(const CLI::App& app) {
    std::string out = app.get_description() + ".\nUsage: " + usage_of(app) + '\n';
    add_options(out, app, true);
    add_options(out, app, false);
    std::string group;
    for (const CLI::App* command : visible_commands(app)) {
        if (command->get_group() != group) {
            group = command->get_group();
            out += '\n' + group + ":\n";
        }
        add_row(out, command->get_name(), command->get_description());
    }
    return out + '\n' + app.get_footer() + '\n';
}

} // namespace plumb::cli

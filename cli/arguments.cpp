// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/help_text.hpp"
#include "cli/nearest.hpp"
#include "cli/output.hpp"

namespace plumb::cli {

namespace {

/// The innermost command that the arguments reached.
const CLI::App& reached(const CLI::App& root) {
    const std::vector<CLI::App*> chosen = root.get_subcommands();
    return chosen.empty() ? root : reached(*chosen.back());
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : visible_commands(app)) {
        names.push_back(command->get_name());
    }
    return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : visible_options(app)) {
        const std::vector<std::string> flags = flags_of(*option);
        names.insert(names.end(), flags.begin(), flags.end());
    }
    return names;
}

std::string with_hint(const std::string& sentence, const std::string& near, const CLI::App& app) {
    return sentence + (near.empty() ? "; see " + path_of(app) + " --help" : "; did you mean " + near + "?");
}

std::string unknown_word(const CLI::App& root) {
    const CLI::App& app = reached(root);
    const std::vector<std::string> left = root.remaining(true);
    if (left.empty()) {
        return with_hint(path_of(app) + " was given an argument it does not take", {}, app);
    }
    const std::string word = left.front().substr(0, left.front().find('='));
    if (word.size() > 1 && word[0] == '-') {
        const std::vector<std::string> options = option_names(app);
        if (std::find(options.begin(), options.end(), word) != options.end()) {
            return "put " + word + " right behind the command: " + path_of(app) + " " + word + " …";
        }
        // One letter is as near as any other.
        const std::string near = word.size() == 2 ? std::string() : nearest(word, options);
        return with_hint(path_of(app) + " has no option " + word, near, app);
    }
    const std::vector<std::string> commands = command_names(app);
    if (!commands.empty()) {
        return with_hint(path_of(app) + " has no command \"" + word + "\"", nearest(word, commands), app);
    }
    return with_hint(path_of(app) + " takes no further argument \"" + word + "\"", {}, app);
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (std::size_t index = 0; index < words.size(); ++index) {
        out += (index == 0 ? "" : index + 1 == words.size() ? " or " : ", ") + words[index];
    }
    return out;
}

/// The refused value in what the library says: "--phase: foo not in {…" or "--type: Check foo value in {…".
std::string value_in(const std::string& said, const std::string& option) {
    for (const auto& [before, after] : {std::pair<std::string, std::string>(": Check ", " value in {"),
                                        std::pair<std::string, std::string>(": ", " not in {")}) {
        const std::size_t begin = option.size() + before.size();
        const std::size_t end = said.find(after);
        if (said.starts_with(option + before) && end != std::string::npos && end >= begin) {
            return said.substr(begin, end - begin);
        }
    }
    return {};
}

std::string wrong_value(const CLI::App& root, const std::string& said) {
    const CLI::App& app = reached(root);
    for (const CLI::Option* option : visible_options(app)) {
        const std::vector<std::string> choices = choices_of(*option);
        const std::string value = value_in(said, option->get_name());
        if (choices.empty() || value.empty()) {
            continue;
        }
        const std::string near = nearest(value, choices);
        return option->get_name() + " takes " + joined(choices) + ", not \"" + value + "\"" +
               (near.empty() ? "" : "; did you mean " + near + "?");
    }
    return with_hint(path_of(app) + ": " + said, {}, app);
}

/// "Could not convert: --warmup = 1e3".
std::string wrong_number(const CLI::App& app, const std::string& said) {
    for (const CLI::Option* option : visible_options(app)) {
        const std::string before = "Could not convert: " + option->get_name() + " = ";
        if (said.starts_with(before)) {
            const std::string type = option->get_type_name();
            return path_of(app) + ": " + option->get_name() + " takes a " +
                   (type.find("INT") == type.npos ? "number" : "whole number") + ", not \"" +
                   said.substr(before.size()) + '"';
        }
    }
    return with_hint(path_of(app) + ": " + said, {}, app);
}

/// "--metric: 1 required TEXT:{p50,p90} missing", "--phase: At Most 1 required but received 2".
std::string wrong_count(const CLI::App& app, const std::string& said) {
    for (const CLI::Option* option : visible_options(app)) {
        if (said.starts_with(option->get_name() + ": At Most 1 required")) {
            return path_of(app) + ": " + names_of(*option) + " is given more than once; give it once";
        }
        if (said.starts_with(option->get_name() + ": ") && said.ends_with(" missing")) {
            const std::vector<std::string> choices = choices_of(*option);
            return path_of(app) + ": " + names_of(*option) +
                   " needs a value: " + (choices.empty() ? value_of(*option) : joined(choices));
        }
    }
    return with_hint(path_of(app) + ": " + said, {}, app);
}

std::string missing_word(const CLI::App& root, const std::string& said) {
    const CLI::App& app = reached(root);
    const std::vector<std::string> commands = command_names(app);
    if (commands.empty()) {
        return with_hint(path_of(app) + ": " + said, {}, app);
    }
    return root.remaining(true).empty() ? with_hint(path_of(app) + " needs a command: " + joined(commands), {}, app)
                                        : unknown_word(root);
}

std::string sentence_of(const CLI::App& root, const CLI::ParseError& error) {
    const CLI::App& app = reached(root);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        return unknown_word(root);
    }
    if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
        return wrong_value(root, error.what());
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        return missing_word(root, error.what());
    }
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
        return wrong_number(app, error.what());
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        return wrong_count(app, error.what());
    }
    return with_hint(path_of(app) + ": " + error.what(), {}, app);
}

/// The library reads "-1" for a whole number from 0 on as the largest one, and so what is larger than that; "010" as 8, and "0x10"
/// as 16.
std::string no_other_number(std::string& word) {
    const std::size_t sign = word.starts_with("-") ? 1 : 0;
    const std::size_t digit = word.find_first_not_of('0', sign);
    if (digit == std::string::npos || digit == sign) {
        return {};
    }
    if (word[digit] == 'x' || word[digit] == 'X') {
        return word + " is no whole number";
    }
    if (word[digit] >= '0' && word[digit] <= '9') {
        word.erase(sign, digit - sign);
    }
    return {};
}

std::string no_other_number_from_0(std::string& word) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
    return word.starts_with("-")                       ? word + " is no whole number from 0 on"
           : read.ec == std::errc::result_out_of_range ? word + " is larger than 18446744073709551615"
                                                       : no_other_number(word);
}

void refuse_other_numbers(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        if (option->get_type_name().starts_with("UINT")) {
            option->transform(CLI::Validator(no_other_number_from_0, ""));
        } else if (option->get_type_name().starts_with("INT")) {
            option->transform(CLI::Validator(no_other_number, ""));
        }
    }
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
        refuse_other_numbers(*command);
    }
}

bool wants_json(int argc, const char* const* argv) {
    return std::any_of(argv + 1, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

/// Of `plumb run [OPTIONS] -- COMMAND…` the first --: the library would hand what follows it to the root.
std::vector<const char*> without_separator(int argc, const char* const* argv) {
    std::vector<const char*> words(argv, argv + argc);
    if (argc < 2 || std::strcmp(argv[1], "run") != 0) {
        return words;
    }
    for (std::size_t at = 2; at < words.size() && words[at][0] == '-'; ++at) {
        const std::string word = words[at];
        if (word == "--") {
            words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        }
        at += word == "-o" || word == "--out";
    }
    return words;
}

} // namespace

int run(CLI::App& root, int argc, const char* const* argv, const int& exit_code) {
    const bool json = wants_json(argc, argv);
    // The library would take a mistyped command for an argument of the root.
    if (argc > 1 && argv[1][0] != '-') {
        const std::vector<std::string> commands = command_names(root);
        if (std::find(commands.begin(), commands.end(), argv[1]) == commands.end()) {
            const std::string word = argv[1];
            if (std::error_code none; std::filesystem::is_regular_file(word, none)) {
                return say_error("\"" + word + "\" is a file, and a command comes first: plumb report " + word, json);
            }
            return say_error(
                with_hint("plumb has no command \"" + std::string(argv[1]) + "\"", nearest(argv[1], commands), root),
                json);
        }
    }
    if (argc < 2) {
        std::cerr << help_of(root);
        return exit_bad_input;
    }
    refuse_other_numbers(root);
    try {
        const std::vector<const char*> words = without_separator(argc, argv);
        root.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::CallForHelp&) {
        std::cout << help_of(reached(root));
        return exit_ok;
    } catch (const CLI::CallForVersion& version) {
        std::cout << version.what() << '\n';
        return exit_ok;
    } catch (const CLI::ParseError& error) {
        return say_error(sentence_of(root, error), json);
    }
    return exit_code;
}

} // namespace plumb::cli

// SPDX-License-Identifier: Apache-2.0
// What is shown of the command tree, for --help, the page for man, Markdown and completion alike. Pure functions of main's thread.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace plumb::cli {

/// Subcommands that help shows.
[[nodiscard]] std::vector<CLI::App*> visible_commands(const CLI::App& app);
/// Options that help shows.
[[nodiscard]] std::vector<const CLI::Option*> visible_options(const CLI::App& app);

/// What an option may be set to, where it is a fixed list; else empty.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// {"-o", "--output"}: the flags of an option, short ones first.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::Option& option);

/// "-o, --output"; of a positional its name.
[[nodiscard]] std::string names_of(const CLI::Option& option);

/// What may follow an option: its choices, "decode|prefill", or a word for the kind of value. Empty for a flag.
[[nodiscard]] std::string value_of(const CLI::Option& option);

/// What it does, and whether it is required, which numbers it takes and its default.
[[nodiscard]] std::string meaning_of(const CLI::Option& option);

/// "plumb trace": the command as it is typed.
[[nodiscard]] std::string path_of(const CLI::App& app);

/// "plumb trace [OPTIONS] recording".
[[nodiscard]] std::string usage_of(const CLI::App& app);

/// What --help prints for this command.
[[nodiscard]] std::string help_of(const CLI::App& app);

} // namespace plumb::cli

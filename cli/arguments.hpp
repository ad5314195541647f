// SPDX-License-Identifier: Apache-2.0
// Reads the command line, runs what it names, and turns every mistake in it into one sentence. One thread: main's.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace plumb::cli {

/// Runs the command. 0 after --help and --version, 2 after wrong arguments, else what the command stored.
int run(CLI::App& root, int argc, const char* const* argv, const int& exit_code);

/// What an option may be set to, where it is a fixed list; else empty.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

/// "-o, --output": the names of an option, short ones first.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::Option& option);

/// What --help prints for this command.
[[nodiscard]] std::string help_of(const CLI::App& app);

/// Subcommands that help shows.
[[nodiscard]] std::vector<CLI::App*> visible_commands(const CLI::App& app);
/// Options that help shows.
[[nodiscard]] std::vector<const CLI::Option*> visible_options(const CLI::App& app);

} // namespace plumb::cli

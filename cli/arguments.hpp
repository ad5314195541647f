// SPDX-License-Identifier: Apache-2.0
// Reads the command line, runs what it names, and turns every mistake in it into one sentence. One thread: main's.
#pragma once

namespace CLI {
class App;
} // namespace CLI

namespace plumb::cli {

/// Runs the command. 0 after --help and --version, 2 after wrong arguments, else what the command stored.
int run(CLI::App& root, int argc, const char* const* argv, const int& exit_code);

} // namespace plumb::cli

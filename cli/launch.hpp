// SPDX-License-Identifier: Apache-2.0
// A child process that is the user's own: it gets our standard streams, the signals that are sent to us, and an
// environment with a few more variables. One thread: main's; one child at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::cli {

using Environment = std::vector<std::pair<std::string, std::string>>; // what is set beside what is there

/// From now on this process ignores that signal. A child has it as whoever started this process left it.
void ignore_signal(int signal);

/// Runs the command and waits for it; its status as waitpid() gives it. An error with one sentence where it cannot be
/// started: not_found where there is none, else permission.
Result<int> run_child(const std::vector<std::string>& command, const Environment& environment);

/// What a shell would say the child's exit code is.
[[nodiscard]] int exit_code_of_status(int status);

/// Where a signal ended the child, ends this process by the same one. Returns where none did.
void end_as(int status);

} // namespace plumb::cli

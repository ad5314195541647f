// SPDX-License-Identifier: Apache-2.0
// What this process shares among all ways in: whether anything is to be recorded, the one profiler, and the line to
// `plumb run`. Nothing is made, no thread, no ring, no file, before an engine was met.
// Thread rule: any thread. Never destroyed: the process ends around it.
#pragma once

#include <string>

#include "plumb/profiler.hpp"

struct plumb_profiler;

namespace plumb::attach {

/// Whether PLUMB asks for a recording and this process may be looked into: not one with the rights of another user,
/// where base::environment() knows no variable. Settled when first asked.
[[nodiscard]] bool wanted();

/// The profiler of this process, made when first asked for, and closed when the process exits; and the same as plumb.h has it.
Profiler& profiler();
plumb_profiler* recording();
/// The same, if it was made already; null else.
[[nodiscard]] Profiler* made_profiler() noexcept;
/// False in a forked child of the process that made it.
[[nodiscard]] bool owns_recording();

/// The program has scopes on CUDA streams, by way of functions.hpp.
void use_queues() noexcept;
[[nodiscard]] bool uses_queues() noexcept;

/// Tells `plumb run` one line, where the process runs under it: "engine", "recording" or "sentence", and its text. False: it could not be
/// told, as by a process of another user, or of another PID namespace.
bool tell(const char* kind, const std::string& text);
/// A sentence for whoever looks at the run: told to `plumb run`, else on standard error. Each once.
void say(const std::string& sentence);

/// Calls this when the process exits, before the profiler is closed.
void at_close(void (*function)());

} // namespace plumb::attach

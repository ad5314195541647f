// SPDX-License-Identifier: Apache-2.0
// plumb.h as this library has it, for a program with Python's package, which finds it in its process: so that the program's scopes and
// what is attached to are one recording. Thread rule: any thread.
#pragma once

namespace plumb::attach {

/// The function of plumb.h of that name; null: this library has none, or nothing is to be recorded. plumb_open() without a spec gives the
/// recording of this process, which plumb_close() leaves open.
[[nodiscard]] void* function(const char* name);

} // namespace plumb::attach

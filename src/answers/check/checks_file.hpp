// SPDX-License-Identifier: Apache-2.0
// A file of checks for continuous integration (plumb.checks/1, docs/checks.md). Pure function of the file.
#pragma once

#include <string>

#include "answers/check/check.hpp"

namespace plumb {

/// An unknown key, a wrong type and a wrong schema are errors that say what is known.
[[nodiscard]] Result<Invariants> read_checks_file(const std::string& path);

} // namespace plumb

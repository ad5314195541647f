// SPDX-License-Identifier: Apache-2.0
// What must be said of a trace beside its figures, one sentence each. Pure function; any thread.
#pragma once

#include <string>
#include <vector>

#include "import/steps.hpp"
#include "import/trace.hpp"

namespace plumb::imported {

[[nodiscard]] std::vector<std::string> quality_notes(const Trace& trace, const Steps& steps);

} // namespace plumb::imported

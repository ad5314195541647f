// SPDX-License-Identifier: Apache-2.0
// A recording -> what became of its captured graphs. Pure; any thread, one at a time per source.
#pragma once

#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "resolve/record_source.hpp"

namespace plumb::analysis {

[[nodiscard]] Result<ReplayReport> build_replays(resolve::RecordSource& source);

} // namespace plumb::analysis

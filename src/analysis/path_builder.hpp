// SPDX-License-Identifier: Apache-2.0
// A recording -> the execution graph of one of its steps, its critical path and what to shorten (docs/path.md).
// Pure; any thread, one at a time per source.
#pragma once

#include "plumb/execgraph.hpp"
#include "plumb/result.hpp"
#include "resolve/record_source.hpp"

namespace plumb::analysis {

[[nodiscard]] Result<PathReport> build_path(resolve::RecordSource& source, const PathOptions& options);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// A recording -> where its wall clock went (docs/wall.md). Pure; any thread, one at a time per source.
#pragma once

#include "analysis/wall_report.hpp"
#include "plumb/result.hpp"
#include "resolve/record_source.hpp"

namespace plumb::analysis {

[[nodiscard]] Result<WallReport> build_wall(resolve::RecordSource& source, const WallOptions& options);

} // namespace plumb::analysis

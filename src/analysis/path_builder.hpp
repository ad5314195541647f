// SPDX-License-Identifier: Apache-2.0
// A recorded run -> the execution graph of one of its steps, its critical path and what to shorten (docs/reference/path.md).
// Pure; one thread.
#pragma once

#include "analysis/path_report.hpp"
#include "analysis/path_step.hpp"
#include "plumb/result.hpp"

namespace plumb::analysis {

class PathReader final : public StepCollector {
  public:
    /// REQUIRES: the facts outlive it.
    PathReader(const recording::RunFacts& facts, const PathOptions& options)
        : StepCollector(facts, options.step, options.slowest, options.phase), facts_(facts), options_(options) {}

    /// After the reading. Errors: not_found, unsupported, as status(); invalid_argument for the options.
    [[nodiscard]] Result<PathReport> take() const;

  private:
    const recording::RunFacts& facts_;
    const PathOptions options_;
};

[[nodiscard]] Result<PathReport> build_path(const recording::RecordedRun& run, const PathOptions& options);

} // namespace plumb::analysis

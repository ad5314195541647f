// SPDX-License-Identifier: Apache-2.0
// Numbers of runs -> a change with its interval, and the verdict on it (docs/reference/compare.md). Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/comparison.hpp"
#include "stats/student_t.hpp"

namespace plumb::analysis {

/// Difference of the mean logarithms of two sides by Welch's t: log(changed / base).
struct LogChange {
    bool known = false;
    std::string reason; // where it is not
    stats::ConfidenceInterval interval;
    double noise = 0; // pooled standard deviation between runs of one side
};

/// Two-sided with true t quantiles at `confidence`. Not known: fewer than 3 runs a side, a value that is not above 0.
[[nodiscard]] LogChange log_change(std::span<const double> base_logs, std::span<const double> changed_logs,
                                   double confidence);
[[nodiscard]] LogChange ratio_change(std::span<const double> base, std::span<const double> changed, double confidence);

[[nodiscard]] Change as_share(const LogChange& change);

struct Judgement {
    Verdict verdict = Verdict::undecided;
    std::string reason;
};

/// FAST or SLOW where the interval leaves 0 out and the gap exceeds the noise between runs; SAME where it lies within
/// the band; else undecided, with the reason.
[[nodiscard]] Judgement judge(const LogChange& change, double same_band);

/// What each run did to all bricks alike, as seen by the bricks other than the one asked for: the median, weighted by
/// time, of how far each lies from its own middle. `logs[b][r]`, weights by brick. Empty with fewer than 3 other bricks.
[[nodiscard]] std::vector<double> pace_without(std::size_t brick, const std::vector<std::vector<double>>& logs,
                                               const std::vector<double>& weights);

} // namespace plumb::analysis

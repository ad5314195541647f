// SPDX-License-Identifier: Apache-2.0
// A report made by hand for tests: every kind of row, figure and remark occurs. Plain data.
#pragma once

#include "plumb/results.hpp"

namespace plumb::answers {

/// A row of one decode step count; times in microseconds.
[[nodiscard]] Row brick_row(Phase phase, const char* name, double calls_per_step, double p50_us, std::uint64_t steps);

/// Decode and prefill with full accounts, nothing lost, nothing to remark.
[[nodiscard]] Report healthy_report();

/// healthy_report() plus laps, parents, overlap, labels, losses, notes, layers, tracks, categories.
[[nodiscard]] Report crowded_report();
/// Where peaks, counters and a note by the user are known.
[[nodiscard]] Report peaks_report();
/// A decode loop of captured graphs, with an eager queue that is timed in some steps.
[[nodiscard]] Report device_report();

} // namespace plumb::answers

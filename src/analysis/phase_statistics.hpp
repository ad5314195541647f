// SPDX-License-Identifier: Apache-2.0
// The counted steps of one phase: tokens, periods, spans and the wall account. Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/period_ledger.hpp"
#include "analysis/row_statistics.hpp"
#include "plumb/results.hpp"
#include "resolve/step_table.hpp"
#include "stats/distribution.hpp"

namespace plumb::analysis {

/// Tokens of steps by their periods. `crossed`: why these make no rate; empty: they do.
[[nodiscard]] Figure token_rate(std::uint64_t tokens, std::uint64_t steps, std::uint64_t without_tokens,
                                std::int64_t period_ns, const std::string& crossed);

class PhaseStatistics {
  public:
    void add(const resolve::ResolvedStep& step, const WallSums& wall);
    /// A step that ran at the same time, on the host, as one of another phase.
    void add_crossed(const resolve::ResolvedStep& step) { crossed_ += step.warmup || step.left_out ? 0 : 1; }
    /// So many did that the periods are no measure of the phase.
    [[nodiscard]] bool crossed() const noexcept { return crossed_ * 20 > steps_; }
    [[nodiscard]] std::string crossed_words() const;
    /// A step that ran at the same time, on the host, as the one of its phase that ended before.
    void add_overlapped(const resolve::ResolvedStep& step) { overlapped_ += step.warmup || step.left_out ? 0 : 1; }
    /// How many, where so many did that a period is no length of a step; else 0.
    [[nodiscard]] std::uint64_t overlapped() const noexcept { return overlapped_ * 20 > steps_ ? overlapped_ : 0; }
    /// The device queues' busy time in the period of a step in which they were timed.
    void add_device(const WallSums& device);

    [[nodiscard]] bool any() const noexcept { return steps_ + warmup_steps_ + sampled_steps_ != 0; }
    [[nodiscard]] PhaseSummary finish(Phase phase) const;
    [[nodiscard]] PhaseBase base(Phase phase) const;
    /// For rows of queues that are timed in some steps only: those steps, each as long as a counted one.
    [[nodiscard]] PhaseBase timed_base(Phase phase) const;
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] const WallSums& device() const noexcept { return device_; }
    [[nodiscard]] std::uint64_t device_steps() const noexcept { return device_steps_; }

  private:
    [[nodiscard]] Figure tokens_per_second() const;
    [[nodiscard]] WallAccount account() const;

    std::uint64_t steps_ = 0, warmup_steps_ = 0, sampled_steps_ = 0;
    std::uint64_t timed_steps_ = 0, device_steps_ = 0;
    std::uint64_t steps_without_tokens_ = 0, crossed_ = 0, overlapped_ = 0;
    std::uint64_t prefill_tokens_ = 0, decode_tokens_ = 0, sequences_ = 0;
    std::uint64_t stamped_steps_ = 0, kernels_ns_ = 0, kernel_stretch_ns_ = 0;
    stats::DurationStatistics periods_, spans_;
    WallSums wall_, device_;
};

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// The counted steps of one phase: tokens, periods, spans and the wall account. Owned by one report; one thread.
#pragma once

#include <cstdint>

#include "analysis/period_ledger.hpp"
#include "analysis/row_statistics.hpp"
#include "plumb/results.hpp"
#include "resolve/step_table.hpp"
#include "stats/distribution.hpp"

namespace plumb::analysis {

class PhaseStatistics {
  public:
    void add(const resolve::Step& step, const WallSums& wall);

    [[nodiscard]] bool any() const noexcept { return steps_ + warmup_steps_ != 0; }
    [[nodiscard]] PhaseSummary finish(Phase phase) const;
    [[nodiscard]] PhaseBase base(Phase phase) const;

  private:
    [[nodiscard]] Figure tokens_per_second() const;
    [[nodiscard]] WallAccount account() const;

    std::uint64_t steps_ = 0, warmup_steps_ = 0;
    std::uint64_t prefill_tokens_ = 0, decode_tokens_ = 0, sequences_ = 0;
    stats::DurationStatistics periods_, spans_;
    WallSums wall_;
};

} // namespace plumb::analysis

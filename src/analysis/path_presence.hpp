// SPDX-License-Identifier: Apache-2.0
// When the threads of one step were off the CPU, by the account that `plumb wall` is made of. Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "analysis/interval.hpp"
#include "analysis/period_observer.hpp"
#include "analysis/wall_clock.hpp"

namespace plumb::analysis {

/// By id of a track, disjoint and in order. A thread that is not in it was on the CPU as far as anybody knows.
using ThreadsAway = std::map<std::uint32_t, std::vector<Interval>>;

class PathPresence final : public PeriodObserver {
  public:
    /// REQUIRES: steps and tracks live until take().
    PathPresence(const resolve::StepTable& steps, const resolve::TrackTable& tracks, Interval wanted);

    /// Every batch of the recording, in its order.
    void add(const resolve::ResolvedBatch& batch) { clock_.consume(batch); }
    [[nodiscard]] ThreadsAway take();

    void begin(const resolve::StepTable&, const resolve::TrackTable&, PeriodLedger&) override {}
    void consume(const resolve::ResolvedBatch&) override {}
    void settled(std::size_t step, const WallSums& sums, std::vector<Detail>& details, bool complete) override;
    void end() override {}

  private:
    const resolve::StepTable& steps_;
    const resolve::TrackTable& tracks_;
    Interval wanted_;
    WallClock clock_;
    std::vector<Interval> known_;                            // periods, in order
    std::map<std::uint32_t, std::vector<Interval>> present_; // by dense index
};

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// What wants to know more of a period than its sums: it sees every batch before the ledger does, may add details of its own,
// and is handed all intervals of a period when that is settled. Owned by the caller of the report; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/interval.hpp"

namespace plumb::resolve {
struct ResolvedBatch;
class StepTable;
class TrackTable;
} // namespace plumb::resolve

namespace plumb::analysis {

class PeriodLedger;
struct WallSums;

/// One interval of a period, clipped to it.
struct Detail {
    enum class Kind : std::uint8_t {
        brick,    // a leaf brick of a track
        lap,      // a lap of a track
        presence, // a host thread was on the CPU, or a device queue ran a command
        unsure,   // … and that command may have been waiting for its launch
        sure,     // … which it was not any more, since the launch was over
        flying,   // a command was on its way to a queue: from the begin of its launch
        queued,   // a command had reached its queue and did not begin
        submit,   // a host thread was inside the launch of a command for queue `other`, in no inner scope
        piece,    // a host thread was inside a named scope, in no inner one
        whole,    // a named scope that has inner ones, from begin to end
        waiting,  // a host thread was in a call that waits for a device: of imported traces
        unlinked, // before a command whose launch is not known: of imported traces
    };
    Interval interval;
    Kind kind = Kind::brick;
    std::uint16_t name = 0;
    std::uint32_t track = 0; // dense index
    std::uint32_t other = 0;
};

class PeriodObserver {
  public:
    virtual ~PeriodObserver() = default;
    /// Before the first batch, where there are complete steps; all of it lives until end().
    virtual void begin(const resolve::StepTable& steps, const resolve::TrackTable& tracks, PeriodLedger& ledger) = 0;
    virtual void consume(const resolve::ResolvedBatch& batch) = 0;
    /// The details, in no order, are the observer's to change; not `complete`: there were too many of them to keep.
    virtual void settled(std::size_t step, const WallSums& sums, std::vector<Detail>& details, bool complete) = 0;
    /// After the last period.
    virtual void end() = 0;
};

} // namespace plumb::analysis

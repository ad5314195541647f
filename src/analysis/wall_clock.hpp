// SPDX-License-Identifier: Apache-2.0
// Feeds the period ledger from resolved batches: leaf bricks and laps of every track, presence of host threads from CPU
// time, of device queues from their commands. Owned by one report; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/period_ledger.hpp"
#include "analysis/thread_presence.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {

class WallClock {
  public:
    /// `settled_device`: the same periods with nothing but the device queues in them; only called where there are some.
    /// `observer` (may be null) sees every batch first, and what each period is made of.
    WallClock(const resolve::StepTable& steps, PeriodLedger::Settled settled, PeriodLedger::Settled settled_device,
              PeriodObserver* observer)
        : ledger_(steps, std::move(settled)), device_ledger_(steps, std::move(settled_device)), observer_(observer) {
        ledger_.observe(observer);
    }

    void consume(const resolve::ResolvedBatch& batch);
    void finish();
    [[nodiscard]] PeriodLedger& ledger() noexcept { return ledger_; }

    /// Sentences about what the account could not know.
    [[nodiscard]] std::vector<std::string> notes() const;

  private:
    struct TrackState {
        TrackState(PeriodLedger& ledger, std::int64_t long_ns, std::uint32_t track_index, recording::TrackKind is,
                   std::string thread_name)
            : presence(ledger, long_ns, track_index), kind(is), device(is != recording::TrackKind::host_thread),
              track(track_index), name(std::move(thread_name)) {}
        ThreadPresence presence;
        recording::TrackKind kind;
        bool device;
        bool imported = false;        // of the host, a trace tells calls alone: the rest of its time counts as busy
        bool sometimes_timed = false; // a device that is timed in some steps or replays only
        std::uint32_t track;          // dense index
        std::string name;
        std::size_t hint = 0;
        std::size_t device_hint = 0;
        std::uint64_t samples = 0;
    };

    TrackState& state_of(const resolve::ResolvedBatch& batch);
    void sample(TrackState& state, const resolve::Sample& sample);
    void other_sample(TrackState& state, const resolve::Sample& sample);

    PeriodLedger ledger_;
    PeriodLedger device_ledger_;
    PeriodObserver* observer_;
    bool any_queue_ = false;
    std::vector<std::unique_ptr<TrackState>> states_; // by track index
};

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Follows a report through a recording and accounts for every period by lanes: the host's threads, the queues of each device,
// all devices together. Owned by one answer; one thread. Memory: what the ledger holds, and the slowest steps.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/host_pieces.hpp"
#include "analysis/launch_facts.hpp"
#include "analysis/period_ledger.hpp"
#include "analysis/wall_report.hpp"
#include "analysis/wall_sweep.hpp"
#include "plumb/backend.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {

class WallLanes final : public PeriodObserver {
  public:
    static constexpr std::size_t most_slowest = 1000;
    static constexpr std::size_t most_lanes = 64; // devices beyond it are in that of all devices only, with a note

    struct Lane {
        std::string name;
        bool device = false;
        bool fed = false; // it is known which threads launch its commands
        std::uint64_t tracks = 0;
        std::vector<Role> roles;
    };
    /// steps: counted ones of the host; each of `lanes` has its own.
    struct Sums {
        std::uint64_t steps = 0, tokens = 0;
        std::uint64_t without_tokens = 0; // of steps
        std::uint64_t untimed = 0;        // of steps: those in which queues were not timed
        std::int64_t period = 0;
        std::vector<LaneSums> lanes;
        std::uint64_t scopes = 0, laps = 0, launches = 0; // recorded by host threads
    };
    struct OneStep {
        resolve::ResolvedStep step;
        Sums sums;
    };

    /// REQUIRES: they outlive it. The facts may be known later than begin(), but not than the first batch.
    WallLanes(const LaunchFacts& facts, const std::vector<recording::ClockInfo>& clocks, const WallOptions& options);

    void begin(const resolve::StepTable& steps, const resolve::TrackTable& tracks, PeriodLedger& ledger) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    void settled(std::size_t step, const WallSums& sums, std::vector<Detail>& details, bool complete) override;
    void end() override;

    [[nodiscard]] const std::vector<Lane>& lanes() const noexcept { return lanes_; }
    [[nodiscard]] const Sums& of(Phase phase) const noexcept { return phases_[static_cast<std::size_t>(phase)]; }
    /// The longest period first; call once, at the end.
    [[nodiscard]] std::vector<OneStep> take_slowest();
    /// The least and the greatest id of a complete step; none where there is no such step.
    [[nodiscard]] const std::optional<std::pair<std::uint64_t, std::uint64_t>>& step_ids() const noexcept {
        return step_ids_;
    }
    /// Steps asked for that held too much to keep.
    [[nodiscard]] std::uint64_t incomplete() const noexcept { return incomplete_; }
    /// Some thread was in a call that waits for a device: of imported traces.
    [[nodiscard]] bool waits_known() const noexcept { return waits_known_; }
    /// Sentences about what it could not know.
    [[nodiscard]] std::vector<std::string> notes() const;

  private:
    struct TrackState {
        HostPieces pieces;
        std::size_t hint = 0;
        std::optional<resolve::CpuStamp> stamp;                         // of an imported trace, the last one
        std::int64_t end_ns = std::numeric_limits<std::int64_t>::min(); // of its commands so far
    };

    void add_lane(std::string name, std::vector<std::size_t> queues);
    void find_feeders();
    void host_scope(const resolve::ResolvedBatch& batch, const resolve::Sample& sample);
    void host_launch(const resolve::ResolvedBatch& batch, const resolve::Submission& submission);
    void add_pieces(std::size_t track, Detail detail, Interval interval);
    void device_scope(const resolve::ResolvedBatch& batch, const resolve::Sample& sample);
    void waited(const resolve::ResolvedBatch& batch);
    void launched(std::size_t track, const resolve::Sample& sample, const resolve::Launch& launch);
    void count(const resolve::Sample& sample);
    [[nodiscard]] bool asked_for(const resolve::ResolvedStep& step) const;
    [[nodiscard]] LaneSums host_only(Interval period, const WallSums& sums, std::vector<Detail>& details);
    void keep_slowest(const resolve::ResolvedStep& step, Sums sums);

    const LaunchFacts& facts_;
    const std::vector<recording::ClockInfo>& clocks_;
    const WallOptions& options_;
    const resolve::StepTable* steps_ = nullptr; // from begin() to end(), as the next two
    const resolve::TrackTable* tracks_ = nullptr;
    PeriodLedger* ledger_ = nullptr;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> step_ids_;
    std::uint64_t details_left_out_ = 0;
    std::uint64_t incomplete_ = 0; // periods
    std::uint64_t devices_without_lane_ = 0;
    bool feeders_known_ = false;
    bool queues_sampled_ = false; // some queue is timed in some steps only
    bool imported_ = false;       // of threads, calls alone are known
    bool waits_known_ = false;
    bool inferred_ = false; // the recording does not tell launches of scopes
    std::vector<Lane> lanes_;
    std::vector<std::unique_ptr<TrackState>> states_; // by dense index
    std::array<Sums, 4> phases_;                      // by Phase
    std::vector<OneStep> slowest_;                    // a heap, the shortest on top
    WallSweep sweep_;
    std::vector<Interval> busy_, idle_;
};

} // namespace plumb::analysis

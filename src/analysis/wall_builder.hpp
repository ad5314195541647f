// SPDX-License-Identifier: Apache-2.0
// A recorded run -> where its wall clock went (docs/reference/wall.md). Pure; one thread.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "analysis/launch_facts.hpp"
#include "analysis/no_step.hpp"
#include "analysis/off_cpu.hpp"
#include "analysis/report_builder.hpp"
#include "analysis/wall_lanes.hpp"
#include "analysis/wall_report.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"
#include "resolve/name_table.hpp"

namespace plumb::analysis {

class WallReader final : public read::Observer {
  public:
    /// REQUIRES: facts and report outlive the reading, and the report reads along.
    WallReader(const recording::RunFacts& facts, const WallOptions& options, ReportReader& report);

    /// After the reading, once. Error not_found: no step of this run is what the options ask for.
    [[nodiscard]] Result<WallReport> take();

    [[nodiscard]] bool looks_at(const recording::TrackInfo& track) const override;
    void look(const resolve::ResolvedBatch& batch) override { look_.look(batch); }
    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override {
        if (steps.empty()) {
            no_step_ = no_step(steps);
        }
        launches_ = look_.finish(steps, tracks);
        off_cpu_ = off_cpu_causes(facts_, steps, options_.step);
        intervals_ = off_cpu_intervals(facts_, steps);
    }

  private:
    [[nodiscard]] WallPhase phase_of(const WallLanes::Sums& sums, Phase phase) const;
    [[nodiscard]] WallLane lane_of(const WallLanes::Lane& lane, const LaneSums& sums, Phase phase) const;
    void set_idle(WallLane& made, const WallLanes::Lane& lane, const LaneSums& sums) const;
    static void set_idle_absent(WallLane& made, const std::string& reason);
    void add_from_report(WallPhase& made, const WallLanes::Sums& sums, const Report& report) const;
    [[nodiscard]] Error no_such_step(const Report& report) const;

    const recording::RunFacts& facts_;
    const WallOptions options_;
    ReportReader& report_;
    const std::size_t number_; // of the report that this is made of
    const bool any_queue_;
    const bool imported_; // from a trace that tells launches of the host and nothing else of it
    resolve::NameTable names_;
    LaunchLook look_;
    LaunchFacts launches_;
    WallLanes lanes_;                     // told by the report
    std::array<OffCpuCauses, 4> off_cpu_; // by phase
    std::vector<OffCpuInterval> intervals_;
    std::string no_step_; // why there is none
};

[[nodiscard]] Result<WallReport> build_wall(const recording::RecordedRun& run, const WallOptions& options);

} // namespace plumb::analysis

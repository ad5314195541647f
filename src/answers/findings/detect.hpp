// SPDX-License-Identifier: Apache-2.0
// What findings are made from, and the functions that look for each kind. Pure; any thread. A new kind is a word of FindingKind, a
// function here and its call in findings.cpp; docs/reference/findings.md says when it speaks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/path_report.hpp"
#include "analysis/replay_builder.hpp"
#include "analysis/wall_report.hpp"
#include "answers/findings/findings.hpp"
#include "answers/layers/layers.hpp"
#include "answers/ranks/ranks.hpp"
#include "plumb/results.hpp"
#include "read/read.hpp"

namespace plumb::findings {

/// How long each complete step took, in the order of their ends, of how many tokens it was, whether it replayed a captured graph, and
/// for how long its thread was off the CPU.
class StepWatch final : public read::Observer {
  public:
    struct Step {
        Phase phase = Phase::none;
        bool warmup = false, counted = false, replayed = false; // counted: as the figures of a report are
        double period_ns = 0;
        double off_cpu_ns = 0; // of its thread, of that; 0 where CPU time is not known
        std::uint32_t prefill_tokens = 0, decode_tokens = 0;
        [[nodiscard]] bool like(const Step& other) const {
            return prefill_tokens == other.prefill_tokens && decode_tokens == other.decode_tokens;
        }
    };

    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }

  private:
    void read_cpu(const resolve::ResolvedBatch& batch);

    std::vector<Step> steps_;
    const resolve::StepTable* table_ = nullptr;
    std::map<std::size_t, resolve::CpuStamp> last_; // by track
    /// By track: its steps, and the first that the last stamp lay in or before.
    std::map<std::uint32_t, std::pair<std::vector<std::uint32_t>, std::size_t>> by_track_;
};

/// What other answers found in one run.
struct RunAnswers {
    const Report& report; // with brick_layers
    const WallReport& wall;
    const LayerReport& layers; // of sums per step
    const ReplayReport& replays;
    const Result<PathReport>& path;
    const std::vector<StepWatch::Step>& steps;
};

inline constexpr std::uint64_t many_steps = 30;

/// Collects what the functions below find in one phase, and judges how sure it is.
class FoundInPhase {
  public:
    FoundInPhase(const RunAnswers& run, const WallPhase& phase);

    const RunAnswers& run;
    const WallPhase& wall;
    const Phase phase;
    [[nodiscard]] double period_ns() const { return period_ns_; } // mean
    [[nodiscard]] double steps() const { return static_cast<double>(wall.steps); }
    [[nodiscard]] double all_steps() const { return steps_of_phase_; } // with those that are not counted

    /// Keeps it where it is large enough; fills in share and weight. `at_best`: how sure it may be, if as many steps tell as are
    /// `enough`.
    void add(Finding finding, Sureness at_best, std::string because, std::uint64_t of_steps,
             std::uint64_t enough = many_steps);
    void cannot(FindingKind kind, const std::string& reason) { not_looked_for.push_back({kind, reason}); }

    std::vector<Finding> findings;
    std::vector<NotLookedFor> not_looked_for;

  private:
    double period_ns_ = 0, all_ns_ = 0; // of the counted steps of the phase, mean; of all steps, together
    double steps_of_phase_ = 0, phase_ns_ = 0;
    double lost_share_ = 0;
};

void find_waits(FoundInPhase& found); // host_bound, launch_gaps, off_cpu
void find_odd_layers(FoundInPhase& found);
void find_slow_bricks(FoundInPhase& found);
void find_ping_pong(FoundInPhase& found);
void find_graph_waste(FoundInPhase& found); // padding, eager_steps
void find_slow_warm_up(FoundInPhase& found);
void find_own_cost(FoundInPhase& found);
void find_steal(FoundInPhase& found);

/// Of the ranks of one job.
[[nodiscard]] std::vector<Finding> find_stragglers(const RanksReport& ranks);

/// Three standard errors of the mean call of a row.
[[nodiscard]] double error_of(const Row& row);
/// Its calls run side by side, so many at once: the step waits for their time divided by that.
[[nodiscard]] double calls_at_once(const Row& row);
inline constexpr double side_by_side = 1.1; // calls at once: more than rounding explains
/// How much of a brick's time the step would be shorter by without it, 0..1, as the graph of one step tells; 1: it does not.
[[nodiscard]] double share_of_path(const FoundInPhase& found, const std::string& brick);
/// Of the time that threads of the host were off the CPU, 0..1: when that was is not known.
[[nodiscard]] double uncertain_share(const WallLane& host);
/// Of that brick of the host, per step: it was off the CPU, as far as it is known when.
[[nodiscard]] double off_cpu_ns(const FoundInPhase& found, const std::string& brick, bool device);

/// "812.4 us"; "35.1 %".
[[nodiscard]] std::string us(double ns);
[[nodiscard]] std::string percent(double share);
[[nodiscard]] EvidenceRow us_per_step(const char* command, std::string what, double ns);

} // namespace plumb::findings

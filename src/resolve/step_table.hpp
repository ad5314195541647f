// SPDX-License-Identifier: Apache-2.0
// The complete steps of a recording, in the order of their ends, and the periods that tile the time between those ends.
// Filled by a first pass over the step records (scan_steps), constant afterwards; may then be shared between threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"
#include "recording/recorded_run.hpp"
#include "recording/step_ranges.hpp"
#include "resolve/device_ends.hpp"
#include "resolve/losses.hpp"
#include "resolve/packed_steps.hpp"
#include "resolve/step_facts.hpp"
#include "resolve/track_table.hpp"

namespace plumb::resolve {

inline constexpr std::size_t step_not_found = std::numeric_limits<std::size_t>::max();

struct ResolvedStep {
    std::uint64_t id = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns =
        0; // of the host's part, or of the last device scope in it where queues are timed in every step
    std::int64_t host_end_ns = 0;
    std::int64_t period_begin_ns = 0; // end of the step that ended before, or this step's own begin where none did
    std::uint32_t decode_tokens = 0, kv_length = 0;
    std::uint32_t prefill_tokens = 0, sequences = 0;
    std::uint32_t kernels_ns = 0, kernel_stretch_ns = 0; // as the kernels stamped them; 0: they did not
    std::uint32_t track = 0;                             // dense index
    Phase phase = Phase::none;
    bool has_kv_length = false;
    bool warmup = false;
    /// Profiling made this step different (an instrumented or first replay, device scopes timed now and then): it is in
    /// no step statistics, wall account, budget or gate, unless all steps of its phase are like it.
    bool left_out = false;
    bool device_timed = false; // holds timed scopes of a queue that is timed in some steps only
    bool counted = true;       // false before the cut: only the end of the period before, and in no table
};
static_assert(sizeof(ResolvedStep) == 80); // millions of them are what a report of a long run has to remember

/// In pieces: grows without a moment that holds them twice.
using Steps = std::deque<ResolvedStep>;

/// Ids of steps, collected in any order. Memory is bounded whatever a recording claims.
class StepIds {
  public:
    void add(std::uint64_t id);
    /// Sorted, each once.
    [[nodiscard]] const std::vector<std::uint64_t>& sorted();

  private:
    void compact();

    std::vector<std::uint64_t> ids_;
    std::size_t compact_at_ = std::size_t{1} << 16;
};

/// What the first pass saw that profiling did to steps.
struct Disturbed {
    StepIds by_launches; // an instrumented replay, the first of an executable, or launches while kernels were traced
    StepIds by_device;   // timed scopes of a queue that is timed in some steps only
};

class StepTable final : public StepFactsSource {
  public:
    static constexpr std::size_t max_steps = std::size_t{1} << 22;

    [[nodiscard]] bool empty() const noexcept { return steps_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return steps_.size(); }
    [[nodiscard]] const ResolvedStep& operator[](std::size_t index) const { return steps_[index]; }
    [[nodiscard]] const Steps& all() const noexcept { return steps_; }
    /// Index of a step by id, or step_not_found.
    [[nodiscard]] std::size_t find(std::uint64_t id) const noexcept;

    [[nodiscard]] bool facts_of(std::uint64_t id, StepFacts& facts) const noexcept override;

    /// Ids of the complete steps that the program gave the phase none; they are not in the table. Sorted.
    [[nodiscard]] const std::vector<std::uint64_t>& phaseless() const noexcept { return phaseless_; }

    /// Takes steps in any order, as the host ended them; the first `warmup_steps` decode steps are flagged. `breaks` are moments
    /// across which no period reaches.
    static StepTable build(Steps found, std::vector<std::uint64_t> phaseless, std::vector<std::int64_t> breaks,
                           std::uint64_t warmup_steps, Disturbed disturbed, DeviceEnds device_ends, Losses& losses,
                           bool lossy = false);
    /// Whether all steps of a phase were disturbed, so that none of them is left out.
    [[nodiscard]] bool all_disturbed(Phase phase) const noexcept {
        return all_disturbed_[static_cast<std::size_t>(phase)];
    }

  private:
    void index_by_id(Losses& losses);
    void mark(Disturbed& disturbed);
    void keep_phases_that_have_no_other_steps();

    Steps steps_;
    std::vector<std::uint64_t> phaseless_;
    bool ids_ascend_ = false;                                    // in steps_, as nearly always
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_id_; // where they do not
    std::array<bool, 4> all_disturbed_{};                        // by Phase
};

/// What the first pass over a recording learns.
struct FirstPass {
    StepTable steps;
    /// After batch i was delivered, no later record of any track ends before no_earlier_than[i].
    std::vector<std::int64_t> no_earlier_than;
};

/// `also` (may be empty) is given every batch after the scan has seen it. `only` (may be null): other steps are left out.
[[nodiscard]] Result<FirstPass> scan_steps(const recording::RecordedRun& run, TrackTable& tracks,
                                           std::uint64_t warmup_steps, Losses& losses,
                                           const std::function<void(const recording::RecordBatch&)>& also = {},
                                           const recording::StepRanges* only = nullptr);
/// The same steps with the same facts, for who wants samples and no periods.
/// `only` (may be null): steps beyond it are warm-up or not, and nothing else.
[[nodiscard]] Result<PackedSteps> scan_step_facts(const recording::RecordedRun& run, TrackTable& tracks,
                                                  std::uint64_t warmup_steps, Losses& losses,
                                                  const recording::StepRanges* only = nullptr);

} // namespace plumb::resolve

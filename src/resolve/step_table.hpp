// SPDX-License-Identifier: Apache-2.0
// The complete steps of a recording, in the order of their ends, and the periods that tile the time between those ends.
// Filled by a first pass over the step records (scan_steps), constant afterwards; may then be shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"
#include "resolve/losses.hpp"
#include "resolve/record_source.hpp"
#include "resolve/track_table.hpp"

namespace plumb::resolve {

inline constexpr std::size_t step_not_found = std::numeric_limits<std::size_t>::max();

struct Step {
    std::uint64_t id = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t period_begin_ns = 0; // end of the step that ended before, or this step's own begin where none did
    std::uint64_t prefill_tokens = 0, decode_tokens = 0, sequences = 0;
    std::uint64_t kv_length = 0;
    std::uint32_t track = 0; // dense index
    Phase phase = Phase::none;
    bool has_kv_length = false;
    bool warmup = false;
};

class StepTable {
  public:
    static constexpr std::size_t max_steps = std::size_t{1} << 22;

    [[nodiscard]] bool empty() const noexcept { return steps_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return steps_.size(); }
    [[nodiscard]] const Step& operator[](std::size_t index) const { return steps_[index]; }
    [[nodiscard]] const std::vector<Step>& all() const noexcept { return steps_; }
    /// Index of a step by id, or step_not_found.
    [[nodiscard]] std::size_t find(std::uint64_t id) const noexcept;

    /// Takes steps in any order; the first `warmup_steps` decode steps are flagged. `breaks` are moments across which no
    /// period reaches. Steps before the cut (`counted` false) only serve as the end of the period before.
    struct Found {
        Step step;
        bool counted = true;
    };
    static StepTable build(std::vector<Found> found, std::vector<std::int64_t> breaks, std::uint64_t warmup_steps,
                           Losses& losses);

  private:
    std::vector<Step> steps_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_id_;
};

/// What the first pass over a recording learns.
struct FirstPass {
    StepTable steps;
    /// After batch i was delivered, no later record of any track ends before no_earlier_than[i].
    std::vector<std::int64_t> no_earlier_than;
};

[[nodiscard]] Result<FirstPass> scan_steps(RecordSource& source, TrackTable& tracks, std::uint64_t warmup_steps,
                                           Losses& losses);

} // namespace plumb::resolve

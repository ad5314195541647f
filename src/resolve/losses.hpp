// SPDX-License-Identifier: Apache-2.0
// What the resolver could not turn into samples, counted by reason. Owned by one resolution; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace plumb::resolve {

enum class Loss : std::uint8_t {
    // A record that should have become a sample and has no time.
    clock_not_fitted,
    track_unknown,
    too_many_tracks,
    stamp_outside,
    clock_jumped,
    duration_impossible,
    long_duration_missing,
    children_exceed,
    // Whole steps.
    step_cut_short,
    step_id_reused,
    step_without_phase,
    too_many_steps,
    // Records that could not be used, though no sample depends on them alone.
    unknown_kind,
    end_without_begin,
    nested_too_deep,
    bad_value,
    work_not_kept,
    overlap_without_nesting,
    node_incomplete,
    request_incomplete,
};
inline constexpr std::size_t loss_reasons = 20;
inline constexpr std::size_t unresolved_reasons = 8; // the first of them

inline constexpr std::array<const char*, loss_reasons> loss_words = {
    "unresolved: the clock could not be fitted",
    "unresolved: on a track the recording does not describe",
    "unresolved: on a track beyond the limit of 65,536",
    "unresolved: stamped outside the recording's time",
    "unresolved: stamped where their clock jumped",
    "unresolved: negative or impossible duration",
    "unresolved: the record with its long duration is missing",
    "unresolved: shorter than its own children",
    "steps cut short (their begin or end is missing)",
    "steps with an id that was used before",
    "steps without a phase",
    "steps beyond the limit of 4 million",
    "records of an unknown kind",
    "layer or context ends without their begin",
    "layers or contexts nested deeper than 64",
    "values that no engine can mean (negative, infinite, too large, or times of kernels that do not fit each other)",
    "work values beyond the memory limit",
    "scopes that overlap a neighbour without nesting",
    "kernels, transfers, tasks and dependencies of which a part is missing",
    "marks of requests that have no place (a part, the time or the step is missing)",
};

class Losses {
  public:
    void count(Loss reason, std::uint64_t n = 1) noexcept { counts_[static_cast<std::size_t>(reason)] += n; }
    [[nodiscard]] std::uint64_t of(Loss reason) const noexcept { return counts_[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t unresolved() const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < unresolved_reasons; ++i) {
            sum += counts_[i];
        }
        return sum;
    }

  private:
    std::array<std::uint64_t, loss_reasons> counts_{};
};

} // namespace plumb::resolve

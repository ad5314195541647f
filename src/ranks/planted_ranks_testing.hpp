// SPDX-License-Identifier: Apache-2.0
// For tests: ranks that do collectives in virtual time, each with a clock of its own, so that the truth is known: offset and drift of
// each clock, when each rank arrived, and who was late. Deterministic by its seed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ranks/job.hpp"

namespace plumb::ranks::testing {

struct RankPlan {
    std::uint32_t ranks = 8;
    std::uint32_t collectives = 1000;
    double compute_ns = 400e3;
    double jitter_ns = 3e3;        // of each rank's compute, exponential
    double least_move_ns = 1e3;    // from the last begin to the first end
    double move_jitter_ns = 1.5e3; // exponential
    double end_jitter_ns = 500;    // of each rank's end, exponential
    double most_offset_ns = 10e9;
    double most_drift = 50e-6;
    std::optional<std::uint32_t> late; // this rank is late
    double late_ns = 50e3;
    double late_share = 0.5;                // of the collectives, by chance
    std::optional<std::uint32_t> late_else; // this one is, in such a share of the others
    std::uint64_t seed = 1;
};

struct Planted {
    Job job;
    std::vector<double> offset, drift;           // of each rank: its clock shows true * (1 + drift) + offset
    std::vector<std::vector<double>> begin, end; // true, by rank and collective
    std::vector<double> last_begin;              // true, by collective

    /// What to add to a moment of that rank's clock to have the first rank's.
    [[nodiscard]] double correction(std::uint32_t rank, std::int64_t moment) const;
};

[[nodiscard]] Planted plant(const RankPlan& plan);

} // namespace plumb::ranks::testing

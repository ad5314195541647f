// SPDX-License-Identifier: Apache-2.0
// Which rank of a job this process is: as its launcher says in the environment, or as the spec says. Plain functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "recording/recording.hpp"

namespace plumb::session {

struct RankIdentity {
    std::string rank;        // empty: not known
    std::uint64_t world = 0; // how many there are; 0: not known
    std::vector<recording::RankGroup> groups;
};

/// The value of rank=: "3", "3/8", "3/8+tp=1/4+pp=0/2". Nothing where it does not fit.
[[nodiscard]] std::optional<RankIdentity> parse_rank(std::string_view spec);

/// What torchrun, Open MPI, PMI or Slurm said of this process, in that order; the parts that `spec` says are taken from there.
[[nodiscard]] RankIdentity rank_identity(std::string_view spec = {});

} // namespace plumb::session

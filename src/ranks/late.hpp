// SPDX-License-Identifier: Apache-2.0
// Ranks that are last to arrive more often than chance lets any rank be. Who is last tells much where many ranks are alike, and nothing of
// two; by how much it is last tells more. So only those collectives count in which some rank is alone by a margin, and several
// margins are tried. Errors of clocks are held against calling a rank late: it must have been last, the others may have been.
// Pure; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ranks/waits.hpp"

namespace plumb::ranks {

struct Late {
    std::size_t rank = 0;     // place in the job
    double margin_ns = 0;     // later than all others by so much or more
    std::uint64_t last = 0;   // collectives in which it certainly was
    std::uint64_t joints = 0; // in which some rank may have been, but those before it in this list
    double expected = 0;      // of these, if all ranks were alike
    double alone_ns = 0;      // in `last`: how much later than the others, at least, on average
};

/// The surest first. Once a rank is named, the collectives in which it certainly was last are left out: another may be late too. Only ranks
/// for which `matters` are named. In a job of ranks that are alike one is named with a chance of 1e-4 at most.
[[nodiscard]] std::vector<Late> find_late(const Job& job, const Joints& joints, const RankAlignment& alignment,
                                          const std::function<bool(std::size_t)>& matters);

} // namespace plumb::ranks

// SPDX-License-Identifier: Apache-2.0
// Joints and clocks, added up into the answer. Pure; one thread.
#pragma once

#include "answers/ranks/ranks.hpp"
#include "ranks/waits.hpp"

namespace plumb::ranks {

[[nodiscard]] RanksReport summary_of(const Job& job, const Joints& joints, const RankAlignment& alignment);

} // namespace plumb::ranks

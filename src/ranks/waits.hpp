// SPDX-License-Identifier: Apache-2.0
// Who waited for whom in each joint: when its ranks arrived, how long each waited for the last (wait), and what was left of its time
// (move). Each is an interval, from the errors of the clocks; ranks of one clock are compared without that error.
// Pure; no thread rule.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ranks/alignment.hpp"
#include "ranks/job.hpp"
#include "ranks/joints.hpp"

namespace plumb::ranks {

/// One rank's part. Nanoseconds.
struct PartWait {
    JointPart part;
    ClockSpan wait;           // for the last one: of a receive for its send
    ClockSpan move;           // the rest of its time
    double arrival = 0;       // by the estimate of its clock
    double end = 0;           // the same
    bool last = false;        // certainly the last to arrive
    bool may_be_last = false; // the error allows it
    ClockSpan alone;          // how much later than the last of the others it arrived; nothing of it is below 0
};

struct JointWait {
    const Joint* joint = nullptr;
    std::vector<PartWait> parts;
};

/// Calls `take` with every joint whose ranks' clocks are known, in order. What it is given is valid during the call.
void for_each_wait(const Job& job, const Joints& joints, const RankAlignment& alignment,
                   const std::function<void(const JointWait&)>& take);

} // namespace plumb::ranks

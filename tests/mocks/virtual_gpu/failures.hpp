// SPDX-License-Identifier: Apache-2.0
// Failures, delays and holds on demand. Under the Gpu's lock, stay_in() apart.
#pragma once

#include <condition_variable>

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

struct HoldState {
    std::mutex mutex;
    std::condition_variable changed;
    bool inside = false;
    bool released = false;
};

struct RuleOutcome {
    CuResult error = CuResult::success;
    bool loses = false;
    std::int64_t slow_ns = 0;
    std::shared_ptr<HoldState> hold;
};

/// Counts this call for every rule that names it, and says which ones strike.
RuleOutcome apply_rules(const char* symbol);
/// Stays until the hold is released; without the Gpu's lock.
void stay_in(HoldState& hold);

} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
// What a clock counts in, found from durations it gave. Pure functions.
#pragma once

#include <cmath>
#include <vector>

namespace gpu_check {

/// The largest whole number of nanoseconds, at most 2,048, of which all values are multiples (to 0.2 ns); 0: none. Values
/// of a millisecond and more are left out: a float of milliseconds is too coarse there.
inline int tick_of(const std::vector<double>& nanoseconds) {
    for (int tick = 2048; tick >= 1; --tick) {
        bool all = true;
        for (const double value : nanoseconds) {
            all = all && (value >= 1e6 || std::abs(value - std::round(value / tick) * tick) <= 0.2);
        }
        if (all) {
            return tick;
        }
    }
    return 0;
}

} // namespace gpu_check

// SPDX-License-Identifier: Apache-2.0
// What every interval asks of its sample: enough values, all finite, a confidence between 0 and 1. Pure.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "plumb/result.hpp"

namespace plumb::stats {

/// Fewer runs than this say nothing about the spread between runs.
inline constexpr std::size_t fewest_runs = 3;

[[nodiscard]] inline Status check_sample(std::span<const double> values, double confidence) {
    if (!(confidence > 0 && confidence < 1)) {
        return Error{ErrorCode::invalid_argument, "A confidence lies between 0 and 1; 0.95 is usual."};
    }
    if (values.size() < fewest_runs) {
        return Error{ErrorCode::invalid_argument, "An interval needs at least 3 runs and got " +
                                                      std::to_string(values.size()) + "; measure more runs."};
    }
    for (const double value : values) {
        if (!std::isfinite(value)) {
            return Error{ErrorCode::invalid_argument, "A run is NaN or infinite; leave out runs that failed."};
        }
    }
    return {};
}

} // namespace plumb::stats

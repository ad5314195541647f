// SPDX-License-Identifier: Apache-2.0
// From the clock pairs of a device to the line through them. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "clock/correlation.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends {

/// `pairs` oldest first, in any container. What is in doubt of a pair is given in ticks: the rate from the first to the last
/// makes nanoseconds of it. Errors as Correlation::fit().
template <class Pairs>
[[nodiscard]] Result<clock::Correlation> fit_of(const Pairs& pairs) {
    std::vector<clock::CorrelationPair> list;
    if (pairs.size() >= 2) {
        const auto ticks = static_cast<double>(static_cast<std::int64_t>(pairs.back().ticks - pairs.front().ticks));
        const auto ns = static_cast<double>(pairs.back().monotonic_ns - pairs.front().monotonic_ns);
        const double rate = ticks > 0 && ns > 0 ? ns / ticks : 0.0;
        list.reserve(pairs.size());
        for (const DeviceClockPair& pair : pairs) {
            const double half = static_cast<double>(pair.uncertainty_ticks) * rate / 2.0;
            list.push_back({{pair.ticks}, {pair.monotonic_ns}, {static_cast<std::int64_t>(std::ceil(half))}});
        }
    }
    return clock::Correlation::fit(list);
}

} // namespace plumb::backends

// SPDX-License-Identifier: Apache-2.0
#include "resolve/tick_conversion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace plumb::resolve {
namespace {

using recording::ClockPair;
using recording::longest_tick_ns;
using recording::shortest_tick_ns;

constexpr double before_window_ns = 3600e9;
constexpr double after_window_ns = 24 * 3600e9;

Error unusable(std::uint32_t clock, const std::string& why) {
    return {ErrorCode::corrupt, "Clock " + std::to_string(clock) + " cannot be fitted (" + why +
                                    "), so its records have no time; record for longer than one clock pair interval."};
}

bool at_one_tick(const std::vector<ClockPair>& pairs) {
    return std::all_of(pairs.begin(), pairs.end(),
                       [&](const ClockPair& pair) { return pair.ticks == pairs.front().ticks; });
}

// A pair read across an interrupt has a bracket far wider than the others and says little about the line. It says all there
// is where the others are one and the same, as those of a device that was too busy to be asked again.
std::vector<ClockPair> trustworthy(std::vector<ClockPair> pairs) {
    std::vector<std::uint64_t> widths;
    widths.reserve(pairs.size());
    for (const ClockPair& pair : pairs) {
        widths.push_back(pair.uncertainty_ticks);
    }
    const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
    std::nth_element(widths.begin(), middle, widths.end());
    const std::uint64_t limit = *middle > std::numeric_limits<std::uint64_t>::max() / 8 ? *middle : 8 * *middle;
    std::vector<ClockPair> kept;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(kept),
                 [&](const ClockPair& pair) { return pair.uncertainty_ticks <= limit; });
    return at_one_tick(kept) ? pairs : kept;
}

struct FittedLine {
    double slope;
    double intercept; // ns after `origin`, at origin.ticks
};

double ticks_after(const ClockPair& pair, const ClockPair& origin) {
    return static_cast<double>(static_cast<std::int64_t>(pair.ticks - origin.ticks));
}

// Subtracted before it is a double: beyond 2^53 ns (104 days) a double no longer holds each nanosecond.
double ns_after(const ClockPair& pair, const ClockPair& origin) {
    return static_cast<double>(static_cast<WideTicks>(pair.monotonic_ns) - origin.monotonic_ns);
}

FittedLine least_squares(const std::vector<ClockPair>& pairs, const ClockPair& origin) {
    const auto n = static_cast<double>(pairs.size());
    double mean_ticks = 0;
    double mean_ns = 0;
    for (const ClockPair& pair : pairs) {
        mean_ticks += ticks_after(pair, origin) / n;
        mean_ns += ns_after(pair, origin) / n;
    }
    double spread = 0;
    double product = 0;
    for (const ClockPair& pair : pairs) {
        const double dt = ticks_after(pair, origin) - mean_ticks;
        spread += dt * dt;
        product += dt * (ns_after(pair, origin) - mean_ns);
    }
    const double slope = product / spread;
    return {slope, mean_ns - slope * mean_ticks};
}

// Unsigned arithmetic on purpose: a window may reach below tick 0, and `contains` works modulo 2^64.
std::uint64_t whole_ticks(double ticks) {
    return ticks >= 9e18 ? static_cast<std::uint64_t>(9e18) : static_cast<std::uint64_t>(ticks);
}

} // namespace

Result<TickConversion> fit_ticks(const std::vector<ClockPair>& all, std::uint32_t clock) {
    std::vector<ClockPair> pairs;
    std::copy_if(all.begin(), all.end(), std::back_inserter(pairs),
                 [clock](const ClockPair& pair) { return pair.clock == clock; });
    if (pairs.size() < 2) {
        return unusable(clock, std::to_string(pairs.size()) + " clock pairs, two are needed");
    }
    pairs = trustworthy(std::move(pairs));
    const auto by_ticks = [](const ClockPair& a, const ClockPair& b) {
        return a.ticks < b.ticks;
    };
    const auto [first, last] = std::minmax_element(pairs.begin(), pairs.end(), by_ticks);
    if (first->ticks == last->ticks) {
        return unusable(clock, "all clock pairs at the same tick");
    }
    if (last->ticks - first->ticks > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return unusable(clock, "clock pairs too far apart");
    }

    const ClockPair origin = *first;
    const FittedLine line = least_squares(pairs, origin);
    if (!(line.slope >= shortest_tick_ns && line.slope <= longest_tick_ns) || !std::isfinite(line.intercept)) {
        return unusable(clock, "a tick would last " + std::to_string(line.slope) + " ns");
    }
    const double reach = ticks_after(*last, origin) * line.slope + std::fabs(line.intercept) + after_window_ns;
    if (!(reach + std::fabs(static_cast<double>(origin.monotonic_ns)) < 4e18)) {
        return unusable(clock, "its times leave the range of 64 bits");
    }

    TickConversion result;
    int exponent = 0;
    const double mantissa = std::frexp(line.slope, &exponent);
    result.multiplier_ = static_cast<std::int64_t>(std::ldexp(mantissa, 53));
    result.shift_ = 53 - exponent;
    result.rounding_ = static_cast<WideTicks>(1) << (result.shift_ - 1);
    result.base_ticks_ = origin.ticks;
    result.base_ns_ = origin.monotonic_ns + static_cast<std::int64_t>(std::llround(line.intercept));
    result.slope_ = line.slope;
    result.pairs_ = pairs.size();
    const std::uint64_t before = whole_ticks(before_window_ns / line.slope);
    result.window_begin_ = origin.ticks - std::min(before, origin.ticks);
    result.window_length_ = (last->ticks - result.window_begin_) + whole_ticks(after_window_ns / line.slope);
    for (const ClockPair& pair : pairs) {
        const double expected = line.intercept + line.slope * ticks_after(pair, origin);
        result.residual_ns_ = std::max(result.residual_ns_, std::fabs(ns_after(pair, origin) - expected));
    }
    return result;
}

} // namespace plumb::resolve

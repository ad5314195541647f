// SPDX-License-Identifier: Apache-2.0
#include "resolve/tick_conversion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace plumb::resolve {
namespace {

using recording::ClockPair;
using recording::ClockStretch;
using recording::longest_tick_ns;
using recording::shortest_tick_ns;

constexpr double before_window_ns = 3600e9;
constexpr double after_window_ns = 24 * 3600e9;

Error unusable(std::uint32_t clock, const std::string& why) {
    return {ErrorCode::corrupt, "Clock " + std::to_string(clock) + " cannot be fitted (" + why +
                                    "), so its records have no time; record for longer than one clock pair interval."};
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

bool by_ticks(const ClockPair& a, const ClockPair& b) { return a.ticks < b.ticks; }

} // namespace

const TickConversion::Line& TickConversion::at(std::uint64_t ticks) const noexcept {
    const auto found =
        std::find_if(later_.begin(), later_.end(), [&](const Line& line) { return line.contains(ticks, 0); });
    return found != later_.end() ? *found : line_;
}

Status TickConversion::add_line(const ClockStretch& stretch, std::uint32_t clock) {
    const std::vector<ClockPair>& pairs = stretch.pairs;
    if (pairs.size() < 2) {
        return unusable(clock, std::to_string(pairs.size()) + " clock pairs, two are needed");
    }
    const auto [first, last] = std::minmax_element(pairs.begin(), pairs.end(), by_ticks);
    if (first->ticks == last->ticks) {
        return unusable(clock, "all clock pairs at the same tick");
    }
    if (last->ticks - first->ticks > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return unusable(clock, "clock pairs too far apart");
    }

    const ClockPair origin = *first;
    const FittedLine fit = least_squares(pairs, origin);
    if (!(fit.slope >= shortest_tick_ns && fit.slope <= longest_tick_ns) || !std::isfinite(fit.intercept)) {
        return unusable(clock, "a tick would last " + std::to_string(fit.slope) + " ns");
    }
    const double reach = ticks_after(*last, origin) * fit.slope + std::fabs(fit.intercept) + after_window_ns;
    if (!(reach + std::fabs(static_cast<double>(origin.monotonic_ns)) < 4e18)) {
        return unusable(clock, "its times leave the range of 64 bits");
    }

    Line line;
    int exponent = 0;
    const double mantissa = std::frexp(fit.slope, &exponent);
    line.multiplier = static_cast<std::int64_t>(std::ldexp(mantissa, 53));
    line.shift = 53 - exponent;
    line.rounding = static_cast<WideTicks>(1) << (line.shift - 1);
    line.base_ticks = origin.ticks;
    line.base_ns = origin.monotonic_ns + static_cast<std::int64_t>(std::llround(fit.intercept));
    const std::uint64_t before = whole_ticks(before_window_ns / fit.slope);
    line.window_begin = stretch.unsure_at_begin ? origin.ticks + *stretch.unsure_at_begin
                                                : origin.ticks - std::min(before, origin.ticks);
    const std::uint64_t window_end = stretch.unsure_at_end ? last->ticks - *stretch.unsure_at_end
                                                           : last->ticks + whole_ticks(after_window_ns / fit.slope);
    line.window_length = window_end - line.window_begin;
    if (stretch.unsure_at_begin.value_or(0) + stretch.unsure_at_end.value_or(0) > last->ticks - origin.ticks) {
        return {}; // none of its ticks is sure
    }
    for (const ClockPair& pair : pairs) {
        const double expected = fit.intercept + fit.slope * ticks_after(pair, origin);
        residual_ns_ = std::max(residual_ns_, std::fabs(ns_after(pair, origin) - expected));
    }
    pairs_ += pairs.size();
    if (slope_ == 0) {
        slope_ = fit.slope;
        line_ = line;
    } else {
        later_.push_back(line);
    }
    return {};
}

Result<TickConversion> fit_ticks(const std::vector<ClockPair>& all, std::uint32_t clock) {
    recording::ClockStretches stretches = recording::stretches_of(all, clock);
    if (stretches.all.empty()) {
        return Error{ErrorCode::corrupt, stretches.jumped};
    }
    TickConversion result;
    for (const ClockStretch& stretch : stretches.all) {
        if (Status fitted = result.add_line(stretch, clock); !fitted) {
            return fitted.error();
        }
    }
    if (result.pairs_ == 0) {
        return Error{ErrorCode::corrupt, stretches.jumped};
    }
    result.jumped_ = std::move(stretches.jumped);
    return result;
}

} // namespace plumb::resolve

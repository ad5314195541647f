// SPDX-License-Identifier: Apache-2.0
#include "clock/correlation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace plumb::clock {
namespace {

double spread_of(const CorrelationPair& pair) { return std::abs(static_cast<double>(pair.uncertainty.value)); }

// A pair from an interrupted read counts for next to nothing; one nanosecond is what a stamp resolves.
double weight_of(const CorrelationPair& pair) {
    const double spread = 1.0 + spread_of(pair);
    return 1.0 / (spread * spread);
}

struct OffsetRange {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    double missing() const { return low - high; }
};

} // namespace

CorrelationPair pair_from_command(base::DeviceTicks begin, base::DeviceTicks end, base::Nanoseconds submitted,
                                  base::Nanoseconds seen, double ns_per_tick) {
    const std::int64_t ticks = (end - begin).value;
    const auto duration = static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick);
    const std::int64_t window = (seen - submitted).value;
    return {{begin.value + static_cast<std::uint64_t>(ticks / 2)},
            {submitted.value + window / 2},
            {std::max<std::int64_t>((window - duration) / 2, 0)}};
}

// Doubles hold differences from the first pair, never absolute stamps: exact for 2^53 ticks, 104 days at 1 GHz.
double Correlation::ticks_from_origin(base::DeviceTicks ticks) const {
    return static_cast<double>((ticks - origin_device_).value);
}

double Correlation::distance(const CorrelationPair& pair) const {
    const double line = offset_ + slope_ * ticks_from_origin(pair.device);
    return std::abs(static_cast<double>((pair.host - origin_host_).value) - line);
}

Result<Correlation> Correlation::fit(std::span<const CorrelationPair> pairs) {
    if (pairs.size() < 2) {
        return Error{ErrorCode::unavailable, "a clock fit needs at least two pairs of device and host time, not " +
                                                 std::to_string(pairs.size()) + "; read another pair later"};
    }
    Correlation fit;
    fit.origin_device_ = pairs.front().device;
    fit.origin_host_ = pairs.front().host;
    if (Status line = fit.least_squares(pairs); !line) {
        return line.error();
    }
    fit.make_consistent(pairs);
    fit.anchor(pairs);
    return fit;
}

Status Correlation::least_squares(std::span<const CorrelationPair> pairs) {
    double weights = 0, mean_x = 0, mean_y = 0;
    for (const CorrelationPair& pair : pairs) {
        const double x = ticks_from_origin(pair.device);
        const double weight = weight_of(pair);
        weights += weight;
        mean_x += (x - mean_x) * weight / weights;
        mean_y += (static_cast<double>((pair.host - origin_host_).value) - mean_y) * weight / weights;
        first_ = std::min(first_, x);
        last_ = std::max(last_, x);
    }
    double xx = 0, xy = 0;
    for (const CorrelationPair& pair : pairs) {
        const double x = ticks_from_origin(pair.device) - mean_x;
        const double y = static_cast<double>((pair.host - origin_host_).value) - mean_y;
        xx += x * x * weight_of(pair);
        xy += x * y * weight_of(pair);
    }
    if (!(last_ > first_)) {
        return Error{ErrorCode::corrupt, "the device's clock stood still between two pairs; read pairs further apart"};
    }
    slope_ = xy / xx;
    if (!(slope_ > 0) || !std::isfinite(slope_)) {
        return Error{ErrorCode::corrupt, "the device's clock runs against the host's; its times cannot be placed"};
    }
    offset_ = mean_y - slope_ * mean_x;
    return {};
}

// The line of least squares may leave the range of a tight pair although another line meets all of them. With a slope
// given, each pair leaves a range of offsets; how much their intersection misses is convex in the slope, so a search by
// thirds finds the slope that misses least.
void Correlation::make_consistent(std::span<const CorrelationPair> pairs) {
    const auto offsets = [&](double slope) {
        OffsetRange range;
        for (const CorrelationPair& pair : pairs) {
            const double offset =
                static_cast<double>((pair.host - origin_host_).value) - slope * ticks_from_origin(pair.device);
            range.low = std::max(range.low, offset - spread_of(pair));
            range.high = std::min(range.high, offset + spread_of(pair));
        }
        return range;
    };
    double slope = slope_;
    if (offsets(slope).missing() > 0) {
        double reach = 0;
        for (const CorrelationPair& pair : pairs) {
            reach = std::max(reach, 2.0 * (distance(pair) + spread_of(pair)) / (last_ - first_));
        }
        double left = slope - reach, right = slope + reach;
        for (int i = 0; i < 100; ++i) {
            const double third = (right - left) / 3.0;
            if (offsets(left + third).missing() < offsets(right - third).missing()) {
                right -= third;
            } else {
                left += third;
            }
        }
        slope = (left + right) / 2.0;
    }
    const OffsetRange range = offsets(slope);
    // Host stamps are whole nanoseconds: one of them is no contradiction.
    consistent_ = range.missing() <= 1.0;
    if (!consistent_) {
        return;
    }
    // The line turns about the middle of the pairs, so that the offset moves as little as possible.
    offset_ += (slope_ - slope) * (first_ + last_) / 2.0;
    slope_ = slope;
    offset_ = std::clamp(offset_, std::min(range.low, range.high), std::max(range.low, range.high));
}

// The best pair of the first and of the last third: between and beyond two points whose errors are known, the error of
// a straight line is known.
void Correlation::anchor(std::span<const CorrelationPair> pairs) {
    early_.error = late_.error = std::numeric_limits<double>::infinity();
    const double third = (last_ - first_) / 3.0;
    for (const CorrelationPair& pair : pairs) {
        residual_ = std::max(residual_, distance(pair));
        const Anchor anchor{ticks_from_origin(pair.device), distance(pair) + spread_of(pair) + 1.0};
        if (anchor.at <= first_ + third && anchor.error < early_.error) {
            early_ = anchor;
        }
        if (anchor.at >= last_ - third && anchor.error < late_.error) {
            late_ = anchor;
        }
    }
}

base::Nanoseconds Correlation::to_host(base::DeviceTicks ticks) const {
    return origin_host_ + base::Nanoseconds{std::llround(offset_ + slope_ * ticks_from_origin(ticks))};
}

Result<base::Nanoseconds> Correlation::duration(base::DeviceTicks begin, base::DeviceTicks end) const {
    const std::int64_t ticks = (end - begin).value;
    if (ticks < 0) {
        return Error{ErrorCode::corrupt, "a device scope ends " + std::to_string(-ticks) +
                                             " ticks before it begins; its stamps cannot be used"};
    }
    return base::Nanoseconds{std::llround(slope_ * static_cast<double>(ticks))};
}

double Correlation::bound_ns(base::DeviceTicks ticks) const {
    const double at = ticks_from_origin(ticks);
    return (std::abs(late_.at - at) * early_.error + std::abs(at - early_.at) * late_.error) / (late_.at - early_.at);
}

} // namespace plumb::clock

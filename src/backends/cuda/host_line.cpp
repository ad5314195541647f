// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/host_line.hpp"

#include <cmath>

#include "backends/pair_fit.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::int64_t least_gap_ns = 50'000'000;  // closer pairs say nothing more of the rate: the tighter one stays
constexpr std::int64_t least_span_ns = 20'000'000; // a rate from a shorter span is worse than the assumption below
constexpr double assumed_drift = 1e-3;             // a device's nanosecond is at least so close to the host's

double half(const DeviceClockPair& pair) { return static_cast<double>(pair.uncertainty_ticks) / 2.0; }

HostPlace by_nearest(const std::deque<DeviceClockPair>& pairs, std::uint64_t ticks) {
    HostPlace best{0, INFINITY};
    for (const DeviceClockPair& pair : pairs) {
        const auto distance = static_cast<std::int64_t>(ticks - pair.ticks);
        const double bound = half(pair) + std::abs(static_cast<double>(distance)) * assumed_drift;
        if (bound < best.bound_ns) {
            best = {pair.monotonic_ns + distance, bound};
        }
    }
    return best;
}

} // namespace

void HostLine::add(const DeviceClockPair& pair) {
    const bool close = pairs_.size() > 1 && pair.monotonic_ns - pairs_.back().monotonic_ns < least_gap_ns;
    if (close && pair.uncertainty_ticks >= pairs_.back().uncertainty_ticks) {
        return;
    }
    if (close) {
        pairs_.pop_back();
    }
    pairs_.push_back(pair);
    if (pairs_.size() > most_pairs) {
        pairs_.pop_front();
    }
    fit_.reset();
    if (pairs_.back().monotonic_ns - pairs_.front().monotonic_ns < least_span_ns) {
        return;
    }
    if (const Result<clock::Correlation> fit = fit_of(pairs_)) {
        fit_ = *fit;
    }
}

std::optional<HostPlace> HostLine::place(std::uint64_t ticks) const {
    if (pairs_.empty()) {
        return std::nullopt;
    }
    const HostPlace nearest = by_nearest(pairs_, ticks);
    if (!fit_) {
        return nearest;
    }
    const double bound = fit_->sure_bound_ns({ticks});
    return bound < nearest.bound_ns ? HostPlace{fit_->to_host({ticks}).value, bound} : nearest;
}

} // namespace plumb::backends::cuda

// SPDX-License-Identifier: Apache-2.0
// The middle of some values, and how far from it they lie: what a few wild ones among them hardly move. Pure functions.
#pragma once

#include <span>

namespace plumb::stats {

constexpr double mad_to_deviation = 1.4826; // of a normal distribution
constexpr double least_robust_z = 5;        // so many deviations from the median, and a value is unlike the others

[[nodiscard]] double median(std::span<const double> values); // REQUIRES: not empty

/// The median absolute deviation (MAD). REQUIRES: not empty
[[nodiscard]] double median_deviation(std::span<const double> values, double median);

} // namespace plumb::stats

// SPDX-License-Identifier: Apache-2.0
#include "stats/median.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plumb::stats {

double median(std::span<const double> values) {
    std::vector<double> sorted(values.begin(), values.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (sorted.size() % 2 == 1) {
        return *middle;
    }
    const double below = *std::max_element(sorted.begin(), middle);
    return below + (*middle - below) / 2;
}

double median_deviation(std::span<const double> values, double median) {
    std::vector<double> distances;
    for (const double value : values) {
        distances.push_back(std::abs(value - median));
    }
    return stats::median(distances);
}

} // namespace plumb::stats

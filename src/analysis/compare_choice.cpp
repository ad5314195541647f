// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::analysis {
namespace {

/// How far another choice of steps could move a percentile of them: a larger share of it, and there is none.
constexpr double most_moved = 0.25;

/// Whether a percentile of `sorted`, chosen from among `all`, would be about the same of another choice: three standard
/// deviations of its rank to either side. That of steps of two kinds in equal numbers is not.
bool is_settled(const std::vector<double>& sorted, double share, std::size_t all, double value) {
    if (sorted.size() == all) {
        return true;
    }
    const auto n = static_cast<double>(sorted.size());
    const double reach = 3 * std::sqrt(n * share * (1 - share) * (1 - n / static_cast<double>(all)));
    const double at = share * (n - 1);
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(at - reach)));
    const auto high = static_cast<std::size_t>(std::min(n - 1, std::ceil(at + reach)));
    return sorted[high] - sorted[low] <= most_moved * value;
}

} // namespace

std::uint64_t mixed_bits(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

std::vector<std::size_t> chosen_of(std::vector<std::size_t> all, std::size_t most, std::uint64_t seed) {
    if (all.size() <= most) {
        return all;
    }
    const auto order = [seed](std::size_t a, std::size_t b) {
        return mixed_bits(seed ^ mixed_bits(a + 1)) < mixed_bits(seed ^ mixed_bits(b + 1));
    };
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(), order);
    all.resize(most);
    all.shrink_to_fit();
    std::sort(all.begin(), all.end());
    return all;
}

double chosen_percentile(const std::vector<double>& sorted, double share, std::size_t all) {
    const auto n = static_cast<double>(sorted.size());
    if (n * (1 - share) < 10 - 1e-9) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double at = share * (n - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double value = sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
    return is_settled(sorted, share, all, value) ? value : std::numeric_limits<double>::quiet_NaN();
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "stats/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "stats/figure.hpp"

namespace plumb::stats {
namespace {

std::string percentile_name(double fraction) {
    // 0.5 -> p50, 0.99 -> p99, 0.999 -> p99.9
    const auto tenths = static_cast<long>(std::lround(fraction * 1000));
    std::string name = "p" + std::to_string(tenths / 10);
    return tenths % 10 == 0 ? name : name + "." + std::to_string(tenths % 10);
}

} // namespace

std::uint64_t samples_needed(double fraction) {
    // 10 / (1 - 0.9) is 100.00000000000001 in binary: rounded before it is rounded up.
    return static_cast<std::uint64_t>(std::ceil(10 / (1 - fraction) - 1e-6));
}

Figure percentile(const Histogram& histogram, const Moments& moments, double fraction) {
    const std::uint64_t n = moments.count();
    const std::uint64_t needed = samples_needed(fraction);
    if (n < needed) {
        return absent("too few samples (n = " + std::to_string(n) + ", " + percentile_name(fraction) + " needs " +
                      std::to_string(needed) + ")");
    }
    if (histogram.unplaced() != 0) {
        return absent("too many different rows for the memory limit");
    }
    const auto rank = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(n)));
    const double value = histogram.value_at_rank(std::clamp<std::uint64_t>(rank, 1, n));
    return measured(std::clamp(value, static_cast<double>(moments.min()), static_cast<double>(moments.max())));
}

void DurationStatistics::merge(const DurationStatistics& other) {
    moments_.merge(other.moments_);
    self_ += other.self_;
    histogram_.merge(other.histogram_);
}

Distribution DurationStatistics::finish() const {
    Distribution result;
    result.count = moments_.count();
    result.total_ns = moments_.total();
    result.self_ns = self_ns();
    result.min_ns = static_cast<double>(moments_.min());
    result.max_ns = static_cast<double>(moments_.max());
    result.mean_ns = moments_.mean();
    result.variance_ns2 = moments_.variance();
    result.p50_ns = percentile(histogram_, moments_, 0.5);
    result.p90_ns = percentile(histogram_, moments_, 0.9);
    result.p99_ns = percentile(histogram_, moments_, 0.99);
    result.p999_ns = percentile(histogram_, moments_, 0.999);
    return result;
}

Bins DurationStatistics::bins(std::size_t most) const {
    Bins bins;
    const std::uint64_t n = histogram_.count();
    if (n == 0 || histogram_.unplaced() != 0) {
        return bins;
    }
    // As the histogram has them, so that values which it does not tell apart are in one bin.
    bins.begin_ns = histogram_.value_at_rank(1);
    bins.end_ns = histogram_.value_at_rank(std::max<std::uint64_t>(1, n - n / 100));
    const double width = (bins.end_ns - bins.begin_ns) / static_cast<double>(most);
    bins.counts.assign(width > 0 ? most : 1, 0);
    histogram_.each([&](double value, std::uint64_t times) {
        if (value > bins.end_ns) {
            bins.above += times;
            return false;
        }
        const double bin = width > 0 ? (value - bins.begin_ns) / width : 0;
        bins.counts[std::min(static_cast<std::size_t>(bin), bins.counts.size() - 1)] += times;
        return false;
    });
    return bins;
}

} // namespace plumb::stats

// SPDX-License-Identifier: Apache-2.0
// Durations in, a plumb::Distribution out: exact moments, self time, and percentiles only where enough samples carry
// them. Owned by whoever holds it; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumb/results.hpp"
#include "stats/histogram.hpp"
#include "stats/moments.hpp"

namespace plumb::stats {

/// Samples that percentile `fraction` (0.5, 0.99, …) needs: 10 / (1 - fraction).
[[nodiscard]] std::uint64_t samples_needed(double fraction);
/// The percentile, or why there is none.
[[nodiscard]] Figure percentile(const Histogram& histogram, const Moments& moments, double fraction);

/// How durations are spread: equal bins from the least to the 99th percentile, and what is longer.
struct Bins {
    double begin_ns = 0, end_ns = 0;
    std::vector<std::uint64_t> counts; // empty: there are none, or memory was short
    std::uint64_t above = 0;
};

class DurationStatistics {
  public:
    explicit DurationStatistics(BlockBudget* budget = nullptr) : histogram_(budget) {}

    void add(std::uint64_t duration_ns, std::uint64_t self_ns) {
        moments_.add(duration_ns);
        self_ += self_ns;
        histogram_.add(duration_ns);
    }
    void add(std::uint64_t duration_ns) { add(duration_ns, duration_ns); }
    void merge(const DurationStatistics& other);

    [[nodiscard]] const Moments& moments() const noexcept { return moments_; }
    [[nodiscard]] double self_ns() const noexcept { return static_cast<double>(self_); }
    [[nodiscard]] Distribution finish() const;
    [[nodiscard]] Bins bins(std::size_t most) const;

  private:
    Moments moments_;
    WideSum self_ = 0;
    Histogram histogram_;
};

} // namespace plumb::stats

// SPDX-License-Identifier: Apache-2.0
// Count, total, minimum, maximum, mean and variance of whole nanoseconds, from exact integer sums: nothing is lost to
// rounding, and merging in any order gives the same bits. Owned by whoever holds it; one thread.
// REQUIRES: values below 2^54 (half a year), which the resolver's window assures; sums wrap, without harm, beyond 2^128.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace plumb::stats {

__extension__ typedef unsigned __int128 WideSum; // NOLINT: the only 128-bit unsigned type there is

class Moments {
  public:
    void add(std::uint64_t value) noexcept {
        ++count_;
        sum_ += value;
        squares_ += static_cast<WideSum>(value) * value;
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    void merge(const Moments& other) noexcept {
        count_ += other.count_;
        sum_ += other.sum_;
        squares_ += other.squares_;
        min_ = std::min(min_, other.min_);
        max_ = std::max(max_, other.max_);
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] double total() const noexcept { return static_cast<double>(sum_); }
    [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
    [[nodiscard]] double mean() const noexcept { return count_ == 0 ? 0 : total() / static_cast<double>(count_); }

    /// Of the sample (n - 1); 0 for fewer than two values. With sum = q n + r the squared distances from q are exact
    /// integers, so that nothing cancels.
    [[nodiscard]] double variance() const noexcept {
        if (count_ < 2) {
            return 0;
        }
        const WideSum q = sum_ / count_;
        const WideSum r = sum_ % count_;
        const WideSum around_q = squares_ - q * (q * count_ + 2 * r);
        const auto n = static_cast<double>(count_);
        const auto rest = static_cast<double>(r);
        return std::max(0.0, (static_cast<double>(around_q) - rest * rest / n) / (n - 1));
    }

  private:
    std::uint64_t count_ = 0;
    WideSum sum_ = 0;
    WideSum squares_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
};

} // namespace plumb::stats

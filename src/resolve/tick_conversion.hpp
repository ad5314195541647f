// SPDX-License-Identifier: Apache-2.0
// From ticks of one clock to nanoseconds of the common clock: a line fitted through at least two clock pairs, with its
// residual. There is no other way from ticks to time: a clock that cannot be fitted leaves its samples unresolved.
// Plain values, safe to share between threads once made.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::resolve {

__extension__ typedef __int128 WideTicks; // NOLINT: the only 128-bit signed type there is

/// ns = base_ns + (ticks - base_ticks) * slope, exact to the slope's last bit; stamps outside the window in which the
/// pairs can vouch for the line (an hour before the first, a day after the last) are refused.
class TickConversion {
  public:
    [[nodiscard]] bool contains(std::uint64_t ticks) const noexcept { return ticks - window_begin_ <= window_length_; }

    /// True when the interval lies in the window; a negative duration, being a wrapped one, does not.
    [[nodiscard]] bool contains(std::uint64_t begin, std::uint64_t duration) const noexcept {
        const std::uint64_t offset = begin - window_begin_;
        return offset <= window_length_ && duration <= window_length_ - offset;
    }

    [[nodiscard]] std::int64_t to_ns(std::uint64_t ticks) const noexcept {
        const auto delta = static_cast<std::int64_t>(ticks - base_ticks_);
        const WideTicks scaled = static_cast<WideTicks>(delta) * multiplier_ + rounding_;
        return base_ns_ + static_cast<std::int64_t>(scaled >> shift_);
    }

    /// A length, where only the length is known (self time).
    [[nodiscard]] std::int64_t length_ns(std::uint64_t ticks) const noexcept {
        return static_cast<std::int64_t>((static_cast<WideTicks>(ticks) * multiplier_ + rounding_) >> shift_);
    }

    [[nodiscard]] double ns_per_tick() const noexcept { return slope_; }
    /// Largest distance of a pair from the line.
    [[nodiscard]] double residual_ns() const noexcept { return residual_ns_; }
    [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }

  private:
    friend Result<TickConversion> fit_ticks(const std::vector<recording::ClockPair>& pairs, std::uint32_t clock);

    std::uint64_t base_ticks_ = 0;
    std::uint64_t window_begin_ = 0;
    std::uint64_t window_length_ = 0;
    std::int64_t base_ns_ = 0;
    std::int64_t multiplier_ = 0;
    WideTicks rounding_ = 0;
    int shift_ = 0;
    double slope_ = 0;
    double residual_ns_ = 0;
    std::uint64_t pairs_ = 0;
};

/// Least squares over the pairs of `clock`, those read in an unusually wide bracket left out. Errors: fewer than two
/// pairs, all at one moment, a slope that no clock has.
[[nodiscard]] Result<TickConversion> fit_ticks(const std::vector<recording::ClockPair>& pairs, std::uint32_t clock);

} // namespace plumb::resolve

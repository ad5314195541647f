// SPDX-License-Identifier: Apache-2.0
// From ticks of one clock to nanoseconds of the common clock: a line fitted through at least two clock pairs, with its
// residual. There is no other way from ticks to time: a clock that cannot be fitted leaves its samples unresolved. Where the
// clock jumped, a line on each side of the jump; what lies between them, or reaches from one to the other, is refused.
// Plain values, safe to share between threads once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/clock_stretches.hpp"

namespace plumb::resolve {

__extension__ typedef __int128 WideTicks; // NOLINT: the only 128-bit signed type there is

/// ns = base_ns + (ticks - base_ticks) * slope, exact to the slope's last bit; stamps outside the window in which the
/// pairs can vouch for the line (an hour before the first, a day after the last; at a jump none beyond its pairs) are refused.
class TickConversion {
  public:
    [[nodiscard]] bool contains(std::uint64_t ticks) const noexcept { return contains(ticks, 0); }

    /// True when the interval lies in the window of one line; a negative duration, being a wrapped one, does not.
    [[nodiscard]] bool contains(std::uint64_t begin, std::uint64_t duration) const noexcept {
        return line_.contains(begin, duration) || (!later_.empty() && at(begin).contains(begin, duration));
    }

    [[nodiscard]] std::int64_t to_ns(std::uint64_t ticks) const noexcept {
        const Line& line = later_.empty() ? line_ : at(ticks);
        const auto delta = static_cast<std::int64_t>(ticks - line.base_ticks);
        const WideTicks scaled = static_cast<WideTicks>(delta) * line.multiplier + line.rounding;
        return line.base_ns + static_cast<std::int64_t>(scaled >> line.shift);
    }

    /// A length, where only the length is known (self time).
    [[nodiscard]] std::int64_t length_ns(std::uint64_t ticks) const noexcept {
        return static_cast<std::int64_t>((static_cast<WideTicks>(ticks) * line_.multiplier + line_.rounding) >>
                                         line_.shift);
    }

    [[nodiscard]] double ns_per_tick() const noexcept { return slope_; }
    /// Largest distance of a pair from its line.
    [[nodiscard]] double residual_ns() const noexcept { return residual_ns_; }
    [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }
    /// How the clock jumped, in one sentence; empty: it did not.
    [[nodiscard]] const std::string& jumped() const noexcept { return jumped_; }

  private:
    friend Result<TickConversion> fit_ticks(const std::vector<recording::ClockPair>& pairs, std::uint32_t clock);

    struct Line {
        std::uint64_t base_ticks = 0;
        std::uint64_t window_begin = 0;
        std::uint64_t window_length = 0;
        std::int64_t base_ns = 0;
        std::int64_t multiplier = 0;
        WideTicks rounding = 0;
        int shift = 0;

        [[nodiscard]] bool contains(std::uint64_t begin, std::uint64_t duration) const noexcept {
            const std::uint64_t offset = begin - window_begin;
            return offset <= window_length && duration <= window_length - offset;
        }
    };

    Status add_line(const recording::ClockStretch& stretch, std::uint32_t clock);
    /// The line whose window holds the tick; the first one where none does.
    [[nodiscard]] const Line& at(std::uint64_t ticks) const noexcept;

    Line line_;
    std::vector<Line> later_; // by ticks
    double slope_ = 0;        // of the first line
    double residual_ns_ = 0;
    std::uint64_t pairs_ = 0;
    std::string jumped_;
};

/// Least squares over the pairs of `clock`, those read in an unusually wide bracket left out. Errors: fewer than two
/// pairs, all at one moment, a slope that no clock has, jumps that leave no sure time.
[[nodiscard]] Result<TickConversion> fit_ticks(const std::vector<recording::ClockPair>& pairs, std::uint32_t clock);

} // namespace plumb::resolve

// SPDX-License-Identifier: Apache-2.0
// Which corrections of a clock a set of bounds allows. A correction is what to add to a moment of that clock to have the reference's: a line,
// offset and drift. Each bound is a half plane of such lines; what all of them allow is a convex polygon, found through two
// convex hulls in O(n log n), or O(n) where moments come in order. The polygon is the error: nothing in it is likelier than the rest.
// Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace plumb::ranks {

/// At that moment of the clock the correction is at most (or at least) so much. Nanoseconds.
struct Bound {
    std::int64_t at = 0;
    std::int64_t limit = 0;
};

/// From least to most, in nanoseconds.
struct ClockSpan {
    double least = 0;
    double most = 0;
    [[nodiscard]] double width() const { return most - least; }
    [[nodiscard]] double middle() const { return least + width() / 2; }
};

/// Two clocks of machines differ in rate by less: crystals by 1e-4, a clock that NTP slews by 5e-4 more.
inline constexpr double most_drift = 1e-3;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

class ClockBand {
  public:
    enum class State : std::uint8_t {
        open,  // bounded on one side at most
        found, // bounded on both
        empty, // no line fits all bounds: they contradict each other
    };

    /// A clock that is the reference itself, or another whose correction is known, to within `error`.
    [[nodiscard]] static ClockBand known(std::int64_t at, double offset, double drift, double error);
    [[nodiscard]] static ClockBand of(std::vector<Bound> upper, std::vector<Bound> lower);
    /// Empty: bounds miss each other by so much.
    [[nodiscard]] static ClockBand contradicting(double by);

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] bool found() const { return state_ == State::found; }
    /// What the correction is at a moment of the clock; infinite where nothing bounds it.
    [[nodiscard]] ClockSpan at(std::int64_t moment) const;
    /// On how many sides it is bounded.
    [[nodiscard]] int sides() const { return (most_.empty() ? 0 : 1) + (least_.empty() ? 0 : 1); }
    /// Nanoseconds a nanosecond. REQUIRES: found().
    [[nodiscard]] ClockSpan drift() const;
    /// Of an empty band: by how much bounds miss each other at least.
    [[nodiscard]] double contradiction() const { return contradiction_; }

  private:
    using Chain = std::vector<std::pair<double, double>>; // drift, offset at origin_

    State state_ = State::open;
    std::int64_t origin_ = 0; // moment that the others are counted from
    std::int64_t base_ = 0;   // added to offsets
    Chain most_, least_;      // sides of the polygon, by drift
    double contradiction_ = 0;
};

} // namespace plumb::ranks

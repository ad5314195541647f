// SPDX-License-Identifier: Apache-2.0
// Places a device's ticks on the common clock: offset and slope fitted over pairs read from both clocks, published with
// residual and bound. Immutable once fitted: safe to share between threads.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "plumb/result.hpp"

namespace plumb::clock {

/// Both clocks at one moment; the true host time lies within host ± uncertainty.
struct CorrelationPair {
    base::DeviceTicks device;
    base::Nanoseconds host;
    base::Nanoseconds uncertainty;
};

/// What cause and effect say of one short command is a pair as well: it cannot start before it was submitted, nor end
/// after its end was seen. With the slope of an earlier fit its own duration narrows the pair further.
CorrelationPair pair_from_command(base::DeviceTicks begin, base::DeviceTicks end, base::Nanoseconds submitted,
                                  base::Nanoseconds seen, double ns_per_tick = 0);

class Correlation {
  public:
    /// Error `unavailable` for fewer than two pairs: there is no ratio to fall back to. Error `corrupt` when the
    /// device's clock stands still or runs backwards between them.
    static Result<Correlation> fit(std::span<const CorrelationPair> pairs);

    [[nodiscard]] base::Nanoseconds to_host(base::DeviceTicks ticks) const;

    /// Error `corrupt` when end lies before begin: a negative duration is never clamped.
    [[nodiscard]] Result<base::Nanoseconds> duration(base::DeviceTicks begin, base::DeviceTicks end) const;

    [[nodiscard]] double ns_per_tick() const { return slope_; }
    /// Largest distance of a pair from the fitted line, in nanoseconds.
    [[nodiscard]] double residual_ns() const { return residual_; }
    /// How far to_host(ticks) may be from the truth, in nanoseconds, if the device's clock is a straight line: which
    /// consistent() says of the pairs. Grows outside the time they span.
    [[nodiscard]] double bound_ns(base::DeviceTicks ticks) const;
    /// The same where one line does not pass through all pairs: the residual comes on top.
    [[nodiscard]] double sure_bound_ns(base::DeviceTicks ticks) const {
        return bound_ns(ticks) + (consistent_ ? 0.0 : residual_);
    }
    /// Whether one line passes through every pair within its uncertainty.
    [[nodiscard]] bool consistent() const { return consistent_; }

  private:
    /// A pair on the fitted line: neither the line nor the truth is further from it than `error`.
    struct Anchor {
        double at = 0;    // ticks from the origin
        double error = 0; // nanoseconds
    };

    Correlation() = default;
    double ticks_from_origin(base::DeviceTicks ticks) const;
    double distance(const CorrelationPair& pair) const;
    Status least_squares(std::span<const CorrelationPair> pairs);
    void make_consistent(std::span<const CorrelationPair> pairs);
    void anchor(std::span<const CorrelationPair> pairs);

    base::DeviceTicks origin_device_;
    base::Nanoseconds origin_host_;
    double slope_ = 0;            // nanoseconds per tick
    double offset_ = 0;           // nanoseconds from origin_host_ at origin_device_
    double first_ = 0, last_ = 0; // ticks from the origin that the pairs span
    double residual_ = 0;
    Anchor early_, late_;
    bool consistent_ = true;
};

} // namespace plumb::clock

// SPDX-License-Identifier: Apache-2.0
// Units and clock domains as types: ticks of the host's clock, ticks of a device's, nanoseconds on the common clock.
// Two points of different clocks can neither be subtracted nor compared; only a fit (src/clock) leads from ticks to
// nanoseconds. Plain values; no thread rule.
#pragma once

#include <compare>
#include <cstdint>

namespace plumb::base {

/// A distance between two points of one clock, in that clock's ticks.
template <class Clock>
struct TickSpan {
    std::int64_t value = 0;
    friend constexpr bool operator==(TickSpan, TickSpan) = default;
    friend constexpr auto operator<=>(TickSpan, TickSpan) = default;
};

/// A point on one clock. Subtraction is modulo 2^64 and signed, so a counter that wraps between two points is harmless.
template <class Clock>
struct Ticks {
    std::uint64_t value = 0;
    friend constexpr bool operator==(Ticks, Ticks) = default;
    friend constexpr auto operator<=>(Ticks, Ticks) = default;
    friend constexpr TickSpan<Clock> operator-(Ticks a, Ticks b) {
        return {static_cast<std::int64_t>(a.value - b.value)};
    }
};

using HostTicks = Ticks<struct HostClockTag>;
using DeviceTicks = Ticks<struct DeviceClockTag>;

/// A point or a distance on the common clock (CLOCK_MONOTONIC, or that of an injected clock).
struct Nanoseconds {
    std::int64_t value = 0;
    friend constexpr bool operator==(Nanoseconds, Nanoseconds) = default;
    friend constexpr auto operator<=>(Nanoseconds, Nanoseconds) = default;
    friend constexpr Nanoseconds operator-(Nanoseconds a, Nanoseconds b) { return {a.value - b.value}; }
    friend constexpr Nanoseconds operator+(Nanoseconds a, Nanoseconds b) { return {a.value + b.value}; }
};

} // namespace plumb::base

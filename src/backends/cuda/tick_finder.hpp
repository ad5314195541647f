// SPDX-License-Identifier: Apache-2.0
// What a device's event clock counts in: the greatest common divisor of measured durations. Durations of a known tick
// are put back onto its grid, which takes out the rounding of the driver's floats. Thread rule: any thread, lock-free.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace plumb::backends::cuda {

class TickFinder {
  public:
    /// A measured duration; long ones, whose float is too coarse, say nothing.
    void add(double ns) noexcept {
        const double rounded = std::round(std::abs(ns));
        if (rounded < 1.0 || rounded > longest_ns) {
            return;
        }
        std::uint64_t known = gcd_.load(std::memory_order_relaxed);
        std::uint64_t next = 0;
        do {
            next = std::gcd(known, static_cast<std::uint64_t>(rounded));
        } while (!gcd_.compare_exchange_weak(known, next, std::memory_order_relaxed));
        seen_.fetch_add(1, std::memory_order_relaxed);
    }

    /// 0 while too little was seen.
    [[nodiscard]] double tick_ns() const noexcept {
        return seen_.load(std::memory_order_relaxed) < enough
                   ? 0.0
                   : static_cast<double>(gcd_.load(std::memory_order_relaxed));
    }

    /// The multiple of the tick that a float of milliseconds stands for, where it can be told: never further away than
    /// the float's own rounding.
    [[nodiscard]] double on_grid(double ns) const noexcept {
        const double tick = tick_ns();
        const double rounding = std::abs(ns) / 16'777'216.0; // half an ulp: 2^-24 of the value
        if (tick < 2.0 || rounding > 0.45 * tick) {
            return ns;
        }
        const double snapped = std::round(ns / tick) * tick;
        return std::abs(snapped - ns) <= rounding + 0.01 ? snapped : ns;
    }

  private:
    static constexpr double longest_ns = 1e6; // a float of milliseconds is good to 0.1 ns there
    static constexpr std::uint32_t enough = 16;

    std::atomic<std::uint64_t> gcd_{0};
    std::atomic<std::uint32_t> seen_{0};
};

} // namespace plumb::backends::cuda

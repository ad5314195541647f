// SPDX-License-Identifier: Apache-2.0
// The clock of a device's counters: pairs with the host's clock by sampleTimestamps, and their rate by a fit over at least
// two of them. The time that the system gives with a counter is in a unit that differs by machine: our own clock is read on both
// sides instead. Owned by a counter timer. Thread rule: any thread; short locks.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "backends/metal/driver.hpp"
#include "clock/correlation.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::metal {

class CounterClock {
  public:
    /// Keeps the device.
    CounterClock(const MetalDriver& driver, Id device, const HostClock* host_clock)
        : driver_(driver), device_(Held::retained(driver, device)), host_clock_(clock::host_clock(host_clock)) {}

    /// Error unsupported where the device answers 0.
    Result<DeviceClockPair> pair() noexcept;
    /// Error unavailable before two pairs, corrupt where the counter stands still or runs backwards.
    Result<double> ns_per_tick();
    Result<Elapsed> duration(const DeviceSpan& span);

  private:
    static constexpr std::size_t most_pairs = 32;
    Result<clock::Correlation> fit();

    const MetalDriver& driver_;
    Held device_;
    clock::HostClockSource host_clock_;
    std::mutex mutex_; // guards what follows
    std::deque<DeviceClockPair> pairs_;
    std::optional<clock::Correlation> fit_;
};

} // namespace plumb::backends::metal

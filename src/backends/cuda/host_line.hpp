// SPDX-License-Identifier: Apache-2.0
// Where a device's ticks lie on the common clock, from the clock pairs read so far: by the fit (clock/correlation) once
// they span long enough, by the nearest pair before. Owned by a Timeline. Thread rule: its owner's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "clock/correlation.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

/// A moment on the common clock; the truth is no further away than `bound_ns`.
struct HostPlace {
    std::int64_t monotonic_ns = 0;
    double bound_ns = 0;
};

class HostLine {
  public:
    void add(const DeviceClockPair& pair);
    /// Nothing before the first pair.
    [[nodiscard]] std::optional<HostPlace> place(std::uint64_t ticks) const;

  private:
    static constexpr std::size_t most_pairs = 32;
    std::deque<DeviceClockPair> pairs_;
    std::optional<clock::Correlation> fit_;
};

} // namespace plumb::backends::cuda

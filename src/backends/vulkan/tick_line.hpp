// SPDX-License-Identifier: Apache-2.0
// A device clock of N valid bits as one that never wraps, and where its ticks lie on the common clock: by a fit of offset
// and slope over the clock pairs read so far. Owned by a queue's timer. Thread rule: its owner's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "clock/correlation.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::vulkan {

class TickLine {
  public:
    /// `valid_bits` from 1 to 64; `period_ns` is the length of a tick as the driver states it: it says how often the clock
    /// wrapped in a long gap, and nothing else.
    TickLine(unsigned valid_bits, double period_ns);

    /// The latest moment at or before `now_ns` (or a quarter of the range after it) at which the clock read `raw`.
    [[nodiscard]] std::uint64_t unwrap(std::uint64_t raw, std::int64_t now_ns);
    /// From `begin` to `end`; negative where the device says that it ended before it began.
    [[nodiscard]] std::int64_t difference(std::uint64_t begin, std::uint64_t end) const noexcept;
    [[nodiscard]] std::uint64_t mask() const noexcept { return mask_; }

    /// Its ticks are unwrapped ones.
    void add(const DeviceClockPair& pair);
    [[nodiscard]] const std::deque<DeviceClockPair>& pairs() const noexcept { return pairs_; }

    /// Whether the moment `ticks` was later than `host_ns`, as surely as the fit can tell.
    [[nodiscard]] bool surely_after(std::uint64_t ticks, std::int64_t host_ns) const;
    /// Error unavailable before the second pair: the stated period is not the clock's rate.
    [[nodiscard]] Result<Elapsed> duration(std::uint64_t ticks) const;

  private:
    static constexpr std::size_t most_pairs = 32;
    struct Reference {
        std::uint64_t ticks = 0;
        std::int64_t ns = 0;
    };

    [[nodiscard]] std::optional<clock::Correlation> fitted() const;

    unsigned bits_;
    std::uint64_t mask_;
    double period_ns_;
    std::optional<Reference> reference_;
    std::deque<DeviceClockPair> pairs_;
    std::optional<clock::Correlation> fit_;
};

} // namespace plumb::backends::vulkan

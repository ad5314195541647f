// SPDX-License-Identifier: Apache-2.0
// The clock of command buffers: GPUStartTime and GPUEndTime are seconds of the system's uptime, which the host reads too.
// A queue of our own serves the self-test and the floor, so that nothing waits for the caller's. Owned by a queue timer. Thread
// rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/metal/completion.hpp"
#include "backends/metal/driver.hpp"
#include "backends/metal/markers.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"
#include "plumb/results.hpp"

namespace plumb::backends::metal {

class MetalTimeline {
  public:
    /// Error unsupported where the system's command buffers carry no times: found by timing one of our own. A device that is
    /// too busy to answer is believed.
    static Result<std::unique_ptr<MetalTimeline>> create(const MetalDriver& driver, Id device, Completions& completions,
                                                         const HostClock* host_clock);

    [[nodiscard]] Result<DeviceClockPair> clock_pair() noexcept;
    [[nodiscard]] Result<double> floor_ns();
    /// What committing an empty command buffer and waiting for it took at the start: what sync=immediate adds to each
    /// scope at least. Absent where the device was too busy.
    [[nodiscard]] const Figure& cost_of_waiting_ns() const noexcept { return cost_of_waiting_ns_; }
    /// "metal:0": devices in the order of enumerate().
    [[nodiscard]] const std::string& clock_name() const noexcept { return clock_name_; }

  private:
    MetalTimeline(const MetalDriver& driver, const HostClock* host_clock)
        : driver_(driver), host_clock_(clock::host_clock(host_clock)) {}
    Status open(Id device, Completions& completions);
    Status test();
    Status wait_short(const Completion& note, std::int64_t limit_ns) const noexcept;
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock::now_ns(host_clock_).value; }

    const MetalDriver& driver_;
    clock::HostClockSource host_clock_;
    std::string clock_name_;
    Figure cost_of_waiting_ns_;
    std::unique_ptr<Markers> own_;
};

} // namespace plumb::backends::metal

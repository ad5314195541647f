// SPDX-License-Identifier: Apache-2.0
// A device's clock as its events show it: reading stamps, pairs with the host's clock, the floor. Ticks are the device's
// nanoseconds. A queue of our own serves pairs and floor; it is made when first asked for, and nothing waits for the
// caller's queue. Owned by a queue timer. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/driver.hpp"
#include "backends/opencl/own_queue.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::opencl {

/// The four times of a command.
struct CommandTimes {
    std::uint64_t queued = 0;
    std::uint64_t submitted = 0;
    std::uint64_t started = 0;
    std::uint64_t ended = 0;
};

class OpenClTimeline {
  public:
    static Result<std::unique_ptr<OpenClTimeline>> create(const OpenClDriver& driver, Context context, DeviceId device,
                                                          const HostClock* host_clock);
    ~OpenClTimeline();
    OpenClTimeline(const OpenClTimeline&) = delete;
    OpenClTimeline& operator=(const OpenClTimeline&) = delete;

    /// Never waits. Error pending until the command is complete, failed when it ended with an error, corrupt when a stamp
    /// is missing or they contradict each other.
    [[nodiscard]] Result<CommandTimes> times(Event event) const noexcept;

    /// By clGetDeviceAndHostTimer where the platform has it, else by a marker between two readings of the host's clock.
    [[nodiscard]] Result<DeviceClockPair> clock_pair() noexcept;
    [[nodiscard]] Result<double> floor_ns();

    /// "opencl:0": devices in the order of enumerate().
    [[nodiscard]] const std::string& clock_name() const noexcept { return clock_name_; }
    [[nodiscard]] const std::string& device_name() const noexcept { return device_name_; }
    /// CL_DEVICE_PROFILING_TIMER_RESOLUTION, at least 1.
    [[nodiscard]] std::uint64_t resolution_ns() const noexcept { return resolution_ns_; }
    [[nodiscard]] const OpenClDriver& driver() const noexcept { return driver_; }
    [[nodiscard]] bool has_device_timer() const noexcept { return has_device_timer_; }
    /// Why not; empty where it has one.
    [[nodiscard]] const std::string& device_timer_reason() const noexcept { return timer_reason_; }

  private:
    /// A marker on our queue, and what the host's clock said around the call that enqueued it.
    struct Probe {
        Event event = nullptr;
        std::int64_t before_ns = 0;
        std::int64_t after_ns = 0;
        std::int64_t realtime_ns = 0; // at before_ns
    };

    OpenClTimeline(const OpenClDriver& driver, Context context, DeviceId device, const HostClock* host_clock);
    Status open();
    Status ask_for_device_timer();
    Result<CommandQueue> own_queue();
    Result<bool> complete(Event event) const noexcept;
    Status wait_short(Event event, std::int64_t limit_ns) const noexcept;
    Result<DeviceClockPair> pair_by_timer() noexcept;
    Result<DeviceClockPair> pair_by_marker() noexcept;
    [[nodiscard]] bool narrow(const Result<DeviceClockPair>& pair) const noexcept;
    Result<DeviceClockPair> read(const Probe& probe, std::int64_t seen_ns) const noexcept;
    Result<Probe> enqueue_probe(CommandQueue queue, Event after = nullptr) noexcept;
    Result<std::vector<Probe>> enqueue_behind_gate(CommandQueue queue, std::size_t count);
    Status flush(CommandQueue queue) const noexcept;
    void drop(Event event) const noexcept;
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock::now_ns(host_clock_).value; }

    const OpenClDriver& driver_;
    Context context_; // kept alive by the caller's queue
    DeviceId device_;
    clock::HostClockSource host_clock_;
    std::string clock_name_;
    std::string device_name_;
    std::uint64_t resolution_ns_ = 1;
    bool has_device_timer_ = false;
    std::string timer_reason_;

    std::mutex mutex_; // guards what follows
    std::unique_ptr<OwnQueue> own_;
    Probe outstanding_; // of a device that was busy; the next pair
    std::uint64_t narrowest_ticks_ = no_ticks;
    std::optional<DeviceClockPair> last_;
};

std::vector<Capability> capabilities_of(const OpenClTimeline& timeline, bool out_of_order);

} // namespace plumb::backends::opencl

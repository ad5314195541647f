// SPDX-License-Identifier: Apache-2.0
// One VkQueue as its timer sees it: the calls of its device, what its timestamps are, and its clock pairs.
// Owned by a queue's timer. Thread rule: its owner's lock; submitting needs the right to submit to the queue besides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/vulkan/driver.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::vulkan {

/// A raw stamp of the device between two readings of the host's clock.
struct RawPair {
    std::uint64_t raw = 0;
    std::int64_t before_ns = 0;
    std::int64_t after_ns = 0;
};

class QueueAccess {
  public:
    /// Error unavailable without driver, unsupported where this queue has no timestamps, with the reason.
    static Result<QueueAccess> open(const VulkanHandles& handles, const clock::HostClockSource& host_clock);

    [[nodiscard]] const DeviceCalls& calls() const noexcept { return calls_; }
    [[nodiscard]] LogicalDevice device() const noexcept { return handles_.device; }
    [[nodiscard]] NativeQueue queue() const noexcept { return handles_.queue; }
    [[nodiscard]] std::uint32_t family() const noexcept { return handles_.queue_family; }
    [[nodiscard]] unsigned valid_bits() const noexcept { return valid_bits_; }
    [[nodiscard]] double period_ns() const noexcept { return period_ns_; }
    [[nodiscard]] bool host_reset() const noexcept {
        return handles_.host_query_reset && calls_.host_reset() != nullptr;
    }
    [[nodiscard]] bool calibrated() const noexcept { return calls_.calibrated() != nullptr && has_device_domain_; }
    [[nodiscard]] std::vector<Capability> capabilities() const;
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock::now_ns(host_clock_).value; }

    /// Both clocks by the driver's own call, or bracketed by ours where it cannot read the host's clock that we use.
    [[nodiscard]] Result<RawPair> calibrated_pair() noexcept;
    [[nodiscard]] Status submit(CommandBuffer commands, Fence fence) noexcept;

    /// An error once the device was lost: nothing calls it any more but to give things back.
    [[nodiscard]] const Status& status() const noexcept { return status_; }
    /// The error of a call; remembers a lost device.
    [[nodiscard]] Error failed(VkResult result, const char* call) noexcept;

  private:
    QueueAccess(const VulkanHandles& handles, const clock::HostClockSource& host_clock)
        : handles_(handles), host_clock_(host_clock) {}

    VulkanHandles handles_;
    clock::HostClockSource host_clock_;
    DeviceCalls calls_;
    unsigned valid_bits_ = 0;
    double period_ns_ = 0;
    bool has_device_domain_ = false;
    bool has_monotonic_domain_ = false;
    Status status_;
};

/// What a device's queues of one kind can do; for listing, without a logical device.
std::vector<Capability> capabilities_of(unsigned valid_bits, bool calibrated, bool host_reset);

} // namespace plumb::backends::vulkan

// SPDX-License-Identifier: Apache-2.0
// An instance, a device and a queue of our own: for whoever times a device without giving a queue (plumb selftest).
// Owned by the timer of that queue. Thread rule: made and destroyed on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/vulkan/driver.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::vulkan {

/// An instance of our own; plain, for asking.
class OwnInstance {
  public:
    /// That of the machine's own loader is made once and kept for good: some drivers lose memory each time the loader takes
    /// them out of the process.
    static Result<std::shared_ptr<OwnInstance>> create(FindCall find);
    ~OwnInstance();
    OwnInstance(const OwnInstance&) = delete;
    OwnInstance& operator=(const OwnInstance&) = delete;

    [[nodiscard]] const InstanceCalls& calls() const noexcept { return calls_; }
    [[nodiscard]] Instance instance() const noexcept { return instance_; }
    /// Error unavailable when there is none.
    [[nodiscard]] Result<std::vector<PhysicalDevice>> devices() const;
    [[nodiscard]] Device describe(PhysicalDevice physical, std::uint32_t index) const;
    /// The family with timestamps that computes; the number of families where there is none.
    [[nodiscard]] std::uint32_t family_of(PhysicalDevice physical, std::uint32_t& valid_bits) const;
    /// The extension that calibrates timestamps here; null where there is none.
    [[nodiscard]] const char* calibration_of(PhysicalDevice physical) const;

  private:
    OwnInstance() = default;
    static Result<std::shared_ptr<OwnInstance>> make(FindCall find);

    InstanceCalls calls_;
    Instance instance_ = nullptr;
};

class OwnDevice {
  public:
    /// Error not_found when there is no device of that index.
    static Result<std::unique_ptr<OwnDevice>> create(FindCall find, std::uint32_t index);
    ~OwnDevice();
    OwnDevice(const OwnDevice&) = delete;
    OwnDevice& operator=(const OwnDevice&) = delete;

    [[nodiscard]] const VulkanHandles& handles() const noexcept { return handles_; }

  private:
    explicit OwnDevice(std::shared_ptr<OwnInstance> instance) : instance_(std::move(instance)) {}
    std::shared_ptr<OwnInstance> instance_;
    DeviceCalls calls_;
    VulkanHandles handles_;
};

} // namespace plumb::backends::vulkan

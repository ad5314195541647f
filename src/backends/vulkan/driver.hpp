// SPDX-License-Identifier: Apache-2.0
// The Vulkan loader and the calls of one instance and one device. No Vulkan header or library is needed to build:
// libvulkan.so.1 is opened at the first use, unless the caller passes its own vkGetInstanceProcAddr.
// Tables are immutable once filled: any thread. Which calls need which lock is Vulkan's rule, kept by the callers.
#pragma once

#include <string>
#include <vector>

#include "backends/vulkan/driver_calls.hpp"
#include "backends/vulkan/driver_types.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::vulkan {

#define PLUMB_VULKAN_MEMBER(member, symbol, need, result, parameters) result(*member) parameters = nullptr;

struct InstanceCalls {
    PLUMB_VULKAN_INSTANCE_CALLS(PLUMB_VULKAN_MEMBER)

    /// Error unavailable names the first required call that is missing.
    static Result<InstanceCalls> load(FindCall find, Instance instance);
};

struct DeviceCalls {
    PLUMB_VULKAN_DEVICE_CALLS(PLUMB_VULKAN_MEMBER)

    static Result<DeviceCalls> load(const InstanceCalls& instance, LogicalDevice device);
    /// Null unless the device was made with VK_KHR_calibrated_timestamps or VK_EXT_calibrated_timestamps.
    [[nodiscard]] auto calibrated() const noexcept {
        return get_calibrated_timestamps_khr != nullptr ? get_calibrated_timestamps_khr : get_calibrated_timestamps_ext;
    }
    [[nodiscard]] auto host_reset() const noexcept {
        return reset_query_pool != nullptr ? reset_query_pool : reset_query_pool_ext;
    }
};

#undef PLUMB_VULKAN_MEMBER

/// The loader of this machine, opened at the first call. Error unavailable says what to install.
const Result<FindCall>& loader();
/// Opens a loader by name; for tests.
Result<FindCall> load_loader(const char* library);

/// What the device says it can read its own clock together with; empty where it cannot or does not say.
std::vector<TimeDomain> time_domains(const InstanceCalls& calls, PhysicalDevice device);

/// "vkQueueSubmit: VK_ERROR_DEVICE_LOST (-4); <advice>" as an Error with the fitting code.
Error error_of(VkResult result, const char* call, const std::string& advice);

} // namespace plumb::backends::vulkan

// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/driver.hpp"

#include <utility>

#include "base/dynamic_library.hpp"

namespace plumb::backends::vulkan {
namespace {

using base::Need;

Error missing_call(const char* symbol) {
    return {ErrorCode::unavailable, std::string("the Vulkan driver has no ") + symbol +
                                        "; install a driver for Vulkan 1.0 or later, and see that vulkaninfo runs"};
}

} // namespace

#define PLUMB_VULKAN_FIND(member, symbol, need, result, parameters)                      \
    calls.member = reinterpret_cast<decltype(calls.member)>(find_call(#symbol));         \
    if (calls.member == nullptr && Need::need == Need::required && missing == nullptr) { \
        missing = #symbol;                                                               \
    }

Result<InstanceCalls> InstanceCalls::load(FindCall find, Instance instance) {
    InstanceCalls calls;
    const char* missing = nullptr;
    const auto find_call = [&](const char* symbol) {
        return find(instance, symbol);
    };
    PLUMB_VULKAN_INSTANCE_CALLS(PLUMB_VULKAN_FIND)
    return missing == nullptr ? Result<InstanceCalls>(calls) : Result<InstanceCalls>(missing_call(missing));
}

Result<DeviceCalls> DeviceCalls::load(const InstanceCalls& instance, LogicalDevice device) {
    DeviceCalls calls;
    const char* missing = nullptr;
    const auto find_call = [&](const char* symbol) {
        return instance.get_device_proc_addr(device, symbol);
    };
    PLUMB_VULKAN_DEVICE_CALLS(PLUMB_VULKAN_FIND)
    return missing == nullptr ? Result<DeviceCalls>(calls) : Result<DeviceCalls>(missing_call(missing));
}

#undef PLUMB_VULKAN_FIND

Result<FindCall> load_loader(const char* library) {
    Result<base::DynamicLibrary> opened = base::DynamicLibrary::open(
        {library != nullptr ? library : ""},
        "install the Vulkan loader (libvulkan1) and your device's driver (mesa-vulkan-drivers, or the vendor's)");
    if (!opened) {
        return opened.error();
    }
    const base::DynamicLibrary& kept = base::keep_for_good(std::move(*opened));
    const auto find = kept.function<AnyCall(Instance, const char*)>("vkGetInstanceProcAddr");
    if (!find) {
        return Error{ErrorCode::unavailable, kept.name() +
                                                 " is no Vulkan loader; install libvulkan1, or take that file "
                                                 "out of the library path"};
    }
    return FindCall{*find};
}

const Result<FindCall>& loader() {
    static const Result<FindCall>& only = *new Result<FindCall>(load_loader("libvulkan.so.1"));
    return only;
}

std::vector<TimeDomain> time_domains(const InstanceCalls& calls, PhysicalDevice device) {
    const auto ask = calls.get_time_domains_khr != nullptr ? calls.get_time_domains_khr : calls.get_time_domains_ext;
    std::uint32_t count = 0;
    if (ask == nullptr || ask(device, &count, nullptr) != VkResult::success) {
        return {};
    }
    std::vector<TimeDomain> domains(count);
    const VkResult asked = ask(device, &count, domains.data());
    domains.resize(asked == VkResult::success || asked == VkResult::incomplete ? count : 0);
    return domains;
}

namespace {

const char* name_of(VkResult result) {
    switch (result) {
    case VkResult::out_of_host_memory:
        return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VkResult::out_of_device_memory:
        return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VkResult::initialization_failed:
        return "VK_ERROR_INITIALIZATION_FAILED";
    case VkResult::device_lost:
        return "VK_ERROR_DEVICE_LOST";
    case VkResult::extension_not_present:
        return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VkResult::incompatible_driver:
        return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VkResult::too_many_objects:
        return "VK_ERROR_TOO_MANY_OBJECTS";
    case VkResult::timeout:
        return "VK_TIMEOUT";
    default:
        return "an error";
    }
}

ErrorCode code_of(VkResult result) {
    switch (result) {
    case VkResult::out_of_host_memory:
    case VkResult::out_of_device_memory:
    case VkResult::too_many_objects:
        return ErrorCode::out_of_memory;
    case VkResult::device_lost:
    case VkResult::initialization_failed:
    case VkResult::incompatible_driver:
        return ErrorCode::unavailable;
    case VkResult::extension_not_present:
    case VkResult::feature_not_present:
        return ErrorCode::unsupported;
    case VkResult::timeout:
    case VkResult::not_ready:
        return ErrorCode::pending;
    default:
        return ErrorCode::failed;
    }
}

} // namespace

Error error_of(VkResult result, const char* call, const std::string& advice) {
    return {code_of(result), std::string(call) + ": " + name_of(result) + " (" +
                                 std::to_string(static_cast<int>(result)) + "); " + advice};
}

} // namespace plumb::backends::vulkan

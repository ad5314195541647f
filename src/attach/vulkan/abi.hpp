// SPDX-License-Identifier: Apache-2.0
// Our own statement of what a Vulkan layer meets beside what the backend knows (backends/vulkan/driver_types.hpp): the loader's chains,
// and the structs that we look into. abi_test.cpp compares it with the real headers where those are installed. Plain data.
#pragma once

#include "backends/vulkan/driver_types.hpp"

namespace plumb::attach::vulkan {

using namespace plumb::backends::vulkan;

using Pipeline = std::uint64_t;
using FindDeviceCall = AnyCall (*)(LogicalDevice device, const char* name);

// Numbers of VkStructureType and VkObjectType.
inline constexpr std::int32_t loader_instance_create_info = 47;
inline constexpr std::int32_t loader_device_create_info = 48;
inline constexpr std::int32_t object_type_pipeline = 19;
inline constexpr std::uint32_t one_time_submit = 0x1;
inline constexpr std::int32_t bind_point_compute = 1;

/// The beginning of every struct in a chain of create infos.
struct Chained {
    std::int32_t type = 0;
    const Chained* next = nullptr;
};

struct NegotiateLayerInterface {
    std::int32_t type = 0;
    void* next = nullptr;
    std::uint32_t version = 0;
    FindCall find_instance_call = nullptr;
    FindDeviceCall find_device_call = nullptr;
    FindCall find_physical_device_call = nullptr;
};

enum class LayerFunction : std::int32_t { link_info = 0, loader_data_callback = 1 };

struct InstanceLink {
    InstanceLink* next;
    FindCall next_find;
    FindCall next_find_physical_device_call;
};
struct InstanceLayerInfo {
    std::int32_t type;
    const void* next;
    LayerFunction function;
    InstanceLink* link; // of link_info; else something else
    void* more;
};

using SetLoaderData = VkResult (*)(LogicalDevice device, void* object);
struct DeviceLink {
    DeviceLink* next;
    FindCall next_find_instance_call;
    FindDeviceCall next_find;
};
struct DeviceLayerInfo {
    std::int32_t type;
    const void* next;
    LayerFunction function;
    union {
        DeviceLink* link;
        SetLoaderData set_loader_data;
    };
};

struct QueueInfo2 { // VkDeviceQueueInfo2
    std::int32_t type;
    const void* next;
    std::uint32_t flags, family, index;
};
struct CommandBufferSubmitInfo {
    std::int32_t type;
    const void* next;
    CommandBuffer commands;
    std::uint32_t device_mask;
};
struct SubmitInfo2 {
    std::int32_t type;
    const void* next;
    std::uint32_t flags;
    std::uint32_t wait_count;
    const void* waits;
    std::uint32_t command_count;
    const CommandBufferSubmitInfo* commands;
    std::uint32_t signal_count;
    const void* signals;
};
struct DebugLabel { // VkDebugUtilsLabelEXT
    std::int32_t type;
    const void* next;
    const char* name;
    float colour[4];
};
struct DebugObjectName { // VkDebugUtilsObjectNameInfoEXT
    std::int32_t type;
    const void* next;
    std::int32_t object_type;
    std::uint64_t object;
    const char* name;
};

} // namespace plumb::attach::vulkan

// SPDX-License-Identifier: Apache-2.0
// Our own statement of the Vulkan ABI, as far as we use it: no Vulkan header is needed to build. driver_abi_test.cpp
// compares it with the real one where that is installed. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plumb/vulkan.hpp"

namespace plumb::backends::vulkan {

using Instance = VkInstance_T*;
using PhysicalDevice = VkPhysicalDevice_T*;
using LogicalDevice = VkDevice_T*;
using NativeQueue = VkQueue_T*;
using CommandBuffer = VkCommandBuffer_T*;
// Pointers on 64-bit machines, numbers elsewhere: 64 bits either way.
using QueryPool = std::uint64_t;
using CommandPool = std::uint64_t;
using Fence = std::uint64_t;
using Semaphore = std::uint64_t;

using AnyCall = void (*)();
using FindCall = AnyCall (*)(Instance instance, const char* name);

enum class VkResult : std::int32_t {
    success = 0,
    not_ready = 1,
    timeout = 2,
    incomplete = 5,
    out_of_host_memory = -1,
    out_of_device_memory = -2,
    initialization_failed = -3,
    device_lost = -4,
    layer_not_present = -6,
    extension_not_present = -7,
    feature_not_present = -8,
    incompatible_driver = -9,
    too_many_objects = -10,
    unknown = -13,
};

enum class StructureType : std::int32_t {
    application_info = 0,
    instance_create_info = 1,
    device_queue_create_info = 2,
    device_create_info = 3,
    submit_info = 4,
    fence_create_info = 8,
    query_pool_create_info = 11,
    command_pool_create_info = 39,
    command_buffer_allocate_info = 40,
    command_buffer_begin_info = 42,
    calibrated_timestamp_info = 1000184000,
};

enum class TimeDomain : std::int32_t { device = 0, clock_monotonic = 1, clock_monotonic_raw = 2 };

inline constexpr std::int32_t query_type_timestamp = 2;
inline constexpr std::uint32_t stage_top_of_pipe = 0x1;
inline constexpr std::uint32_t stage_bottom_of_pipe = 0x2000;
inline constexpr std::uint32_t result_64_bit = 0x1;
inline constexpr std::uint32_t result_with_availability = 0x4;
inline constexpr std::uint32_t queue_graphics = 0x1;
inline constexpr std::uint32_t queue_compute = 0x2;
inline constexpr std::uint32_t simultaneous_use = 0x4;

struct ApplicationInfo {
    StructureType type = StructureType::application_info;
    const void* next = nullptr;
    const char* application = nullptr;
    std::uint32_t application_version = 0;
    const char* engine = nullptr;
    std::uint32_t engine_version = 0;
    std::uint32_t api_version = 0;
};

struct InstanceCreateInfo {
    StructureType type = StructureType::instance_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    const ApplicationInfo* application = nullptr;
    std::uint32_t layer_count = 0;
    const char* const* layers = nullptr;
    std::uint32_t extension_count = 0;
    const char* const* extensions = nullptr;
};

struct DeviceQueueCreateInfo {
    StructureType type = StructureType::device_queue_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    std::uint32_t family = 0;
    std::uint32_t count = 0;
    const float* priorities = nullptr;
};

struct DeviceCreateInfo {
    StructureType type = StructureType::device_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    std::uint32_t queue_count = 0;
    const DeviceQueueCreateInfo* queues = nullptr;
    std::uint32_t layer_count = 0;
    const char* const* layers = nullptr;
    std::uint32_t extension_count = 0;
    const char* const* extensions = nullptr;
    const void* features = nullptr;
};

struct SubmitInfo {
    StructureType type = StructureType::submit_info;
    const void* next = nullptr;
    std::uint32_t wait_count = 0;
    const Semaphore* waits = nullptr;
    const std::uint32_t* wait_stages = nullptr;
    std::uint32_t command_count = 0;
    const CommandBuffer* commands = nullptr;
    std::uint32_t signal_count = 0;
    const Semaphore* signals = nullptr;
};

struct FenceCreateInfo {
    StructureType type = StructureType::fence_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
};

struct QueryPoolCreateInfo {
    StructureType type = StructureType::query_pool_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    std::int32_t query_type = query_type_timestamp;
    std::uint32_t count = 0;
    std::uint32_t statistics = 0;
};

struct CommandPoolCreateInfo {
    StructureType type = StructureType::command_pool_create_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    std::uint32_t family = 0;
};

struct CommandBufferAllocateInfo {
    StructureType type = StructureType::command_buffer_allocate_info;
    const void* next = nullptr;
    CommandPool pool = 0;
    std::int32_t level = 0; // primary
    std::uint32_t count = 0;
};

struct CommandBufferBeginInfo {
    StructureType type = StructureType::command_buffer_begin_info;
    const void* next = nullptr;
    std::uint32_t flags = 0;
    const void* inheritance = nullptr;
};

struct CalibratedTimestampInfo {
    StructureType type = StructureType::calibrated_timestamp_info;
    const void* next = nullptr;
    TimeDomain domain = TimeDomain::device;
};

struct QueueFamilyProperties {
    std::uint32_t flags = 0;
    std::uint32_t count = 0;
    std::uint32_t timestamp_valid_bits = 0;
    std::uint32_t transfer_granularity[3] = {};
};

struct ExtensionProperties {
    char name[256] = {};
    std::uint32_t version = 0;
};

/// Of the limits we read the timestamp's period alone.
struct alignas(8) PhysicalDeviceProperties {
    std::uint32_t api_version = 0;
    std::uint32_t driver_version = 0;
    std::uint32_t vendor = 0;
    std::uint32_t device = 0;
    std::int32_t type = 0;
    char name[256] = {};
    std::uint8_t cache_uuid[16] = {};
    std::uint8_t limits_before[428] = {};
    float timestamp_period = 0; // nanoseconds per tick
    std::uint8_t limits_after[76] = {};
    std::uint32_t sparse[5] = {};
};

} // namespace plumb::backends::vulkan

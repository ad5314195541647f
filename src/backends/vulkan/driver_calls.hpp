// SPDX-License-Identifier: Apache-2.0
// Every entry point of Vulkan that we use: X(member, symbol, need, result, (parameters)). Those of an instance come from
// vkGetInstanceProcAddr, those of a device from vkGetDeviceProcAddr: no dispatch through layers that we do not need.
// `need` is `required`, or `optional`: its member is null where the version or the extension is not there.
#pragma once

#define PLUMB_VULKAN_INSTANCE_CALLS(X)                                                                        \
    X(destroy_instance, vkDestroyInstance, required, void, (Instance instance, const void* allocator))        \
    X(enumerate_physical_devices, vkEnumeratePhysicalDevices, required, VkResult,                             \
      (Instance instance, std::uint32_t * count, PhysicalDevice * devices))                                   \
    X(get_properties, vkGetPhysicalDeviceProperties, required, void,                                          \
      (PhysicalDevice device, PhysicalDeviceProperties * properties))                                         \
    X(get_queue_families, vkGetPhysicalDeviceQueueFamilyProperties, required, void,                           \
      (PhysicalDevice device, std::uint32_t * count, QueueFamilyProperties * families))                       \
    X(enumerate_extensions, vkEnumerateDeviceExtensionProperties, required, VkResult,                         \
      (PhysicalDevice device, const char* layer, std::uint32_t* count, ExtensionProperties* extensions))      \
    X(create_device, vkCreateDevice, required, VkResult,                                                      \
      (PhysicalDevice physical, const DeviceCreateInfo* info, const void* allocator, LogicalDevice* device))  \
    X(get_device_proc_addr, vkGetDeviceProcAddr, required, AnyCall, (LogicalDevice device, const char* name)) \
    X(get_time_domains_khr, vkGetPhysicalDeviceCalibrateableTimeDomainsKHR, optional, VkResult,               \
      (PhysicalDevice device, std::uint32_t * count, TimeDomain * domains))                                   \
    X(get_time_domains_ext, vkGetPhysicalDeviceCalibrateableTimeDomainsEXT, optional, VkResult,               \
      (PhysicalDevice device, std::uint32_t * count, TimeDomain * domains))

#define PLUMB_VULKAN_DEVICE_CALLS(X)                                                                                 \
    X(destroy_device, vkDestroyDevice, required, void, (LogicalDevice device, const void* allocator))                \
    X(get_queue, vkGetDeviceQueue, required, void,                                                                   \
      (LogicalDevice device, std::uint32_t family, std::uint32_t index, NativeQueue * queue))                        \
    X(queue_submit, vkQueueSubmit, required, VkResult,                                                               \
      (NativeQueue queue, std::uint32_t count, const SubmitInfo* submits, Fence fence))                              \
    X(queue_wait_idle, vkQueueWaitIdle, required, VkResult, (NativeQueue queue))                                     \
    X(create_fence, vkCreateFence, required, VkResult,                                                               \
      (LogicalDevice device, const FenceCreateInfo* info, const void* allocator, Fence* fence))                      \
    X(destroy_fence, vkDestroyFence, required, void, (LogicalDevice device, Fence fence, const void* allocator))     \
    X(wait_for_fences, vkWaitForFences, required, VkResult,                                                          \
      (LogicalDevice device, std::uint32_t count, const Fence* fences, std::uint32_t all, std::uint64_t timeout_ns)) \
    X(create_query_pool, vkCreateQueryPool, required, VkResult,                                                      \
      (LogicalDevice device, const QueryPoolCreateInfo* info, const void* allocator, QueryPool* pool))               \
    X(destroy_query_pool, vkDestroyQueryPool, required, void,                                                        \
      (LogicalDevice device, QueryPool pool, const void* allocator))                                                 \
    X(get_query_results, vkGetQueryPoolResults, required, VkResult,                                                  \
      (LogicalDevice device, QueryPool pool, std::uint32_t first, std::uint32_t count, std::size_t bytes, void* to,  \
       std::uint64_t stride, std::uint32_t flags))                                                                   \
    X(reset_query_pool, vkResetQueryPool, optional, void,                                                            \
      (LogicalDevice device, QueryPool pool, std::uint32_t first, std::uint32_t count))                              \
    X(reset_query_pool_ext, vkResetQueryPoolEXT, optional, void,                                                     \
      (LogicalDevice device, QueryPool pool, std::uint32_t first, std::uint32_t count))                              \
    X(create_command_pool, vkCreateCommandPool, required, VkResult,                                                  \
      (LogicalDevice device, const CommandPoolCreateInfo* info, const void* allocator, CommandPool* pool))           \
    X(destroy_command_pool, vkDestroyCommandPool, required, void,                                                    \
      (LogicalDevice device, CommandPool pool, const void* allocator))                                               \
    X(allocate_command_buffers, vkAllocateCommandBuffers, required, VkResult,                                        \
      (LogicalDevice device, const CommandBufferAllocateInfo* info, CommandBuffer* buffers))                         \
    X(begin_command_buffer, vkBeginCommandBuffer, required, VkResult,                                                \
      (CommandBuffer buffer, const CommandBufferBeginInfo* info))                                                    \
    X(end_command_buffer, vkEndCommandBuffer, required, VkResult, (CommandBuffer buffer))                            \
    X(cmd_reset_query_pool, vkCmdResetQueryPool, required, void,                                                     \
      (CommandBuffer buffer, QueryPool pool, std::uint32_t first, std::uint32_t count))                              \
    X(cmd_write_timestamp, vkCmdWriteTimestamp, required, void,                                                      \
      (CommandBuffer buffer, std::uint32_t stage, QueryPool pool, std::uint32_t query))                              \
    X(get_calibrated_timestamps_khr, vkGetCalibratedTimestampsKHR, optional, VkResult,                               \
      (LogicalDevice device, std::uint32_t count, const CalibratedTimestampInfo* infos, std::uint64_t* stamps,       \
       std::uint64_t* deviation_ns))                                                                                 \
    X(get_calibrated_timestamps_ext, vkGetCalibratedTimestampsEXT, optional, VkResult,                               \
      (LogicalDevice device, std::uint32_t count, const CalibratedTimestampInfo* infos, std::uint64_t* stamps,       \
       std::uint64_t* deviation_ns))

// SPDX-License-Identifier: Apache-2.0
// Our statement of the Vulkan ABI against the real header: sizes, offsets, values and signatures. The checks happen at
// compile time, where the header is installed.
#include <gtest/gtest.h>

#if __has_include(<vulkan/vulkan_core.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>
#define PLUMB_HAVE_VULKAN_HEADER 1
#endif

#include "backends/same_call_testing.hpp"
#include "backends/vulkan/driver.hpp"

#ifdef PLUMB_HAVE_VULKAN_HEADER
namespace plumb::backends::vulkan {
namespace {

// The names of the KHR extension are younger than some headers: it has the signatures of the EXT one.
using PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR = PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT;
using PFN_vkGetCalibratedTimestampsKHR = PFN_vkGetCalibratedTimestampsEXT;

#define PLUMB_VULKAN_SAME(member, symbol, need, result, parameters) \
    static_assert(SameCall<decltype(Table::member), PFN_##symbol, Handles::numbers>::value, #symbol);
struct Table : InstanceCalls, DeviceCalls {};
PLUMB_VULKAN_INSTANCE_CALLS(PLUMB_VULKAN_SAME)
PLUMB_VULKAN_DEVICE_CALLS(PLUMB_VULKAN_SAME)

#define PLUMB_VULKAN_LAYOUT(ours, theirs, last, their_last)                                     \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #theirs); \
    static_assert(offsetof(ours, last) == offsetof(theirs, their_last), #theirs "::" #their_last);
PLUMB_VULKAN_LAYOUT(ApplicationInfo, VkApplicationInfo, api_version, apiVersion)
PLUMB_VULKAN_LAYOUT(InstanceCreateInfo, VkInstanceCreateInfo, extensions, ppEnabledExtensionNames)
PLUMB_VULKAN_LAYOUT(DeviceQueueCreateInfo, VkDeviceQueueCreateInfo, priorities, pQueuePriorities)
PLUMB_VULKAN_LAYOUT(DeviceCreateInfo, VkDeviceCreateInfo, features, pEnabledFeatures)
PLUMB_VULKAN_LAYOUT(SubmitInfo, VkSubmitInfo, signals, pSignalSemaphores)
PLUMB_VULKAN_LAYOUT(SubmitInfo, VkSubmitInfo, commands, pCommandBuffers)
PLUMB_VULKAN_LAYOUT(FenceCreateInfo, VkFenceCreateInfo, flags, flags)
PLUMB_VULKAN_LAYOUT(QueryPoolCreateInfo, VkQueryPoolCreateInfo, count, queryCount)
PLUMB_VULKAN_LAYOUT(CommandPoolCreateInfo, VkCommandPoolCreateInfo, family, queueFamilyIndex)
PLUMB_VULKAN_LAYOUT(CommandBufferAllocateInfo, VkCommandBufferAllocateInfo, count, commandBufferCount)
PLUMB_VULKAN_LAYOUT(CommandBufferBeginInfo, VkCommandBufferBeginInfo, inheritance, pInheritanceInfo)
PLUMB_VULKAN_LAYOUT(CalibratedTimestampInfo, VkCalibratedTimestampInfoEXT, domain, timeDomain)
PLUMB_VULKAN_LAYOUT(QueueFamilyProperties, VkQueueFamilyProperties, timestamp_valid_bits, timestampValidBits)
PLUMB_VULKAN_LAYOUT(ExtensionProperties, VkExtensionProperties, version, specVersion)
PLUMB_VULKAN_LAYOUT(PhysicalDeviceProperties, VkPhysicalDeviceProperties, name, deviceName)
static_assert(offsetof(PhysicalDeviceProperties, timestamp_period) ==
              offsetof(VkPhysicalDeviceProperties, limits) + offsetof(VkPhysicalDeviceLimits, timestampPeriod));

#define PLUMB_VULKAN_VALUE(ours, theirs) \
    static_assert(static_cast<std::int64_t>(ours) == static_cast<std::int64_t>(theirs), #theirs);
PLUMB_VULKAN_VALUE(VkResult::not_ready, VK_NOT_READY)
PLUMB_VULKAN_VALUE(VkResult::timeout, VK_TIMEOUT)
PLUMB_VULKAN_VALUE(VkResult::incomplete, VK_INCOMPLETE)
PLUMB_VULKAN_VALUE(VkResult::out_of_host_memory, VK_ERROR_OUT_OF_HOST_MEMORY)
PLUMB_VULKAN_VALUE(VkResult::out_of_device_memory, VK_ERROR_OUT_OF_DEVICE_MEMORY)
PLUMB_VULKAN_VALUE(VkResult::device_lost, VK_ERROR_DEVICE_LOST)
PLUMB_VULKAN_VALUE(VkResult::extension_not_present, VK_ERROR_EXTENSION_NOT_PRESENT)
PLUMB_VULKAN_VALUE(VkResult::feature_not_present, VK_ERROR_FEATURE_NOT_PRESENT)
PLUMB_VULKAN_VALUE(VkResult::incompatible_driver, VK_ERROR_INCOMPATIBLE_DRIVER)
PLUMB_VULKAN_VALUE(VkResult::too_many_objects, VK_ERROR_TOO_MANY_OBJECTS)
PLUMB_VULKAN_VALUE(VkResult::unknown, VK_ERROR_UNKNOWN)
PLUMB_VULKAN_VALUE(StructureType::instance_create_info, VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::device_queue_create_info, VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::device_create_info, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::submit_info, VK_STRUCTURE_TYPE_SUBMIT_INFO)
PLUMB_VULKAN_VALUE(StructureType::fence_create_info, VK_STRUCTURE_TYPE_FENCE_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::query_pool_create_info, VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::command_pool_create_info, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::command_buffer_allocate_info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO)
PLUMB_VULKAN_VALUE(StructureType::command_buffer_begin_info, VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO)
PLUMB_VULKAN_VALUE(StructureType::calibrated_timestamp_info, VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT)
PLUMB_VULKAN_VALUE(TimeDomain::device, VK_TIME_DOMAIN_DEVICE_EXT)
PLUMB_VULKAN_VALUE(TimeDomain::clock_monotonic, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT)
PLUMB_VULKAN_VALUE(TimeDomain::clock_monotonic_raw, VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_EXT)
PLUMB_VULKAN_VALUE(query_type_timestamp, VK_QUERY_TYPE_TIMESTAMP)
PLUMB_VULKAN_VALUE(stage_top_of_pipe, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT)
PLUMB_VULKAN_VALUE(stage_bottom_of_pipe, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)
PLUMB_VULKAN_VALUE(result_64_bit, VK_QUERY_RESULT_64_BIT)
PLUMB_VULKAN_VALUE(result_with_availability, VK_QUERY_RESULT_WITH_AVAILABILITY_BIT)
PLUMB_VULKAN_VALUE(queue_graphics, VK_QUEUE_GRAPHICS_BIT)
PLUMB_VULKAN_VALUE(queue_compute, VK_QUEUE_COMPUTE_BIT)
PLUMB_VULKAN_VALUE(simultaneous_use, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)

} // namespace
} // namespace plumb::backends::vulkan
#endif

TEST(VulkanAbi, our_statement_of_the_abi_is_that_of_the_header) {
#ifndef PLUMB_HAVE_VULKAN_HEADER
    GTEST_SKIP() << "no Vulkan header was installed when this test was built (libvulkan-dev)";
#endif
}

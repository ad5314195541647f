// SPDX-License-Identifier: Apache-2.0
// Our own statement of what a layer meets against the real headers, where those are installed.
#include "attach/vulkan/abi.hpp"

#include <gtest/gtest.h>

#if __has_include(<vulkan/vk_layer.h>)
#define VK_NO_PROTOTYPES
#include <vulkan/vk_layer.h>

namespace plumb::attach::vulkan {
namespace {

#define EXPECT_SAME_PLACE(ours, member, theirs, field) EXPECT_EQ(offsetof(ours, member), offsetof(theirs, field))

TEST(VulkanLayerAbi, is_that_of_the_loader) {
    EXPECT_EQ(sizeof(NegotiateLayerInterface), sizeof(VkNegotiateLayerInterface));
    EXPECT_SAME_PLACE(NegotiateLayerInterface, version, VkNegotiateLayerInterface, loaderLayerInterfaceVersion);
    EXPECT_SAME_PLACE(NegotiateLayerInterface, find_instance_call, VkNegotiateLayerInterface, pfnGetInstanceProcAddr);
    EXPECT_SAME_PLACE(NegotiateLayerInterface, find_device_call, VkNegotiateLayerInterface, pfnGetDeviceProcAddr);
    EXPECT_SAME_PLACE(NegotiateLayerInterface, find_physical_device_call, VkNegotiateLayerInterface,
                      pfnGetPhysicalDeviceProcAddr);
    EXPECT_SAME_PLACE(InstanceLayerInfo, function, VkLayerInstanceCreateInfo, function);
    EXPECT_SAME_PLACE(InstanceLayerInfo, link, VkLayerInstanceCreateInfo, u);
    EXPECT_SAME_PLACE(InstanceLink, next_find, VkLayerInstanceLink, pfnNextGetInstanceProcAddr);
    EXPECT_SAME_PLACE(DeviceLayerInfo, function, VkLayerDeviceCreateInfo, function);
    EXPECT_SAME_PLACE(DeviceLayerInfo, link, VkLayerDeviceCreateInfo, u);
    EXPECT_SAME_PLACE(DeviceLink, next_find_instance_call, VkLayerDeviceLink, pfnNextGetInstanceProcAddr);
    EXPECT_SAME_PLACE(DeviceLink, next_find, VkLayerDeviceLink, pfnNextGetDeviceProcAddr);
    EXPECT_EQ(static_cast<int>(LayerFunction::link_info), VK_LAYER_LINK_INFO);
    EXPECT_EQ(static_cast<int>(LayerFunction::loader_data_callback), VK_LOADER_DATA_CALLBACK);
    EXPECT_EQ(loader_instance_create_info, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    EXPECT_EQ(loader_device_create_info, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
}

TEST(VulkanLayerAbi, is_that_of_the_calls) {
    EXPECT_SAME_PLACE(QueueInfo2, family, VkDeviceQueueInfo2, queueFamilyIndex);
    EXPECT_SAME_PLACE(CommandBufferSubmitInfo, commands, VkCommandBufferSubmitInfo, commandBuffer);
    EXPECT_EQ(sizeof(CommandBufferSubmitInfo), sizeof(VkCommandBufferSubmitInfo));
    EXPECT_SAME_PLACE(SubmitInfo2, command_count, VkSubmitInfo2, commandBufferInfoCount);
    EXPECT_SAME_PLACE(SubmitInfo2, commands, VkSubmitInfo2, pCommandBufferInfos);
    EXPECT_EQ(sizeof(SubmitInfo2), sizeof(VkSubmitInfo2));
    EXPECT_SAME_PLACE(DebugLabel, name, VkDebugUtilsLabelEXT, pLabelName);
    EXPECT_SAME_PLACE(DebugObjectName, object_type, VkDebugUtilsObjectNameInfoEXT, objectType);
    EXPECT_SAME_PLACE(DebugObjectName, object, VkDebugUtilsObjectNameInfoEXT, objectHandle);
    EXPECT_SAME_PLACE(DebugObjectName, name, VkDebugUtilsObjectNameInfoEXT, pObjectName);
    EXPECT_EQ(object_type_pipeline, VK_OBJECT_TYPE_PIPELINE);
    EXPECT_EQ(bind_point_compute, VK_PIPELINE_BIND_POINT_COMPUTE);
    EXPECT_EQ(one_time_submit, static_cast<std::uint32_t>(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT));
}

} // namespace
} // namespace plumb::attach::vulkan

#else

TEST(VulkanLayerAbi, is_that_of_the_loader) {
    GTEST_SKIP() << "vulkan/vk_layer.h was not installed when this was built (libvulkan-dev)";
}

#endif

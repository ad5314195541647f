// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/driver.hpp"

#include <gtest/gtest.h>

#include "backends/vulkan/own_device.hpp"
#include "mocks/virtual_vulkan/virtual_vulkan.hpp"

namespace plumb::backends::vulkan {
namespace {

TEST(VulkanDriver, M8_without_a_loader_it_is_unavailable_with_one_sentence_of_advice) {
    const auto loaded = load_loader("libvulkan-that-is-not-there.so.1");
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
    EXPECT_NE(loaded.error().message.find("install the Vulkan loader"), std::string::npos) << loaded.error().message;
}

TEST(VulkanDriver, a_library_that_is_no_loader_is_refused) {
    const auto loaded = load_loader("libc.so.6");
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
    EXPECT_NE(loaded.error().message.find("no Vulkan loader"), std::string::npos) << loaded.error().message;
}

TEST(VulkanDriver, M8_a_loader_without_a_driver_is_unavailable_with_one_sentence_of_advice) {
    vvk::reset();
    vvk::fail("vkCreateInstance", 1, VkResult::incompatible_driver);
    const auto instance = OwnInstance::create(vvk::get_instance_proc_addr);
    ASSERT_FALSE(instance.ok());
    EXPECT_EQ(instance.error().code, ErrorCode::unavailable);
    EXPECT_NE(instance.error().message.find("install a Vulkan driver"), std::string::npos) << instance.error().message;
}

TEST(VulkanDriver, devices_are_listed_with_what_their_queues_can_do) {
    vvk::Settings settings;
    settings.valid_bits = 0;
    settings.calibrated = false;
    vvk::reset(settings);
    const auto instance = OwnInstance::create(vvk::get_instance_proc_addr);
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    const auto devices = (*instance)->devices();
    ASSERT_TRUE(devices.ok() && devices->size() == 1);
    const Device device = (*instance)->describe((*devices)[0], 0);
    EXPECT_EQ(device.name, "virtual Vulkan device");
    EXPECT_EQ(device.driver, "Vulkan 1.3.0");
    ASSERT_FALSE(device.capabilities.empty());
    for (const Capability& capability : device.capabilities) {
        EXPECT_NE(capability.supported, !capability.reason.empty()) << capability.name;
        EXPECT_FALSE(capability.supported) << capability.name;
    }
    EXPECT_EQ(OwnDevice::create(vvk::get_instance_proc_addr, 0).error().code, ErrorCode::unsupported);
    EXPECT_EQ(OwnDevice::create(vvk::get_instance_proc_addr, 1).error().code, ErrorCode::not_found);
}

TEST(VulkanDriver, each_call_of_listing_and_opening_a_device_fails_once_with_a_sentence) {
    for (const char* call : {"vkCreateInstance", "vkEnumeratePhysicalDevices", "vkCreateDevice"}) {
        vvk::reset();
        vvk::fail(call, 1);
        const auto device = OwnDevice::create(vvk::get_instance_proc_addr, 0);
        ASSERT_FALSE(device.ok()) << call;
        EXPECT_EQ(device.error().code, ErrorCode::unavailable);
        EXPECT_NE(device.error().message.find(call), std::string::npos) << device.error().message;
        EXPECT_TRUE(OwnDevice::create(vvk::get_instance_proc_addr, 0).ok());
    }
}

} // namespace
} // namespace plumb::backends::vulkan

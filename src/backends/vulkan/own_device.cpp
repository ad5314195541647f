// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/own_device.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "backends/vulkan/queue_access.hpp"

namespace plumb::backends::vulkan {
namespace {

constexpr const char* driver_advice =
    "install a Vulkan driver for this device (mesa-vulkan-drivers, or the vendor's), and see that vulkaninfo lists it";
constexpr std::uint32_t version_1_1 = 1u << 22 | 1u << 12;

Error no_driver(VkResult result, const char* call) {
    Error error = error_of(result, call, driver_advice);
    error.code = ErrorCode::unavailable;
    return error;
}

std::string version_words(std::uint32_t version) {
    return std::to_string(version >> 22 & 0x7f) + "." + std::to_string(version >> 12 & 0x3ff) + "." +
           std::to_string(version & 0xfff);
}

} // namespace

Result<std::shared_ptr<OwnInstance>> OwnInstance::create(FindCall find) {
    struct Kept {
        std::mutex mutex;
        std::shared_ptr<OwnInstance> instance;
    };
    static Kept& kept = *new Kept; // never destroyed
    if (const Result<FindCall>& machine = loader(); !machine || *machine != find) {
        return make(find);
    }
    const std::lock_guard lock(kept.mutex);
    if (kept.instance != nullptr) {
        return kept.instance;
    }
    Result<std::shared_ptr<OwnInstance>> made = make(find);
    if (made) {
        kept.instance = *made;
    }
    return made;
}

Result<std::shared_ptr<OwnInstance>> OwnInstance::make(FindCall find) {
    using Create = VkResult(const InstanceCreateInfo*, const void*, Instance*);
    auto* const create = reinterpret_cast<Create*>(find(nullptr, "vkCreateInstance"));
    if (create == nullptr) {
        return Error{ErrorCode::unavailable,
                     "the Vulkan loader has no vkCreateInstance; reinstall it (libvulkan1 on Debian)"};
    }
    std::shared_ptr<OwnInstance> own(new OwnInstance);
    ApplicationInfo application;
    application.application = "plumb";
    application.api_version = version_1_1;
    InstanceCreateInfo info;
    info.application = &application;
    if (const VkResult made = create(&info, nullptr, &own->instance_); made != VkResult::success) {
        own->instance_ = nullptr;
        return no_driver(made, "vkCreateInstance");
    }
    const Result<InstanceCalls> calls = InstanceCalls::load(find, own->instance_);
    if (!calls) {
        return calls.error();
    }
    own->calls_ = *calls;
    return own;
}

OwnInstance::~OwnInstance() {
    if (instance_ != nullptr && calls_.destroy_instance != nullptr) {
        calls_.destroy_instance(instance_, nullptr);
    }
}

Result<std::vector<PhysicalDevice>> OwnInstance::devices() const {
    std::uint32_t count = 0;
    VkResult asked = calls_.enumerate_physical_devices(instance_, &count, nullptr);
    std::vector<PhysicalDevice> devices(count);
    if (asked == VkResult::success && count != 0) {
        asked = calls_.enumerate_physical_devices(instance_, &count, devices.data());
        devices.resize(count);
    }
    if (asked != VkResult::success && asked != VkResult::incomplete) {
        return no_driver(asked, "vkEnumeratePhysicalDevices");
    }
    if (devices.empty()) {
        return Error{ErrorCode::unavailable, std::string("there is no Vulkan device; ") + driver_advice};
    }
    return devices;
}

std::uint32_t OwnInstance::family_of(PhysicalDevice physical, std::uint32_t& valid_bits) const {
    std::uint32_t count = 0;
    calls_.get_queue_families(physical, &count, nullptr);
    std::vector<QueueFamilyProperties> families(count);
    calls_.get_queue_families(physical, &count, families.data());
    for (std::uint32_t i = 0; i < count; ++i) {
        valid_bits = families[i].timestamp_valid_bits;
        if (valid_bits != 0 && (families[i].flags & (queue_compute | queue_graphics)) != 0) {
            return i;
        }
    }
    valid_bits = 0;
    return count;
}

const char* OwnInstance::calibration_of(PhysicalDevice physical) const {
    std::uint32_t count = 0;
    if (calls_.enumerate_extensions(physical, nullptr, &count, nullptr) != VkResult::success) {
        return nullptr;
    }
    std::vector<ExtensionProperties> extensions(count);
    const VkResult asked = calls_.enumerate_extensions(physical, nullptr, &count, extensions.data());
    extensions.resize(asked == VkResult::success || asked == VkResult::incomplete ? count : 0);
    for (const char* wanted : {"VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps"}) {
        const auto is_wanted = [&](const ExtensionProperties& one) {
            return std::strcmp(one.name, wanted) == 0;
        };
        if (std::any_of(extensions.begin(), extensions.end(), is_wanted)) {
            return wanted;
        }
    }
    return nullptr;
}

Device OwnInstance::describe(PhysicalDevice physical, std::uint32_t index) const {
    PhysicalDeviceProperties properties;
    calls_.get_properties(physical, &properties);
    std::uint32_t bits = 0;
    static_cast<void>(family_of(physical, bits));
    Device device;
    device.index = index;
    device.name = std::string(properties.name, strnlen(properties.name, sizeof properties.name));
    device.driver = "Vulkan " + version_words(properties.api_version);
    device.capabilities = capabilities_of(bits, calibration_of(physical) != nullptr, false);
    return device;
}

Result<std::unique_ptr<OwnDevice>> OwnDevice::create(FindCall find, std::uint32_t index) {
    Result<std::shared_ptr<OwnInstance>> instance = OwnInstance::create(find);
    if (!instance) {
        return instance.error();
    }
    std::unique_ptr<OwnDevice> own(new OwnDevice(std::move(*instance)));
    const OwnInstance& asked = *own->instance_;
    const Result<std::vector<PhysicalDevice>> devices = asked.devices();
    if (!devices) {
        return devices.error();
    }
    if (index >= devices->size()) {
        return Error{ErrorCode::not_found,
                     "there is no Vulkan device " + std::to_string(index) + "; ask for one that enumerate() lists"};
    }
    VulkanHandles& handles = own->handles_;
    handles.instance = asked.instance();
    handles.physical_device = (*devices)[index];
    handles.get_instance_proc_addr = find;
    std::uint32_t bits = 0;
    handles.queue_family = asked.family_of(handles.physical_device, bits);
    if (bits == 0) {
        return Error{ErrorCode::unsupported,
                     "no queue family of this device has valid timestamp bits; time another device"};
    }
    const float priority = 1.0F;
    DeviceQueueCreateInfo queue;
    queue.family = handles.queue_family;
    queue.count = 1;
    queue.priorities = &priority;
    const char* const calibration = asked.calibration_of(handles.physical_device);
    DeviceCreateInfo info;
    info.queue_count = 1;
    info.queues = &queue;
    info.extension_count = calibration != nullptr ? 1 : 0;
    info.extensions = &calibration;
    const VkResult made = asked.calls().create_device(handles.physical_device, &info, nullptr, &handles.device);
    if (made != VkResult::success) {
        handles.device = nullptr;
        return no_driver(made, "vkCreateDevice");
    }
    const Result<DeviceCalls> calls = DeviceCalls::load(asked.calls(), handles.device);
    if (!calls) {
        return calls.error();
    }
    own->calls_ = *calls;
    own->calls_.get_queue(handles.device, handles.queue_family, 0, &handles.queue);
    return own;
}

OwnDevice::~OwnDevice() {
    if (handles_.device != nullptr && calls_.destroy_device != nullptr) {
        calls_.destroy_device(handles_.device, nullptr);
    }
}

} // namespace plumb::backends::vulkan

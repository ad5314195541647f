// SPDX-License-Identifier: Apache-2.0
#include "attach/vulkan/devices.hpp"

#include <cstring>
#include <utility>

#include "attach/attachment.hpp"

namespace plumb::attach::vulkan {
namespace {

/// The loader's table, which all objects of one instance or device begin with.
const void* key_of(const void* object) { return *static_cast<void* const*>(object); }

/// Buffers that we allocate ourselves go down the chain, where other layers may look for the loader's table in them.
VkResult allocate_for_us(LogicalDevice device, const CommandBufferAllocateInfo* info, CommandBuffer* buffers) {
    LayeredDevice& ours = *devices().device_of(device);
    const VkResult result = ours.below.allocate_command_buffers(device, info, buffers);
    for (std::uint32_t i = 0; result == VkResult::success && ours.set_loader_data != nullptr && i < info->count; ++i) {
        (void)ours.set_loader_data(device, buffers[i]);
    }
    return result;
}

AnyCall find_device_call_below(LogicalDevice device, const char* name) {
    return std::strcmp(name, "vkAllocateCommandBuffers") == 0 ? reinterpret_cast<AnyCall>(&allocate_for_us)
                                                              : devices().device_of(device)->find_below(device, name);
}

/// For our own queues, which must not come back to us.
AnyCall find_call_below(VkInstance_T* instance, const char* name) {
    return std::strcmp(name, "vkGetDeviceProcAddr") == 0 ? reinterpret_cast<AnyCall>(&find_device_call_below)
                                                         : devices().below(instance)(instance, name);
}

} // namespace

void LayeredDevice::queue_given(std::uint32_t family, NativeQueue queue) {
    const std::lock_guard preparing(preparing_);
    {
        const std::unique_lock lock(mutex_);
        if (!queues_.try_emplace(family).second) {
            return;
        }
    }
    // Two tiny submissions of ours, on a thread that may submit: the program has only just got the queue.
    auto made = std::make_unique<VulkanQueue>(
        plumb::vulkan({instance, physical, handle, family, queue, false, &find_call_below}));
    if (!made->status().ok()) {
        say("a Vulkan queue is not timed: " + made->status().error().message);
    }
    const std::unique_lock lock(mutex_);
    queues_[family] = std::move(made);
}

VulkanQueue* LayeredDevice::queue_of(std::uint32_t family) {
    const std::shared_lock lock(mutex_);
    const auto found = queues_.find(family);
    return found != queues_.end() && found->second != nullptr && found->second->status().ok() ? found->second.get()
                                                                                              : nullptr;
}

void LayeredDevice::pool_made(CommandPool pool, std::uint32_t family) {
    const std::unique_lock lock(mutex_);
    families_[pool] = family;
}

void LayeredDevice::buffers_made(const CommandBufferAllocateInfo& info, const CommandBuffer* buffers) {
    const std::unique_lock lock(mutex_);
    const auto family = families_.find(info.pool);
    for (std::uint32_t i = 0; family != families_.end() && i < info.count; ++i) {
        auto made = std::make_unique<CommandRecording>();
        made->pool = info.pool;
        made->family = family->second;
        made->is_primary = info.level == 0;
        recordings_[buffers[i]] = std::move(made);
    }
}

CommandRecording* LayeredDevice::find(CommandBuffer commands) {
    const std::shared_lock lock(mutex_);
    const auto found = recordings_.find(commands);
    return found != recordings_.end() ? found->second.get() : nullptr;
}

void LayeredDevice::begins(CommandBuffer commands, std::uint32_t usage) {
    CommandRecording* const recording = find(commands);
    if (recording == nullptr) {
        return;
    }
    forget(commands); // what it held before
    recording->pipeline = 0;
    recording->is_closed = false;
    begin_labels(recording->labels);
    recording->thread = std::this_thread::get_id();
    if (VulkanQueue* const queue = queue_of(recording->family);
        queue != nullptr && recording->is_primary && (usage & simultaneous_use) == 0) {
        recording->queue = queue->record(commands, (usage & one_time_submit) != 0 ? VulkanUse::once : VulkanUse::again);
    }
}

void LayeredDevice::submits(CommandBuffer commands) {
    const CommandRecording* const recording = find(commands);
    if (recording != nullptr && recording->queue.timer != nullptr) {
        (void)queue_of(recording->family)->submitting(profiler(), commands); // what cannot be read is counted there
    }
}

void LayeredDevice::forget(CommandBuffer commands) {
    CommandRecording* const recording = find(commands);
    if (recording != nullptr && recording->queue.timer != nullptr) {
        recording->queue = {};
        queue_of(recording->family)->forget(commands);
        close_all(recording->labels); // behind that: no stamp is written any more
    }
}

void LayeredDevice::forget_all(CommandPool pool) {
    std::vector<CommandBuffer> of_pool;
    {
        const std::shared_lock lock(mutex_);
        for (const auto& [commands, recording] : recordings_) {
            if (recording->pool == pool) {
                of_pool.push_back(commands);
            }
        }
    }
    for (const CommandBuffer commands : of_pool) {
        forget(commands);
    }
}

void LayeredDevice::freed(CommandBuffer commands) {
    forget(commands);
    const std::unique_lock lock(mutex_);
    recordings_.erase(commands);
}

void LayeredDevice::pool_gone(CommandPool pool) {
    forget_all(pool);
    const std::unique_lock lock(mutex_);
    std::erase_if(recordings_, [pool](const auto& known) { return known.second->pool == pool; });
    families_.erase(pool);
}

void LayeredDevice::named(Pipeline pipeline, const char* name) {
    const std::unique_lock lock(mutex_);
    names_[pipeline] = name;
}

void LayeredDevice::pipeline_gone(Pipeline pipeline) {
    const std::unique_lock lock(mutex_);
    names_.erase(pipeline);
}

std::string LayeredDevice::name_of(Pipeline pipeline) {
    const std::shared_lock lock(mutex_);
    const auto found = names_.find(pipeline);
    return found != names_.end() && !found->second.empty() ? found->second : "vulkan_dispatch";
}

void LayeredDevice::close() {
    const std::unique_lock lock(mutex_);
    for (const auto& [family, queue] : queues_) {
        if (queue != nullptr) {
            queue->close();
        }
    }
    for (const auto& [commands, recording] : recordings_) {
        close_all(recording->labels);
    }
}

void LayeredDevices::instance_made(Instance instance, FindCall find_below) {
    const std::unique_lock lock(mutex_);
    instances_[key_of(instance)] = {instance, find_below,
                                    reinterpret_cast<DestroyInstance>(find_below(instance, "vkDestroyInstance"))};
}

DestroyInstance LayeredDevices::instance_gone(Instance instance) {
    const std::unique_lock lock(mutex_);
    const auto found = instances_.find(key_of(instance));
    const DestroyInstance destroy = found->second.destroy;
    instances_.erase(found);
    return destroy;
}

FindCall LayeredDevices::below(const void* object) {
    const std::shared_lock lock(mutex_);
    const auto found = instances_.find(key_of(object));
    return found != instances_.end() ? found->second.below : nullptr;
}

Instance LayeredDevices::instance_of(PhysicalDevice device) {
    const std::shared_lock lock(mutex_);
    const auto found = instances_.find(key_of(device));
    return found != instances_.end() ? found->second.instance : nullptr;
}

LayeredDevice& LayeredDevices::device_made(std::unique_ptr<LayeredDevice> device) {
    const std::unique_lock lock(mutex_);
    std::unique_ptr<LayeredDevice>& place = devices_[key_of(device->handle)];
    place = std::move(device);
    return *place;
}

LayeredDevice* LayeredDevices::device_of(const void* object) {
    const std::shared_lock lock(mutex_);
    const auto found = devices_.find(key_of(object));
    return found != devices_.end() ? found->second.get() : nullptr;
}

void LayeredDevices::device_gone(LogicalDevice device) {
    const std::unique_lock lock(mutex_);
    devices_.erase(key_of(device));
}

LayeredDevices& devices() {
    static auto* all = new LayeredDevices; // threads may be in here until the process has ended
    return *all;
}

} // namespace plumb::attach::vulkan

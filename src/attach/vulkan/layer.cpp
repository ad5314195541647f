// SPDX-License-Identifier: Apache-2.0
#include "attach/vulkan/layer.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "attach/attachment.hpp"
#include "attach/ggml/hooks.hpp"
#include "attach/vulkan/devices.hpp"

namespace plumb::attach::vulkan {
namespace {

constexpr std::uint32_t interface_version = 2;

LayeredDevice& of(const void* object) { return *devices().device_of(object); }

/// Scopes may begin in it, on this thread.
CommandRecording* open_recording(LayeredDevice& device, CommandBuffer commands) {
    CommandRecording* const recording = device.find(commands);
    return recording != nullptr && recording->queue.timer != nullptr && !recording->is_closed &&
                   recording->thread == std::this_thread::get_id()
               ? recording
               : nullptr;
}

/// A dispatch that belongs to nothing else is a scope while this lives.
class Dispatch {
  public:
    Dispatch(LayeredDevice& device, CommandBuffer commands) {
        CommandRecording* const recording = open_recording(device, commands);
        if (recording == nullptr || ggml::on_device(recording->queue) || has_open_labels()) {
            return;
        }
        Profiler& profiler = attach::profiler();
        profiler.push_scope(recording->queue, name_of_scope(device.name_of(recording->pipeline)));
        open_ = &profiler;
    }
    ~Dispatch() {
        if (open_ != nullptr) {
            open_->pop_scope();
        }
    }
    Dispatch(const Dispatch&) = delete;
    Dispatch& operator=(const Dispatch&) = delete;

  private:
    Profiler* open_ = nullptr;
};

// What stands in for the calls of calls.hpp, by their members' names.

void destroy_device(LogicalDevice handle, const void* allocator) {
    if (handle == nullptr) {
        return;
    }
    LayeredDevice& device = of(handle);
    device.close();
    const auto below = device.below.destroy_device;
    devices().device_gone(handle);
    below(handle, allocator);
}

void get_queue(LogicalDevice handle, std::uint32_t family, std::uint32_t index, NativeQueue* queue) {
    LayeredDevice& device = of(handle);
    device.below.get_queue(handle, family, index, queue);
    device.queue_given(family, *queue);
}

void get_queue2(LogicalDevice handle, const QueueInfo2* info, NativeQueue* queue) {
    LayeredDevice& device = of(handle);
    device.below.get_queue2(handle, info, queue);
    if (*queue != nullptr) {
        device.queue_given(info->family, *queue);
    }
}

VkResult create_command_pool(LogicalDevice handle, const CommandPoolCreateInfo* info, const void* allocator,
                             CommandPool* pool) {
    LayeredDevice& device = of(handle);
    const VkResult result = device.below.create_command_pool(handle, info, allocator, pool);
    if (result == VkResult::success) {
        device.pool_made(*pool, info->family);
    }
    return result;
}

void destroy_command_pool(LogicalDevice handle, CommandPool pool, const void* allocator) {
    LayeredDevice& device = of(handle);
    device.pool_gone(pool);
    device.below.destroy_command_pool(handle, pool, allocator);
}

VkResult reset_command_pool(LogicalDevice handle, CommandPool pool, std::uint32_t flags) {
    LayeredDevice& device = of(handle);
    device.forget_all(pool);
    return device.below.reset_command_pool(handle, pool, flags);
}

VkResult allocate_command_buffers(LogicalDevice handle, const CommandBufferAllocateInfo* info, CommandBuffer* buffers) {
    LayeredDevice& device = of(handle);
    const VkResult result = device.below.allocate_command_buffers(handle, info, buffers);
    if (result == VkResult::success) {
        device.buffers_made(*info, buffers);
    }
    return result;
}

void free_command_buffers(LogicalDevice handle, CommandPool pool, std::uint32_t count, const CommandBuffer* buffers) {
    LayeredDevice& device = of(handle);
    for (std::uint32_t i = 0; i < count; ++i) {
        device.freed(buffers[i]);
    }
    device.below.free_command_buffers(handle, pool, count, buffers);
}

VkResult begin_command_buffer(CommandBuffer commands, const CommandBufferBeginInfo* info) {
    LayeredDevice& device = of(commands);
    const VkResult result = device.below.begin_command_buffer(commands, info);
    if (result == VkResult::success) {
        device.begins(commands, info->flags);
    }
    return result;
}

VkResult end_command_buffer(CommandBuffer commands) {
    LayeredDevice& device = of(commands);
    if (CommandRecording* const recording = open_recording(device, commands); recording != nullptr) {
        ggml::leave_device();
        close_all(recording->labels);
    } else if (CommandRecording* const handed = device.find(commands); handed != nullptr && handed->labels.open != 0) {
        device.forget(commands); // its labels are another thread's, which would stamp what has ended
    }
    return device.below.end_command_buffer(commands);
}

VkResult reset_command_buffer(CommandBuffer commands, std::uint32_t flags) {
    LayeredDevice& device = of(commands);
    device.forget(commands);
    return device.below.reset_command_buffer(commands, flags);
}

/// Queries cannot be reset in a render pass, and what is drawn is not ours to time.
void close_for_scopes(LayeredDevice& device, CommandBuffer commands) {
    if (CommandRecording* const recording = open_recording(device, commands); recording != nullptr) {
        ggml::leave_device();
        close_all(recording->labels);
        recording->is_closed = true;
    }
}

void begin_render_pass(CommandBuffer commands, const void* info, std::int32_t contents) {
    close_for_scopes(of(commands), commands);
    of(commands).below.begin_render_pass(commands, info, contents);
}

void begin_render_pass2(CommandBuffer commands, const void* info, const void* contents) {
    close_for_scopes(of(commands), commands);
    of(commands).below.begin_render_pass2(commands, info, contents);
}

void begin_rendering(CommandBuffer commands, const void* info) {
    close_for_scopes(of(commands), commands);
    of(commands).below.begin_rendering(commands, info);
}

void bind_pipeline(CommandBuffer commands, std::int32_t point, Pipeline pipeline) {
    LayeredDevice& device = of(commands);
    if (CommandRecording* const recording = device.find(commands);
        recording != nullptr && point == bind_point_compute) {
        recording->pipeline = pipeline;
    }
    device.below.bind_pipeline(commands, point, pipeline);
}

void destroy_pipeline(LogicalDevice handle, Pipeline pipeline, const void* allocator) {
    LayeredDevice& device = of(handle);
    device.pipeline_gone(pipeline); // another one may lie there
    device.below.destroy_pipeline(handle, pipeline, allocator);
}

void dispatch(CommandBuffer commands, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    LayeredDevice& device = of(commands);
    const Dispatch scope(device, commands);
    device.below.dispatch(commands, x, y, z);
}

void dispatch_base(CommandBuffer commands, std::uint32_t from_x, std::uint32_t from_y, std::uint32_t from_z,
                   std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    LayeredDevice& device = of(commands);
    const Dispatch scope(device, commands);
    device.below.dispatch_base(commands, from_x, from_y, from_z, x, y, z);
}

void dispatch_indirect(CommandBuffer commands, std::uint64_t buffer, std::uint64_t offset) {
    LayeredDevice& device = of(commands);
    const Dispatch scope(device, commands);
    device.below.dispatch_indirect(commands, buffer, offset);
}

void begin_label(CommandBuffer commands, const DebugLabel* label) {
    LayeredDevice& device = of(commands);
    if (CommandRecording* const recording = open_recording(device, commands); recording != nullptr) {
        if (ggml::on_device(Queue{}) || !may_open(recording->labels)) {
            ++recording->labels.skipped;
        } else {
            profiler().push_scope(recording->queue, name_of_scope(label->name));
            opened(recording->labels);
        }
    }
    if (device.below.begin_label != nullptr) {
        device.below.begin_label(commands, label);
    }
}

void end_label(CommandBuffer commands) {
    LayeredDevice& device = of(commands);
    if (CommandRecording* const recording = open_recording(device, commands); recording != nullptr) {
        close_label(recording->labels);
    }
    if (device.below.end_label != nullptr) {
        device.below.end_label(commands);
    }
}

VkResult set_object_name(LogicalDevice handle, const DebugObjectName* info) {
    LayeredDevice& device = of(handle);
    if (info->object_type == object_type_pipeline && info->name != nullptr) {
        device.named(info->object, info->name);
    }
    return device.below.set_object_name != nullptr ? device.below.set_object_name(handle, info) : VkResult::success;
}

VkResult queue_submit(NativeQueue queue, std::uint32_t count, const SubmitInfo* submits, Fence fence) {
    LayeredDevice& device = of(queue);
    for (std::uint32_t i = 0; i < count; ++i) {
        for (std::uint32_t k = 0; k < submits[i].command_count; ++k) {
            device.submits(submits[i].commands[k]);
        }
    }
    return device.below.queue_submit(queue, count, submits, fence);
}

VkResult queue_submit2(NativeQueue queue, std::uint32_t count, const SubmitInfo2* submits, Fence fence) {
    LayeredDevice& device = of(queue);
    for (std::uint32_t i = 0; i < count; ++i) {
        for (std::uint32_t k = 0; k < submits[i].command_count; ++k) {
            device.submits(submits[i].commands[k].commands);
        }
    }
    return device.below.queue_submit2(queue, count, submits, fence);
}

/// A call under its name, or under that of the extension that it came from.
bool is_called(const char* name, const char* symbol) {
    const std::size_t length = std::strlen(symbol);
    return std::strncmp(name, symbol, length) == 0 && (name[length] == '\0' || std::strcmp(name + length, "KHR") == 0);
}

AnyCall find_device_call(LogicalDevice handle, const char* name) {
    if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
        return reinterpret_cast<AnyCall>(&find_device_call);
    }
    LayeredDevice* const device = devices().device_of(handle);
    if (device == nullptr) {
        return nullptr;
    }
#define PLUMB_VULKAN_LAYER_OURS(member, symbol, result, parameters)    \
    if (is_called(name, #symbol) && device->below.member != nullptr) { \
        return reinterpret_cast<AnyCall>(&(member));                   \
    }
    PLUMB_VULKAN_LAYER_CALLS(PLUMB_VULKAN_LAYER_OURS)
#undef PLUMB_VULKAN_LAYER_OURS
    return device->find_below(handle, name);
}

CallsBelow calls_below(LogicalDevice handle, FindDeviceCall find) {
    CallsBelow calls;
#define PLUMB_VULKAN_LAYER_FIND(member, symbol, result, parameters)                           \
    calls.member = reinterpret_cast<decltype(calls.member)>(find(handle, #symbol));           \
    if (calls.member == nullptr) {                                                            \
        calls.member = reinterpret_cast<decltype(calls.member)>(find(handle, #symbol "KHR")); \
    }
    PLUMB_VULKAN_LAYER_CALLS(PLUMB_VULKAN_LAYER_FIND)
#undef PLUMB_VULKAN_LAYER_FIND
    return calls;
}

/// The loader's part of a chain of create infos; null: it is not there.
template <class Info>
Info* part_of(const void* chain, std::int32_t type, LayerFunction function) {
    for (const auto* at = static_cast<const Chained*>(chain); at != nullptr; at = at->next) {
        if (at->type == type && reinterpret_cast<const Info*>(at)->function == function) {
            return const_cast<Info*>(
                reinterpret_cast<const Info*>(at)); // each layer moves its link on, as the loader wants
        }
    }
    return nullptr;
}

VkResult create_instance(const InstanceCreateInfo* info, const void* allocator, Instance* instance) {
    auto* const part = part_of<InstanceLayerInfo>(info->next, loader_instance_create_info, LayerFunction::link_info);
    if (part == nullptr || part->link == nullptr) {
        return VkResult::initialization_failed;
    }
    const FindCall below = part->link->next_find;
    part->link = part->link->next;
    const auto create = reinterpret_cast<decltype(&create_instance)>(below(nullptr, "vkCreateInstance"));
    const VkResult result = create != nullptr ? create(info, allocator, instance) : VkResult::initialization_failed;
    if (result == VkResult::success) {
        devices().instance_made(*instance, below);
    }
    return result;
}

void destroy_instance(Instance instance, const void* allocator) {
    if (instance != nullptr) {
        devices().instance_gone(instance)(instance, allocator);
    }
}

VkResult create_device(PhysicalDevice physical, const DeviceCreateInfo* info, const void* allocator,
                       LogicalDevice* handle) {
    auto* const part = part_of<DeviceLayerInfo>(info->next, loader_device_create_info, LayerFunction::link_info);
    const Instance instance = devices().instance_of(physical);
    if (part == nullptr || part->link == nullptr || instance == nullptr) {
        return VkResult::initialization_failed;
    }
    auto device = std::make_unique<LayeredDevice>();
    device->instance = instance;
    device->physical = physical;
    device->find_below = part->link->next_find;
    const FindCall below = part->link->next_find_instance_call;
    part->link = part->link->next;
    const auto create = reinterpret_cast<decltype(&create_device)>(below(instance, "vkCreateDevice"));
    const VkResult result =
        create != nullptr ? create(physical, info, allocator, handle) : VkResult::initialization_failed;
    if (result != VkResult::success) {
        return result;
    }
    device->handle = *handle;
    device->below = calls_below(*handle, device->find_below);
    if (const auto* data =
            part_of<DeviceLayerInfo>(info->next, loader_device_create_info, LayerFunction::loader_data_callback);
        data != nullptr) {
        device->set_loader_data = data->set_loader_data;
    }
    devices().device_made(std::move(device));
    static const bool told = [] {
        tell("engine", "a Vulkan program\tVK_INSTANCE_LAYERS");
        return true;
    }();
    (void)told;
    return result;
}

AnyCall find_instance_call(Instance instance, const char* name) {
    const std::pair<const char*, AnyCall> ours[] = {
        {"vkGetInstanceProcAddr", reinterpret_cast<AnyCall>(&find_instance_call)},
        {"vkGetDeviceProcAddr", reinterpret_cast<AnyCall>(&find_device_call)},
        {"vkCreateInstance", reinterpret_cast<AnyCall>(&create_instance)},
        {"vkDestroyInstance", reinterpret_cast<AnyCall>(&destroy_instance)},
        {"vkCreateDevice", reinterpret_cast<AnyCall>(&create_device)},
        // Of an extension of instances: the loader asks for them here, though they are called with a device's objects.
        {"vkCmdBeginDebugUtilsLabelEXT", reinterpret_cast<AnyCall>(&begin_label)},
        {"vkCmdEndDebugUtilsLabelEXT", reinterpret_cast<AnyCall>(&end_label)},
        {"vkSetDebugUtilsObjectNameEXT", reinterpret_cast<AnyCall>(&set_object_name)},
    };
    for (const auto& [symbol, call] : ours) {
        if (std::strcmp(name, symbol) == 0) {
            return call;
        }
    }
    const FindCall below = instance != nullptr ? devices().below(instance) : nullptr;
    return below != nullptr ? below(instance, name) : nullptr;
}

} // namespace

VkResult negotiate(NegotiateLayerInterface* offered) noexcept {
    if (!wanted() || offered == nullptr || offered->version < interface_version) {
        return VkResult::initialization_failed;
    }
    offered->version = interface_version;
    offered->find_instance_call = find_instance_call;
    offered->find_device_call = find_device_call;
    offered->find_physical_device_call = nullptr;
    return VkResult::success;
}

} // namespace plumb::attach::vulkan

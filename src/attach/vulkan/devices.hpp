// SPDX-License-Identifier: Apache-2.0
// What the layer keeps of a program's instances, devices and command buffers. Instances and devices are found by what the loader puts
// at the beginning of each of their objects. Thread rule: any thread; what belongs to one command buffer, as Vulkan's own.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "attach/vulkan/abi.hpp"
#include "attach/vulkan/calls.hpp"
#include "attach/vulkan/labels.hpp"
#include "plumb/profiler.hpp"
#include "plumb/vulkan.hpp"

namespace plumb::attach::vulkan {

#define PLUMB_VULKAN_LAYER_MEMBER(member, symbol, result, parameters) result(*member) parameters = nullptr;
/// What lies below us.
struct CallsBelow {
    PLUMB_VULKAN_LAYER_CALLS(PLUMB_VULKAN_LAYER_MEMBER)
};
#undef PLUMB_VULKAN_LAYER_MEMBER

/// A command buffer of the program.
struct CommandRecording {
    CommandPool pool = 0;
    std::uint32_t family = 0;
    bool is_primary = false;
    // Of what it holds now:
    Queue queue{};          // of its scopes; without a timer: it has none
    bool is_closed = false; // for scopes: a render pass began
    Pipeline pipeline = 0;  // bound, for dispatches
    std::thread::id thread; // that records it
    LabelCount labels;
};

class LayeredDevice {
  public:
    LogicalDevice handle = nullptr;
    Instance instance = nullptr;
    PhysicalDevice physical = nullptr;
    FindDeviceCall find_below = nullptr;
    SetLoaderData set_loader_data = nullptr;
    CallsBelow below;

    /// The queue is one of that family. The first of each is timed, and stands for the others.
    void queue_given(std::uint32_t family, NativeQueue queue);
    void pool_made(CommandPool pool, std::uint32_t family);
    void buffers_made(const CommandBufferAllocateInfo& info, const CommandBuffer* buffers);
    /// Null: not known.
    [[nodiscard]] CommandRecording* find(CommandBuffer commands);
    void begins(CommandBuffer commands, std::uint32_t usage);
    void submits(CommandBuffer commands);
    /// What these hold is given up: one, or all of a pool.
    void forget(CommandBuffer commands);
    void forget_all(CommandPool pool);
    /// They are gone.
    void freed(CommandBuffer commands);
    void pool_gone(CommandPool pool);
    void named(Pipeline pipeline, const char* name);
    void pipeline_gone(Pipeline pipeline);
    [[nodiscard]] std::string name_of(Pipeline pipeline);
    /// Reads what is there. REQUIRES: the device is idle, and about to go.
    void close();

  private:
    VulkanQueue* queue_of(std::uint32_t family);

    std::mutex preparing_;    // while a queue is prepared, by submissions of ours: nobody else has got it yet
    std::shared_mutex mutex_; // of what follows; what it points to outlives the lock
    std::unordered_map<std::uint32_t, std::unique_ptr<VulkanQueue>> queues_;
    std::unordered_map<CommandPool, std::uint32_t> families_;
    std::unordered_map<CommandBuffer, std::unique_ptr<CommandRecording>> recordings_;
    std::unordered_map<Pipeline, std::string> names_;
};

using DestroyInstance = void (*)(Instance instance, const void* allocator);

class LayeredDevices {
  public:
    /// REQUIRES: called while the instance is made. What `find_below` finds later leads through all layers again.
    void instance_made(Instance instance, FindCall find_below);
    /// Returns what destroys it, below us.
    DestroyInstance instance_gone(Instance instance);
    [[nodiscard]] FindCall below(const void* object);
    [[nodiscard]] Instance instance_of(PhysicalDevice device);

    LayeredDevice& device_made(std::unique_ptr<LayeredDevice> device);
    /// Of a device, or one of its queues or command buffers. Null: not one that we saw made.
    [[nodiscard]] LayeredDevice* device_of(const void* object);
    void device_gone(LogicalDevice device);

  private:
    struct Known {
        Instance instance;
        FindCall below;
        DestroyInstance destroy;
    };
    std::shared_mutex mutex_;
    std::unordered_map<const void*, Known> instances_;
    std::unordered_map<const void*, std::unique_ptr<LayeredDevice>> devices_;
};

LayeredDevices& devices();

} // namespace plumb::attach::vulkan

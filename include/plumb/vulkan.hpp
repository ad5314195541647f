// SPDX-License-Identifier: Apache-2.0
// Queues of a Vulkan device: scopes in the caller's command buffers, or around the submissions. No Vulkan header is needed:
// VkInstance and its like are pointers to VkInstance_T and its like.
// A VulkanQueue is owned by the caller and must be closed (or destroyed) before its VkDevice is. Thread rule: as Vulkan's
// own: whoever calls for a command buffer may record it at that moment, whoever calls for the queue may submit to it.
#pragma once

#include <cstdint>

#include "plumb/api.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

struct VkInstance_T;
struct VkPhysicalDevice_T;
struct VkDevice_T;
struct VkQueue_T;
struct VkCommandBuffer_T;

namespace plumb {

struct VulkanHandles {
    VkInstance_T* instance = nullptr;
    VkPhysicalDevice_T* physical_device = nullptr;
    VkDevice_T* device = nullptr;
    std::uint32_t queue_family = 0;
    VkQueue_T* queue = nullptr;
    /// The device was made with the feature hostQueryReset: no reset is recorded into command buffers then.
    bool host_query_reset = false;
    /// The caller's vkGetInstanceProcAddr; null: that of libvulkan.so.1.
    void (*(*get_instance_proc_addr)(VkInstance_T* instance, const char* name))() = nullptr;
};

/// How often a command buffer runs between two recordings.
enum class VulkanUse {
    once,  // recorded, submitted, recorded anew: VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
    again, // recorded once and submitted many times; each submission is told to submitting()
};

namespace backends::vulkan {
class VulkanQueueTimer;
}

/// Scopes on one VkQueue, timed by timestamp queries, in every n-th step (device.every=n). Nothing waits for the device.
class PLUMB_API VulkanQueue {
  public:
    /// Of no queue: its scopes are dropped.
    VulkanQueue() noexcept = default;
    ~VulkanQueue() { close(); }
    VulkanQueue(VulkanQueue&& other) noexcept;
    VulkanQueue& operator=(VulkanQueue&& other) noexcept;
    VulkanQueue(const VulkanQueue&) = delete;
    VulkanQueue& operator=(const VulkanQueue&) = delete;

    /// Error unavailable, unsupported, … where this queue cannot be timed; then its scopes are dropped and counted.
    [[nodiscard]] const Status& status() const noexcept { return status_; }

    /// For scopes around submissions: each border is a tiny submission of ours, so that only the thread that may submit to
    /// the VkQueue may begin and end such scopes.
    [[nodiscard]] Queue queue() const noexcept { return queue_; }

    /// For scopes inside a primary command buffer that is being recorded, outside of any render pass. Call it right after
    /// vkBeginCommandBuffer, each time: what the buffer held before is given up. The Queue is good until vkEndCommandBuffer.
    [[nodiscard]] Queue record(VkCommandBuffer_T* commands, VulkanUse use = VulkanUse::once) noexcept;

    /// Right before a submission of that command buffer, on the thread that submits. For `once` it tells when; for `again`
    /// it reads what the submission before left, and puts this one's scopes into the recording, in the step that is open on
    /// this thread. Error pending: the submission before is still in flight, so that neither can be told from the other;
    /// both are counted as unread.
    Status submitting(Recorder& recorder, VkCommandBuffer_T* commands) noexcept;

    /// Every submission of that command buffer has finished, and none is coming: it is being reset or freed.
    void forget(VkCommandBuffer_T* commands) noexcept;

    /// Scopes of command buffers that ran and could not be read, because the next run came too early.
    [[nodiscard]] std::uint64_t unread() const noexcept;

    /// Reads what is there and gives back what the device holds for us. No work of ours or of the scopes may be in flight:
    /// wait for the device first. Later calls do nothing; scopes that were not read by then never are, and are counted.
    void close() noexcept;

  private:
    friend PLUMB_API VulkanQueue vulkan(const VulkanHandles& handles);

    backends::vulkan::VulkanQueueTimer* timer_ = nullptr; // lives as long as the process
    Queue queue_{};
    Status status_;
};

/// The queue of a VkQueue. On the thread that may submit to it: two tiny submissions of ours prepare its queries.
[[nodiscard]] PLUMB_API VulkanQueue vulkan(const VulkanHandles& handles);

} // namespace plumb

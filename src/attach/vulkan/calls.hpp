// SPDX-License-Identifier: Apache-2.0
// The calls of a device that the layer stands in, and calls on: X(member, symbol, result, (parameters)). A member is null where the
// device has no such call.
#pragma once

#define PLUMB_VULKAN_LAYER_CALLS(X)                                                                                    \
    X(destroy_device, vkDestroyDevice, void, (LogicalDevice device, const void* allocator))                            \
    X(get_queue, vkGetDeviceQueue, void,                                                                               \
      (LogicalDevice device, std::uint32_t family, std::uint32_t index, NativeQueue * queue))                          \
    X(get_queue2, vkGetDeviceQueue2, void, (LogicalDevice device, const QueueInfo2* info, NativeQueue* queue))         \
    X(create_command_pool, vkCreateCommandPool, VkResult,                                                              \
      (LogicalDevice device, const CommandPoolCreateInfo* info, const void* allocator, CommandPool* pool))             \
    X(destroy_command_pool, vkDestroyCommandPool, void,                                                                \
      (LogicalDevice device, CommandPool pool, const void* allocator))                                                 \
    X(reset_command_pool, vkResetCommandPool, VkResult, (LogicalDevice device, CommandPool pool, std::uint32_t flags)) \
    X(allocate_command_buffers, vkAllocateCommandBuffers, VkResult,                                                    \
      (LogicalDevice device, const CommandBufferAllocateInfo* info, CommandBuffer* buffers))                           \
    X(free_command_buffers, vkFreeCommandBuffers, void,                                                                \
      (LogicalDevice device, CommandPool pool, std::uint32_t count, const CommandBuffer* buffers))                     \
    X(begin_command_buffer, vkBeginCommandBuffer, VkResult,                                                            \
      (CommandBuffer commands, const CommandBufferBeginInfo* info))                                                    \
    X(end_command_buffer, vkEndCommandBuffer, VkResult, (CommandBuffer commands))                                      \
    X(reset_command_buffer, vkResetCommandBuffer, VkResult, (CommandBuffer commands, std::uint32_t flags))             \
    X(begin_render_pass, vkCmdBeginRenderPass, void,                                                                   \
      (CommandBuffer commands, const void* info, std::int32_t contents))                                               \
    X(begin_render_pass2, vkCmdBeginRenderPass2, void,                                                                 \
      (CommandBuffer commands, const void* info, const void* contents))                                                \
    X(begin_rendering, vkCmdBeginRendering, void, (CommandBuffer commands, const void* info))                          \
    X(bind_pipeline, vkCmdBindPipeline, void, (CommandBuffer commands, std::int32_t point, Pipeline pipeline))         \
    X(destroy_pipeline, vkDestroyPipeline, void, (LogicalDevice device, Pipeline pipeline, const void* allocator))     \
    X(dispatch, vkCmdDispatch, void, (CommandBuffer commands, std::uint32_t x, std::uint32_t y, std::uint32_t z))      \
    X(dispatch_base, vkCmdDispatchBase, void,                                                                          \
      (CommandBuffer commands, std::uint32_t from_x, std::uint32_t from_y, std::uint32_t from_z, std::uint32_t x,      \
       std::uint32_t y, std::uint32_t z))                                                                              \
    X(dispatch_indirect, vkCmdDispatchIndirect, void,                                                                  \
      (CommandBuffer commands, std::uint64_t buffer, std::uint64_t offset))                                            \
    X(begin_label, vkCmdBeginDebugUtilsLabelEXT, void, (CommandBuffer commands, const DebugLabel* label))              \
    X(end_label, vkCmdEndDebugUtilsLabelEXT, void, (CommandBuffer commands))                                           \
    X(set_object_name, vkSetDebugUtilsObjectNameEXT, VkResult, (LogicalDevice device, const DebugObjectName* info))    \
    X(queue_submit, vkQueueSubmit, VkResult,                                                                           \
      (NativeQueue queue, std::uint32_t count, const SubmitInfo* submits, Fence fence))                                \
    X(queue_submit2, vkQueueSubmit2, VkResult,                                                                         \
      (NativeQueue queue, std::uint32_t count, const SubmitInfo2* submits, Fence fence))

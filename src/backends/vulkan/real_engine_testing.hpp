// SPDX-License-Identifier: Apache-2.0
// A small Vulkan engine for tests on a real driver (lavapipe in CI): one compute shader that counts, on one queue. Without
// header or driver there is none, and why() says so. Test-only; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/vulkan/driver_types.hpp"
#include "plumb/vulkan.hpp"

namespace plumb::backends::vulkan {

class RealEngine {
  public:
    /// Null without a device; `why` is then filled. `find`: null is the machine's loader.
    static std::unique_ptr<RealEngine> create(std::string& why, FindCall find = nullptr);
    virtual ~RealEngine() = default;

    [[nodiscard]] virtual VulkanHandles handles() const = 0;
    [[nodiscard]] virtual VkCommandBuffer_T* new_commands() = 0;
    virtual void begin(VkCommandBuffer_T* commands, bool once) = 0;
    /// The shader goes round that often (llvmpipe ends any loop after 65,535).
    virtual void set_rounds(std::uint32_t rounds) = 0;
    virtual void dispatch(VkCommandBuffer_T* commands, std::uint32_t groups = 1) = 0;
    virtual void barrier(VkCommandBuffer_T* commands) = 0;
    virtual void end(VkCommandBuffer_T* commands) = 0;
    /// False: the driver refused something so far.
    virtual bool submit_and_wait(VkCommandBuffer_T* commands) = 0;
};

} // namespace plumb::backends::vulkan

// SPDX-License-Identifier: Apache-2.0
// A Vulkan layer: stands between a program and its driver, and times what the program records into its command buffers. Each dispatch
// belongs to the node of ggml that is computed, else to the debug label that is open, else it is a scope of its own, called as its
// pipeline. Thread rule: as Vulkan's own.
#pragma once

#include "attach/vulkan/abi.hpp"

namespace plumb::attach::vulkan {

/// The loader's first call. Another answer than success: it goes on without us.
VkResult negotiate(NegotiateLayerInterface* offered) noexcept;

} // namespace plumb::attach::vulkan

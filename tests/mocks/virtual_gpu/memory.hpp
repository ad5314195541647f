// SPDX-License-Identifier: Apache-2.0
// Allocations. Under the Gpu's lock.
#pragma once

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

/// `*address` is where it lies on the host.
CuResult allocate(std::size_t bytes, bool host, bool pooled, std::uintptr_t* address);
void free_pooled(DevicePointer address);
/// Mapped host memory, as a device sees it: behind the bus.
bool is_mapped(DevicePointer address);

} // namespace plumb::vgpu

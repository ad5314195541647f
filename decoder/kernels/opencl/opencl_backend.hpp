// SPDX-License-Identifier: Apache-2.0
// The opencl backend: kernels.cl on any OpenCL device, in one in-order queue that runs beside the host. f32 activations;
// f32 and bf16 weights. See backend.hpp for the contract.
#pragma once

#include <cstddef>
#include <memory>

#include "decoder/kernels/backend.hpp"
#include "plumb/opencl.hpp"

namespace plumb::decoder::opencl {

/// `device` counts the devices of all platforms. Errors: unavailable (no driver, no device), not_found, failed.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t device);

struct Api;
/// By these calls, and with a queue of the caller's choice for the profiler; both for tests. `calls` must outlive it.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(
    const Api& calls, std::size_t device, Queue (*queue_of)(void* command_queue) = plumb::opencl);

} // namespace plumb::decoder::opencl

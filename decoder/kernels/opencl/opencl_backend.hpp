// SPDX-License-Identifier: Apache-2.0
// The opencl backend: kernels.cl on any OpenCL device, in one in-order queue that runs beside the host. f32 activations;
// f32 and bf16 weights. See backend.hpp for the contract.
#pragma once

#include <cstddef>
#include <memory>

#include "decoder/kernels/backend.hpp"

namespace plumb::decoder::opencl {

/// `device` counts the devices of all platforms. Errors: unavailable (no driver, no device), not_found, failed.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(std::size_t device);

} // namespace plumb::decoder::opencl

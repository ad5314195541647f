// SPDX-License-Identifier: Apache-2.0
// The cuda backend: kernels.hpp on a device of the CUDA driver, in one stream that runs beside the host. f32 activations;
// weights of every type, copied to the device once. Tokens and positions of a step lie in device memory, so that a captured
// step serves every later one of as many rows. See backend.hpp for the contract.
#pragma once

#include <cstddef>
#include <memory>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cuda/cublaslt.hpp"
#include "decoder/kernels/cuda/device.hpp"
#include "decoder/kernels/graphs.hpp"

namespace plumb::decoder::cuda {

/// `index` counts the driver's devices. Errors: unavailable (no driver, no device, built without nvcc), not_found, failed.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t index, Graphs graphs);
/// Where the products of prompts are looked for.
using LibraryFunction = const Result<CublasLt>& (*)();
/// With kernels, and a library, of the caller's choice; for tests.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t index, Graphs graphs,
                                                                   std::string_view image,
                                                                   LibraryFunction library = cublaslt);

} // namespace plumb::decoder::cuda

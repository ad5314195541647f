// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer: stands between a program and its driver, switches profiling on in each command queue, and times each kernel by its
// own event; a kernel of a node of ggml belongs to that. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::attach::opencl {

// Of the layers of OpenCL's loader, as they came with OpenCL 3.0 (cl_layer.h).
inline constexpr std::uint32_t layer_api_version = 0x4240;
inline constexpr std::uint32_t layer_api_version_100 = 100;

/// CallPlaces in the loader's table of calls (cl_icd.h). layer_abi_test.cpp compares them with the real header where that is installed.
struct CallPlaces {
    static constexpr std::size_t create_queue = 9, kernel_info = 39, release_event = 44, enqueue_kernel = 59,
                                 create_queue_with_properties = 123, count = 124;
};

/// clGetLayerInfo.
std::int32_t layer_info(std::uint32_t what, std::size_t room, void* value, std::size_t* size) noexcept;
/// clInitLayer. Another answer than success: the loader goes on without us.
std::int32_t init_layer(std::uint32_t count, void* const* below, std::uint32_t* our_count, void* const** ours) noexcept;

} // namespace plumb::attach::opencl

// SPDX-License-Identifier: Apache-2.0
// The parts of CUPTI's ABI that we read, stated here so that no header of it is needed (CUDA 13.0; the members used have
// stood at these places since 11.1). driver_abi_test.cpp compares them with the real header where one is found. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver_types.hpp"

namespace plumb::backends::cuda::cupti {

enum class CuptiResult : int {
    success = 0,
    invalid_parameter = 1,
    max_limit_reached = 12,
    insufficient_privileges = 35,
    multiple_subscribers = 39
};

inline constexpr std::uint32_t kind_concurrent_kernel = 10;
inline constexpr std::uint32_t domain_driver = 1;
inline constexpr std::uint32_t domain_runtime = 2;
inline constexpr std::uint32_t domain_resource = 3;
inline constexpr std::uint32_t resource_node_cloned = 20;
inline constexpr std::uint32_t flush_forced = 1;

/// A call that gives kernels to a device. The kernel's correlation is that of the runtime's call where there is one.
struct LaunchCall {
    std::uint32_t domain, id;
};
inline constexpr LaunchCall launch_calls[] = {
    {domain_driver, 307},  {domain_driver, 442},  // cuLaunchKernel, and for programs with a default stream per thread
    {domain_driver, 477},  {domain_driver, 478},  // cuLaunchCooperativeKernel
    {domain_driver, 514},  {domain_driver, 515},  // cuGraphLaunch
    {domain_driver, 652},  {domain_driver, 653},  // cuLaunchKernelEx
    {domain_runtime, 211}, {domain_runtime, 214}, // cudaLaunchKernel
    {domain_runtime, 269}, {domain_runtime, 270}, // cudaLaunchCooperativeKernel
    {domain_runtime, 311}, {domain_runtime, 312}, // cudaGraphLaunch
    {domain_runtime, 430}, {domain_runtime, 431}, // cudaLaunchKernelExC
    {domain_runtime, 505}, {domain_runtime, 506}, // __cudaLaunchKernel, of CUDA 13
};

/// What a callback of the two domains above is given.
struct CallData {
    int site; // 0: the call begins
    const char* function_name;
    const void* parameters;
    void* result;
    const char* symbol_name;
    Context context;
    std::uint32_t context_uid;
    std::uint64_t* correlation_data;
    std::uint32_t correlation_id;
};

/// The beginning of every version of CUpti_ActivityKernel since 11.1.
struct KernelActivity {
    std::uint32_t kind;
    std::uint8_t before_start[12];
    std::uint64_t start, end; // nanoseconds; both 0: no timing
    std::uint64_t completed;
    std::uint32_t device_id, context_id, stream_id;
    std::int32_t grid[3], block[3];
    std::int32_t shared_bytes[2];
    std::uint32_t local_bytes[2];
    std::uint32_t correlation_id; // one per launch: the kernels of a replay share it
    std::int64_t grid_id;
    const char* name;
    std::uint8_t before_node[32];
    std::uint64_t graph_node_id; // of the executable's own node; 0: eager
    std::uint32_t shared_limit;
    std::uint32_t graph_id;
} __attribute__((packed, aligned(8)));

struct ResourceData {
    Context context;
    void* handle;
    void* descriptor; // GraphData for what befalls graph nodes
};

struct GraphData {
    Graph graph;
    Graph original_graph;
    GraphNode node;
    GraphNode original_node;
    int node_type;
    GraphNode dependency;
    GraphExec exec;
};

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
using BufferCompleted = void (*)(Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                 std::size_t valid_bytes);
using TimestampFunction = std::uint64_t (*)();
using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t id, const void* data);

} // namespace plumb::backends::cuda::cupti

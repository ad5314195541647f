// SPDX-License-Identifier: Apache-2.0
// The parts of CUPTI's ABI (13.0) that the stand-in libcupti.so serves: kernel records, the births of graph nodes,
// and launches.
// Plain data; sizes and places are CUPTI's, and cupti.cpp asserts them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/driver_types.hpp"

namespace plumb::vgpu::cupti {

enum class Result : int {
    success = 0,
    invalid_parameter = 1,
    max_limit_reached = 12,
    not_compatible = 14,
    not_initialized = 15,
    invalid_kind = 21,
    multiple_subscribers = 39,
};

inline constexpr std::uint32_t api_version = 130001;
inline constexpr std::uint32_t kind_kernel = 3;
inline constexpr std::uint32_t flush_forced = 1;
inline constexpr std::uint32_t kind_concurrent_kernel = 10;
inline constexpr std::uint32_t domain_driver = 1;
inline constexpr std::uint32_t driver_launch_kernel = 307;
inline constexpr std::uint32_t driver_graph_launch = 514;
inline constexpr std::uint32_t domain_resource = 3;
inline constexpr std::uint32_t resource_node_created = 13;
inline constexpr std::uint32_t resource_node_cloned = 20;

struct __attribute__((packed, aligned(8))) KernelRecord { // CUpti_ActivityKernel10
    std::uint32_t kind;
    std::uint8_t cache_config, shared_memory_config;
    std::uint16_t registers_per_thread;
    std::uint32_t partitioned_cache[2];
    std::uint64_t start, end; // ns; both 0: no timing
    std::uint64_t completed;
    std::uint32_t device_id, context_id, stream_id;
    std::int32_t grid[3], block[3];
    std::int32_t static_shared, dynamic_shared;
    std::uint32_t local_per_thread, local_total;
    std::uint32_t correlation_id; // one per launch: kernels of a replay share it
    std::int64_t grid_id;
    const char* name;
    void* reserved;
    std::uint64_t queued, submitted;
    std::uint8_t launch_type, carveout_requested, carveout, padding;
    std::uint32_t shared_executed;
    std::uint64_t graph_node_id; // of the executable's own node; 0: eager
    std::uint32_t shared_limit_config;
    std::uint32_t graph_id;
    void* access_policy;
    std::uint32_t channel_id, channel_type;
    std::uint32_t cluster[3], cluster_policy;
    std::uint64_t local_total_v2;
    std::uint32_t max_cluster, max_active_clusters;
    std::uint8_t device_launched, padding_end[7];
};

struct CallbackData { // CUpti_CallbackData
    int site;         // 0: enter
    const char* function_name;
    const void* function_params;
    void* function_result;
    const char* symbol_name;
    CUctx_st* context;
    std::uint32_t context_uid;
    std::uint64_t* correlation_data;
    std::uint32_t correlation_id;
};

struct ResourceData { // CUpti_ResourceData
    CUctx_st* context;
    void* stream;
    void* descriptor; // GraphData
};

struct GraphData { // CUpti_GraphData
    CUgraph_st* graph;
    CUgraph_st* original_graph;
    CUgraphNode_st* node;
    CUgraphNode_st* original_node;
    int node_type;
    CUgraphNode_st* dependency;
    CUgraphExec_st* exec;
};

using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
using BufferCompleted = void (*)(CUctx_st* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                 std::size_t valid_bytes);
using TimestampFunction = std::uint64_t (*)();
using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t id, const void* data);

} // namespace plumb::vgpu::cupti

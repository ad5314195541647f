// SPDX-License-Identifier: Apache-2.0
// The parts of the CUDA driver's ABI that we use, stated here so that no CUDA header is needed to build. Names, values
// and layouts are the driver's (cuda.h of CUDA 13.0); driver_abi_test.cpp compares them with the real header where one
// is found. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

// The driver's handles, at global scope as in cuda.h: both may be included.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUkern_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUgreenCtx_st;

namespace plumb::backends::cuda {

using Device = int;
using DevicePointer = unsigned long long;
using Context = CUctx_st*;
using GreenContext = CUgreenCtx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Module = CUmod_st*;
using Function = CUfunc_st*;
using Kernel = CUkern_st*;
using Graph = CUgraph_st*;
using GraphNode = CUgraphNode_st*;
using GraphExec = CUgraphExec_st*;
using HostFunction = void (*)(void* user);

/// CUresult. Values that we do not name may occur.
enum class CuResult : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    deinitialized = 4,
    stub_library = 34,
    call_requires_newer_driver = 36,
    no_device = 100,
    invalid_device = 101,
    invalid_context = 201,
    invalid_ptx = 218,
    unsupported_ptx_version = 222,
    jit_compiler_not_found = 221,
    operating_system = 304,
    invalid_handle = 400,
    illegal_state = 401,
    lossy_query = 402,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_out_of_resources = 701,
    launch_timeout = 702,
    context_is_destroyed = 709,
    assert_failed = 710,
    hardware_stack_error = 714,
    illegal_instruction = 715,
    misaligned_address = 716,
    invalid_address_space = 717,
    invalid_pc = 718,
    launch_failed = 719,
    not_permitted = 800,
    not_supported = 801,
    stream_capture_unsupported = 900,
    stream_capture_invalidated = 901,
    stream_capture_merge = 902,
    stream_capture_unmatched = 903,
    stream_capture_unjoined = 904,
    stream_capture_isolation = 905,
    stream_capture_implicit = 906,
    captured_event = 907,
    stream_capture_wrong_thread = 908,
    graph_exec_update_failure = 910,
    unknown = 999,
};

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum class CaptureMode : int { global = 0, thread_local_mode = 1, relaxed = 2 };

enum class NodeType : int {
    kernel = 0,
    memcpy = 1,
    memset = 2,
    host = 3,
    graph = 4,
    empty = 5,
    wait_event = 6,
    event_record = 7,
    semaphores_signal = 8,
    semaphores_wait = 9,
    mem_alloc = 10,
    mem_free = 11,
    batch_mem_op = 12,
    conditional = 13,
};

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_default = 0;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned event_record_external = 1;
inline constexpr unsigned set_capture_dependencies = 1; // of cuStreamUpdateCaptureDependencies: replace, not add
inline constexpr unsigned memory_host_portable = 1;
inline constexpr unsigned memory_host_device_map = 2;
inline constexpr unsigned char edge_port_programmatic = 1; // EdgeData::from_port of a kernel
inline constexpr unsigned char edge_type_programmatic = 1; // EdgeData::type

struct EdgeData {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
};

/// CUDA_KERNEL_NODE_PARAMS_v2; version 1, of drivers before 12.0, is all but the last two members.
struct KernelNodeParams {
    Function func;
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    void** kernel_params;
    void** extra;
    Kernel kern;
    Context ctx;
};

struct MemsetNodeParams {
    DevicePointer dst;
    std::size_t pitch;
    unsigned value;
    unsigned element_size;
    std::size_t width;
    std::size_t height;
};

/// CUDA_MEMCPY3D. Memory types: 1 host, 2 device, 3 array, 4 unified.
struct Memcpy3d {
    std::size_t src_x_bytes, src_y, src_z, src_lod;
    unsigned src_memory_type;
    const void* src_host;
    DevicePointer src_device;
    void* src_array;
    void* reserved0;
    std::size_t src_pitch, src_height;
    std::size_t dst_x_bytes, dst_y, dst_z, dst_lod;
    unsigned dst_memory_type;
    void* dst_host;
    DevicePointer dst_device;
    void* dst_array;
    void* reserved1;
    std::size_t dst_pitch, dst_height;
    std::size_t width_bytes, height, depth;
};

struct HostNodeParams {
    HostFunction fn;
    void* user;
};

/// CUstreamBatchMemOpParams: a union of 48 bytes; this is the member for "write a value".
struct WriteValueOp {
    unsigned operation; // 2: 32 bits, 5: 64 bits
    DevicePointer address;
    std::uint64_t value;
    unsigned flags;
    DevicePointer alias;
    std::uint64_t pad;
};
inline constexpr unsigned mem_op_wait_value_32 = 1; // laid out alike
inline constexpr unsigned mem_op_write_value_32 = 2;
inline constexpr unsigned mem_op_wait_value_64 = 4;
inline constexpr unsigned mem_op_write_value_64 = 5;

/// CUDA_BATCH_MEM_OP_NODE_PARAMS
struct BatchMemOpNodeParams {
    Context ctx;
    unsigned count;
    WriteValueOp* operations; // the driver's, as long as the node
    unsigned flags;
};

struct ExecUpdateInfo {
    int result; // 0: updated
    GraphNode error_node;
    GraphNode error_from_node;
};

/// CUlaunchAttributeValue: what a kernel node or a launch may have beside its parameters, by CUlaunchAttributeID.
union LaunchAttributeValue {
    unsigned char bytes[64];
    int programmatic_allowed; // 6: programmatic stream serialization
    int priority;             // 8
    struct {
        int updatable;
        void* node;     // for kernels that update it
    } device_updatable; // 13
};
inline constexpr int attribute_programmatic_serialization = 6;
inline constexpr int attribute_priority = 8;
inline constexpr int attribute_device_updatable = 13;

// Flags of cuGraphInstantiateWithFlags.
inline constexpr unsigned long long instantiate_auto_free_on_launch = 1;
inline constexpr unsigned long long instantiate_upload = 2;
inline constexpr unsigned long long instantiate_device_launch = 4;
inline constexpr unsigned long long instantiate_use_node_priority = 8;

struct Uuid {
    unsigned char bytes[16];
};

// CUdevice_attribute values that we ask for.
inline constexpr int attribute_l2_cache_bytes = 38;
inline constexpr int attribute_compute_major = 75;
inline constexpr int attribute_compute_minor = 76;
inline constexpr int attribute_multiprocessors = 16;

} // namespace plumb::backends::cuda

// SPDX-License-Identifier: Apache-2.0
// The parts of OpenCL's ABI that we use, stated here so that no OpenCL header is needed to build. Names, values and
// layouts are those of CL/cl.h; driver_abi_test.cpp compares them with that header where one is found. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

// The handles, at global scope as in cl.h: both may be included.
struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_event;
struct _cl_program;
struct _cl_kernel;
struct _cl_mem;

namespace plumb::backends::opencl {

using Platform = _cl_platform_id*;
using DeviceId = _cl_device_id*;
using Context = _cl_context*;
using CommandQueue = _cl_command_queue*;
using Event = _cl_event*;
using Program = _cl_program*;
using Kernel = _cl_kernel*;
using Memory = _cl_mem*;
using Bits = std::uint64_t;            // cl_bitfield
using ContextProperty = std::intptr_t; // cl_context_properties

/// Error codes of OpenCL. Values that we do not name may occur.
enum class ClResult : std::int32_t {
    success = 0,
    device_not_found = -1,
    device_not_available = -2,
    out_of_resources = -5,
    out_of_host_memory = -6,
    profiling_info_not_available = -7,
    exec_status_error = -14, // of an event in a wait list
    invalid_value = -30,
    invalid_device = -33,
    invalid_context = -34,
    invalid_queue_properties = -35,
    invalid_command_queue = -36,
    invalid_event = -58,
    invalid_operation = -59,
    platform_not_found = -1001,
};

inline constexpr Bits device_type_all = 0xFFFFFFFF;
inline constexpr Bits device_type_cpu = 2;
inline constexpr Bits fp_fused_multiply_add = 32; // of device_single_fp_config
inline constexpr Bits memory_read_write = 1;
inline constexpr Bits queue_out_of_order = 1;
inline constexpr Bits queue_profiling = 2;

// What is asked of …
inline constexpr std::uint32_t device_type = 0x1000;
inline constexpr std::uint32_t device_compute_units = 0x1002;
inline constexpr std::uint32_t device_max_work_group_size = 0x1004;
inline constexpr std::uint32_t device_largest_buffer = 0x1010;
inline constexpr std::uint32_t device_single_fp_config = 0x101B;
inline constexpr std::uint32_t device_cache_bytes = 0x101E;
inline constexpr std::uint32_t device_memory_bytes = 0x101F;
inline constexpr std::uint32_t device_shares_host_memory = 0x1035; // and its cache, most likely
inline constexpr std::uint32_t device_native_float_lanes = 0x103A;
inline constexpr std::uint32_t device_name = 0x102B;
inline constexpr std::uint32_t device_driver_version = 0x102D;
inline constexpr std::uint32_t device_version = 0x102F;
inline constexpr std::uint32_t device_timer_resolution = 0x1025;
inline constexpr std::uint32_t queue_context = 0x1090;
inline constexpr std::uint32_t queue_device = 0x1091;
inline constexpr std::uint32_t queue_properties = 0x1093;
inline constexpr std::uint32_t event_command_queue = 0x11D0;
inline constexpr std::uint32_t event_status = 0x11D3;
inline constexpr std::uint32_t stamp_queued = 0x1280;
inline constexpr std::uint32_t stamp_submitted = 0x1281;
inline constexpr std::uint32_t stamp_started = 0x1282;
inline constexpr std::uint32_t stamp_ended = 0x1283;

/// Status of an event: below 0 its command failed, above it is on its way.
inline constexpr std::int32_t status_complete = 0;

} // namespace plumb::backends::opencl

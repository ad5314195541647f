// SPDX-License-Identifier: Apache-2.0
// Our statement of the driver's ABI against the real header: sizes, offsets, values and signatures. The checks happen at
// compile time, where a CUDA toolkit is installed.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "backends/cuda/driver.hpp"
#include "backends/same_call_testing.hpp"

#ifdef PLUMB_HAVE_CUDA_HEADER
#include <cudaTypedefs.h>
#if __has_include(<cupti.h>)
#include <cupti.h>
#define PLUMB_HAVE_CUPTI_HEADER 1
#endif

#include <iterator>

#include "backends/cuda/cupti_types.hpp"

namespace plumb::backends::cuda {
namespace {

#define PLUMB_CUDA_SAME(member, symbol, version, need, parameters) \
    static_assert(SameCall<decltype(Driver::member), PFN_##symbol##_v##version>::value, #symbol " " #version);
PLUMB_CUDA_CALLS(PLUMB_CUDA_SAME)

#define PLUMB_CUDA_LAYOUT(ours, theirs) \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #theirs);
#define PLUMB_CUDA_FIELD(ours, our_field, theirs, their_field) \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #theirs "::" #their_field);

PLUMB_CUDA_LAYOUT(EdgeData, CUgraphEdgeData)
PLUMB_CUDA_FIELD(EdgeData, from_port, CUgraphEdgeData, from_port)
PLUMB_CUDA_FIELD(EdgeData, to_port, CUgraphEdgeData, to_port)
PLUMB_CUDA_FIELD(EdgeData, type, CUgraphEdgeData, type)

PLUMB_CUDA_LAYOUT(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2)
PLUMB_CUDA_FIELD(KernelNodeParams, func, CUDA_KERNEL_NODE_PARAMS_v2, func)
PLUMB_CUDA_FIELD(KernelNodeParams, grid_x, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX)
PLUMB_CUDA_FIELD(KernelNodeParams, block_x, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX)
PLUMB_CUDA_FIELD(KernelNodeParams, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes)
PLUMB_CUDA_FIELD(KernelNodeParams, kernel_params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams)
PLUMB_CUDA_FIELD(KernelNodeParams, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra)
PLUMB_CUDA_FIELD(KernelNodeParams, kern, CUDA_KERNEL_NODE_PARAMS_v2, kern)
PLUMB_CUDA_FIELD(KernelNodeParams, ctx, CUDA_KERNEL_NODE_PARAMS_v2, ctx)
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == offsetof(KernelNodeParams, kern), "version 1 is a prefix");
PLUMB_CUDA_FIELD(KernelNodeParams, func, CUDA_KERNEL_NODE_PARAMS_v1, func)
PLUMB_CUDA_FIELD(KernelNodeParams, extra, CUDA_KERNEL_NODE_PARAMS_v1, extra)

PLUMB_CUDA_LAYOUT(MemsetNodeParams, CUDA_MEMSET_NODE_PARAMS_v1)
PLUMB_CUDA_FIELD(MemsetNodeParams, dst, CUDA_MEMSET_NODE_PARAMS_v1, dst)
PLUMB_CUDA_FIELD(MemsetNodeParams, pitch, CUDA_MEMSET_NODE_PARAMS_v1, pitch)
PLUMB_CUDA_FIELD(MemsetNodeParams, value, CUDA_MEMSET_NODE_PARAMS_v1, value)
PLUMB_CUDA_FIELD(MemsetNodeParams, element_size, CUDA_MEMSET_NODE_PARAMS_v1, elementSize)
PLUMB_CUDA_FIELD(MemsetNodeParams, width, CUDA_MEMSET_NODE_PARAMS_v1, width)
PLUMB_CUDA_FIELD(MemsetNodeParams, height, CUDA_MEMSET_NODE_PARAMS_v1, height)

PLUMB_CUDA_LAYOUT(Memcpy3d, CUDA_MEMCPY3D)
PLUMB_CUDA_FIELD(Memcpy3d, src_x_bytes, CUDA_MEMCPY3D, srcXInBytes)
PLUMB_CUDA_FIELD(Memcpy3d, src_memory_type, CUDA_MEMCPY3D, srcMemoryType)
PLUMB_CUDA_FIELD(Memcpy3d, src_host, CUDA_MEMCPY3D, srcHost)
PLUMB_CUDA_FIELD(Memcpy3d, src_device, CUDA_MEMCPY3D, srcDevice)
PLUMB_CUDA_FIELD(Memcpy3d, src_array, CUDA_MEMCPY3D, srcArray)
PLUMB_CUDA_FIELD(Memcpy3d, src_pitch, CUDA_MEMCPY3D, srcPitch)
PLUMB_CUDA_FIELD(Memcpy3d, dst_x_bytes, CUDA_MEMCPY3D, dstXInBytes)
PLUMB_CUDA_FIELD(Memcpy3d, dst_memory_type, CUDA_MEMCPY3D, dstMemoryType)
PLUMB_CUDA_FIELD(Memcpy3d, dst_host, CUDA_MEMCPY3D, dstHost)
PLUMB_CUDA_FIELD(Memcpy3d, dst_device, CUDA_MEMCPY3D, dstDevice)
PLUMB_CUDA_FIELD(Memcpy3d, dst_pitch, CUDA_MEMCPY3D, dstPitch)
PLUMB_CUDA_FIELD(Memcpy3d, width_bytes, CUDA_MEMCPY3D, WidthInBytes)
PLUMB_CUDA_FIELD(Memcpy3d, depth, CUDA_MEMCPY3D, Depth)

PLUMB_CUDA_LAYOUT(HostNodeParams, CUDA_HOST_NODE_PARAMS_v1)
PLUMB_CUDA_FIELD(HostNodeParams, fn, CUDA_HOST_NODE_PARAMS_v1, fn)
PLUMB_CUDA_FIELD(HostNodeParams, user, CUDA_HOST_NODE_PARAMS_v1, userData)

PLUMB_CUDA_LAYOUT(WriteValueOp, CUstreamBatchMemOpParams)
using WriteValue = CUstreamBatchMemOpParams::CUstreamMemOpWriteValueParams_st;
PLUMB_CUDA_FIELD(WriteValueOp, operation, WriteValue, operation)
PLUMB_CUDA_FIELD(WriteValueOp, address, WriteValue, address)
PLUMB_CUDA_FIELD(WriteValueOp, value, WriteValue, value64)
PLUMB_CUDA_FIELD(WriteValueOp, flags, WriteValue, flags)
PLUMB_CUDA_FIELD(WriteValueOp, alias, WriteValue, alias)

PLUMB_CUDA_LAYOUT(BatchMemOpNodeParams, CUDA_BATCH_MEM_OP_NODE_PARAMS)
PLUMB_CUDA_FIELD(BatchMemOpNodeParams, count, CUDA_BATCH_MEM_OP_NODE_PARAMS, count)
PLUMB_CUDA_FIELD(BatchMemOpNodeParams, operations, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray)
PLUMB_CUDA_FIELD(BatchMemOpNodeParams, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS, flags)

PLUMB_CUDA_LAYOUT(ExecUpdateInfo, CUgraphExecUpdateResultInfo)
PLUMB_CUDA_FIELD(ExecUpdateInfo, result, CUgraphExecUpdateResultInfo, result)
PLUMB_CUDA_FIELD(ExecUpdateInfo, error_node, CUgraphExecUpdateResultInfo, errorNode)
PLUMB_CUDA_FIELD(ExecUpdateInfo, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode)
PLUMB_CUDA_LAYOUT(Uuid, CUuuid)

#define PLUMB_CUDA_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs);
PLUMB_CUDA_VALUE(CuResult::success, CUDA_SUCCESS)
PLUMB_CUDA_VALUE(CuResult::invalid_value, CUDA_ERROR_INVALID_VALUE)
PLUMB_CUDA_VALUE(CuResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY)
PLUMB_CUDA_VALUE(CuResult::not_initialized, CUDA_ERROR_NOT_INITIALIZED)
PLUMB_CUDA_VALUE(CuResult::deinitialized, CUDA_ERROR_DEINITIALIZED)
PLUMB_CUDA_VALUE(CuResult::stub_library, CUDA_ERROR_STUB_LIBRARY)
PLUMB_CUDA_VALUE(CuResult::call_requires_newer_driver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER)
PLUMB_CUDA_VALUE(CuResult::no_device, CUDA_ERROR_NO_DEVICE)
PLUMB_CUDA_VALUE(CuResult::invalid_device, CUDA_ERROR_INVALID_DEVICE)
PLUMB_CUDA_VALUE(CuResult::invalid_context, CUDA_ERROR_INVALID_CONTEXT)
PLUMB_CUDA_VALUE(CuResult::invalid_ptx, CUDA_ERROR_INVALID_PTX)
PLUMB_CUDA_VALUE(CuResult::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
PLUMB_CUDA_VALUE(CuResult::jit_compiler_not_found, CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
PLUMB_CUDA_VALUE(CuResult::operating_system, CUDA_ERROR_OPERATING_SYSTEM)
PLUMB_CUDA_VALUE(CuResult::invalid_handle, CUDA_ERROR_INVALID_HANDLE)
PLUMB_CUDA_VALUE(CuResult::illegal_state, CUDA_ERROR_ILLEGAL_STATE)
PLUMB_CUDA_VALUE(CuResult::lossy_query, CUDA_ERROR_LOSSY_QUERY)
PLUMB_CUDA_VALUE(CuResult::not_found, CUDA_ERROR_NOT_FOUND)
PLUMB_CUDA_VALUE(CuResult::not_ready, CUDA_ERROR_NOT_READY)
PLUMB_CUDA_VALUE(CuResult::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS)
PLUMB_CUDA_VALUE(CuResult::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
PLUMB_CUDA_VALUE(CuResult::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT)
PLUMB_CUDA_VALUE(CuResult::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
PLUMB_CUDA_VALUE(CuResult::assert_failed, CUDA_ERROR_ASSERT)
PLUMB_CUDA_VALUE(CuResult::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR)
PLUMB_CUDA_VALUE(CuResult::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
PLUMB_CUDA_VALUE(CuResult::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS)
PLUMB_CUDA_VALUE(CuResult::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE)
PLUMB_CUDA_VALUE(CuResult::invalid_pc, CUDA_ERROR_INVALID_PC)
PLUMB_CUDA_VALUE(CuResult::launch_failed, CUDA_ERROR_LAUNCH_FAILED)
PLUMB_CUDA_VALUE(CuResult::not_permitted, CUDA_ERROR_NOT_PERMITTED)
PLUMB_CUDA_VALUE(CuResult::not_supported, CUDA_ERROR_NOT_SUPPORTED)
PLUMB_CUDA_VALUE(CuResult::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
PLUMB_CUDA_VALUE(CuResult::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
PLUMB_CUDA_VALUE(CuResult::stream_capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE)
PLUMB_CUDA_VALUE(CuResult::stream_capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
PLUMB_CUDA_VALUE(CuResult::stream_capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
PLUMB_CUDA_VALUE(CuResult::stream_capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
PLUMB_CUDA_VALUE(CuResult::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
PLUMB_CUDA_VALUE(CuResult::captured_event, CUDA_ERROR_CAPTURED_EVENT)
PLUMB_CUDA_VALUE(CuResult::stream_capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
PLUMB_CUDA_VALUE(CuResult::graph_exec_update_failure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
PLUMB_CUDA_VALUE(CuResult::unknown, CUDA_ERROR_UNKNOWN)

PLUMB_CUDA_VALUE(CaptureStatus::none, CU_STREAM_CAPTURE_STATUS_NONE)
PLUMB_CUDA_VALUE(CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE)
PLUMB_CUDA_VALUE(CaptureStatus::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED)
PLUMB_CUDA_VALUE(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL)
PLUMB_CUDA_VALUE(CaptureMode::thread_local_mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
PLUMB_CUDA_VALUE(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED)

PLUMB_CUDA_VALUE(NodeType::kernel, CU_GRAPH_NODE_TYPE_KERNEL)
PLUMB_CUDA_VALUE(NodeType::memcpy, CU_GRAPH_NODE_TYPE_MEMCPY)
PLUMB_CUDA_VALUE(NodeType::memset, CU_GRAPH_NODE_TYPE_MEMSET)
PLUMB_CUDA_VALUE(NodeType::host, CU_GRAPH_NODE_TYPE_HOST)
PLUMB_CUDA_VALUE(NodeType::graph, CU_GRAPH_NODE_TYPE_GRAPH)
PLUMB_CUDA_VALUE(NodeType::empty, CU_GRAPH_NODE_TYPE_EMPTY)
PLUMB_CUDA_VALUE(NodeType::wait_event, CU_GRAPH_NODE_TYPE_WAIT_EVENT)
PLUMB_CUDA_VALUE(NodeType::event_record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
PLUMB_CUDA_VALUE(NodeType::semaphores_signal, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL)
PLUMB_CUDA_VALUE(NodeType::semaphores_wait, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT)
PLUMB_CUDA_VALUE(NodeType::mem_alloc, CU_GRAPH_NODE_TYPE_MEM_ALLOC)
PLUMB_CUDA_VALUE(NodeType::mem_free, CU_GRAPH_NODE_TYPE_MEM_FREE)
PLUMB_CUDA_VALUE(NodeType::batch_mem_op, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
PLUMB_CUDA_VALUE(NodeType::conditional, CU_GRAPH_NODE_TYPE_CONDITIONAL)

PLUMB_CUDA_VALUE(stream_non_blocking, CU_STREAM_NON_BLOCKING)
PLUMB_CUDA_VALUE(event_default, CU_EVENT_DEFAULT)
PLUMB_CUDA_VALUE(event_disable_timing, CU_EVENT_DISABLE_TIMING)
PLUMB_CUDA_VALUE(event_record_external, CU_EVENT_RECORD_EXTERNAL)
PLUMB_CUDA_VALUE(set_capture_dependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
PLUMB_CUDA_VALUE(memory_host_portable, CU_MEMHOSTALLOC_PORTABLE)
PLUMB_CUDA_VALUE(memory_host_device_map, CU_MEMHOSTALLOC_DEVICEMAP)
PLUMB_CUDA_VALUE(edge_port_programmatic, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC)
PLUMB_CUDA_VALUE(edge_type_programmatic, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
PLUMB_CUDA_VALUE(mem_op_write_value_32, CU_STREAM_MEM_OP_WRITE_VALUE_32)
PLUMB_CUDA_VALUE(mem_op_write_value_64, CU_STREAM_MEM_OP_WRITE_VALUE_64)
PLUMB_CUDA_VALUE(attribute_l2_cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
PLUMB_CUDA_VALUE(attribute_compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
PLUMB_CUDA_VALUE(attribute_compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
PLUMB_CUDA_VALUE(attribute_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)

#ifdef PLUMB_HAVE_CUPTI_HEADER
static_assert(sizeof(CUpti_ActivityKernel10) >= sizeof(cupti::KernelActivity));
PLUMB_CUDA_FIELD(cupti::KernelActivity, kind, CUpti_ActivityKernel10, kind)
PLUMB_CUDA_FIELD(cupti::KernelActivity, start, CUpti_ActivityKernel10, start)
PLUMB_CUDA_FIELD(cupti::KernelActivity, end, CUpti_ActivityKernel10, end)
PLUMB_CUDA_FIELD(cupti::KernelActivity, device_id, CUpti_ActivityKernel10, deviceId)
PLUMB_CUDA_FIELD(cupti::KernelActivity, stream_id, CUpti_ActivityKernel10, streamId)
PLUMB_CUDA_FIELD(cupti::KernelActivity, correlation_id, CUpti_ActivityKernel10, correlationId)
PLUMB_CUDA_FIELD(cupti::KernelActivity, name, CUpti_ActivityKernel10, name)
PLUMB_CUDA_FIELD(cupti::KernelActivity, graph_node_id, CUpti_ActivityKernel10, graphNodeId)
PLUMB_CUDA_FIELD(cupti::KernelActivity, graph_id, CUpti_ActivityKernel10, graphId)
PLUMB_CUDA_LAYOUT(cupti::GraphData, CUpti_GraphData)
PLUMB_CUDA_FIELD(cupti::GraphData, node, CUpti_GraphData, node)
PLUMB_CUDA_FIELD(cupti::GraphData, original_node, CUpti_GraphData, originalNode)
PLUMB_CUDA_FIELD(cupti::GraphData, exec, CUpti_GraphData, graphExec)
PLUMB_CUDA_FIELD(cupti::ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor)
PLUMB_CUDA_VALUE(cupti::kind_concurrent_kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
PLUMB_CUDA_VALUE(cupti::domain_resource, CUPTI_CB_DOMAIN_RESOURCE)
PLUMB_CUDA_VALUE(cupti::resource_node_cloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)
PLUMB_CUDA_FIELD(cupti::CallData, site, CUpti_CallbackData, callbackSite)
PLUMB_CUDA_FIELD(cupti::CallData, correlation_id, CUpti_CallbackData, correlationId)
PLUMB_CUDA_LAYOUT(cupti::CallData, CUpti_CallbackData)
PLUMB_CUDA_VALUE(0, CUPTI_API_ENTER)
PLUMB_CUDA_VALUE(cupti::domain_driver, CUPTI_CB_DOMAIN_DRIVER_API)
PLUMB_CUDA_VALUE(cupti::domain_runtime, CUPTI_CB_DOMAIN_RUNTIME_API)
constexpr int launch_ids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
};
constexpr bool launch_ids_agree() {
    bool agree = std::size(launch_ids) == std::size(cupti::launch_calls);
    for (std::size_t i = 0; agree && i < std::size(launch_ids); ++i) {
        agree = cupti::launch_calls[i].id == static_cast<std::uint32_t>(launch_ids[i]);
    }
    return agree;
}
static_assert(launch_ids_agree());
PLUMB_CUDA_VALUE(cupti::CuptiResult::invalid_parameter, CUPTI_ERROR_INVALID_PARAMETER)
PLUMB_CUDA_VALUE(cupti::flush_forced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
PLUMB_CUDA_VALUE(cupti::CuptiResult::insufficient_privileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
PLUMB_CUDA_VALUE(cupti::CuptiResult::multiple_subscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
#endif

TEST(DriverAbi, the_real_header_agrees_with_every_size_offset_value_and_signature) {
    EXPECT_GE(CUDA_VERSION, 13000) << "compared with an older header than the table was written for";
}

} // namespace
} // namespace plumb::backends::cuda

#else

TEST(DriverAbi, the_real_header_agrees_with_every_size_offset_value_and_signature) {
    GTEST_SKIP() << "no cudaTypedefs.h was found: the driver's ABI is taken from our own statement alone";
}

#endif

namespace plumb::backends::cuda {
namespace {

TEST(Driver, a_missing_library_is_unavailable_with_advice) {
    const Result<Driver> none = load_driver("libplumb_no_such_driver.so.1");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    EXPECT_NE(none.error().message.find("install the NVIDIA driver"), std::string::npos) << none.error().message;
}

TEST(Driver, a_library_that_is_no_driver_is_too_old) {
    const Result<Driver> none = load_driver("libm.so.6");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    EXPECT_NE(none.error().message.find("11.8"), std::string::npos) << none.error().message;
}

} // namespace
} // namespace plumb::backends::cuda

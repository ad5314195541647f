// SPDX-License-Identifier: Apache-2.0
// Our statement of OpenCL's ABI against its own header, where that is installed.
#include <gtest/gtest.h>

#include "backends/opencl/driver.hpp"

#if defined(PLUMB_HAVE_OPENCL_HEADER)
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <type_traits>

namespace plumb::backends::opencl {
namespace {

static_assert(std::is_same_v<Platform, cl_platform_id>);
static_assert(std::is_same_v<DeviceId, cl_device_id>);
static_assert(std::is_same_v<Context, cl_context>);
static_assert(std::is_same_v<CommandQueue, cl_command_queue>);
static_assert(std::is_same_v<Event, cl_event>);
static_assert(std::is_same_v<Program, cl_program> && std::is_same_v<Kernel, cl_kernel> &&
              std::is_same_v<Memory, cl_mem>);
static_assert(sizeof(ClResult) == sizeof(cl_int));
static_assert(std::is_same_v<Bits, cl_bitfield> && std::is_same_v<ContextProperty, cl_context_properties>);

/// What a parameter or result is passed as: our error code is their int.
template <class T>
struct Passed {
    using type = T;
};
template <>
struct Passed<ClResult> {
    using type = cl_int;
};
template <>
struct Passed<ClResult*> {
    using type = cl_int*;
};
template <class Result, class... Parameters>
struct Passed<Result (*)(Parameters...)> {
    using type = typename Passed<Result>::type (*)(typename Passed<Parameters>::type...);
};

#define PLUMB_OPENCL_SAME(member, symbol, need, result, parameters) \
    static_assert(std::is_same_v<Passed<decltype(OpenClDriver::member)>::type, decltype(&::symbol)>, #symbol);
PLUMB_OPENCL_CALLS(PLUMB_OPENCL_SAME)

TEST(OpenClAbi, values_are_those_of_the_header) {
    EXPECT_EQ(static_cast<int>(ClResult::device_not_found), CL_DEVICE_NOT_FOUND);
    EXPECT_EQ(static_cast<int>(ClResult::device_not_available), CL_DEVICE_NOT_AVAILABLE);
    EXPECT_EQ(static_cast<int>(ClResult::out_of_resources), CL_OUT_OF_RESOURCES);
    EXPECT_EQ(static_cast<int>(ClResult::out_of_host_memory), CL_OUT_OF_HOST_MEMORY);
    EXPECT_EQ(static_cast<int>(ClResult::profiling_info_not_available), CL_PROFILING_INFO_NOT_AVAILABLE);
    EXPECT_EQ(static_cast<int>(ClResult::exec_status_error), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_value), CL_INVALID_VALUE);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_device), CL_INVALID_DEVICE);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_context), CL_INVALID_CONTEXT);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_queue_properties), CL_INVALID_QUEUE_PROPERTIES);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_command_queue), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_event), CL_INVALID_EVENT);
    EXPECT_EQ(static_cast<int>(ClResult::invalid_operation), CL_INVALID_OPERATION);
    EXPECT_EQ(device_type_all, Bits{CL_DEVICE_TYPE_ALL});
    EXPECT_EQ(queue_out_of_order, Bits{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE});
    EXPECT_EQ(queue_profiling, Bits{CL_QUEUE_PROFILING_ENABLE});
    EXPECT_EQ(device_type_cpu, Bits{CL_DEVICE_TYPE_CPU});
    EXPECT_EQ(fp_fused_multiply_add, Bits{CL_FP_FMA});
    EXPECT_EQ(memory_read_write, Bits{CL_MEM_READ_WRITE});
    EXPECT_EQ(device_type, unsigned{CL_DEVICE_TYPE});
    EXPECT_EQ(device_compute_units, unsigned{CL_DEVICE_MAX_COMPUTE_UNITS});
    EXPECT_EQ(device_max_work_group_size, unsigned{CL_DEVICE_MAX_WORK_GROUP_SIZE});
    EXPECT_EQ(device_largest_buffer, unsigned{CL_DEVICE_MAX_MEM_ALLOC_SIZE});
    EXPECT_EQ(device_single_fp_config, unsigned{CL_DEVICE_SINGLE_FP_CONFIG});
    EXPECT_EQ(device_cache_bytes, unsigned{CL_DEVICE_GLOBAL_MEM_CACHE_SIZE});
    EXPECT_EQ(device_memory_bytes, unsigned{CL_DEVICE_GLOBAL_MEM_SIZE});
    EXPECT_EQ(device_shares_host_memory, unsigned{CL_DEVICE_HOST_UNIFIED_MEMORY});
    EXPECT_EQ(device_native_float_lanes, unsigned{CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT});
    EXPECT_EQ(device_name, unsigned{CL_DEVICE_NAME});
    EXPECT_EQ(device_driver_version, unsigned{CL_DRIVER_VERSION});
    EXPECT_EQ(device_version, unsigned{CL_DEVICE_VERSION});
    EXPECT_EQ(device_timer_resolution, unsigned{CL_DEVICE_PROFILING_TIMER_RESOLUTION});
    EXPECT_EQ(queue_context, unsigned{CL_QUEUE_CONTEXT});
    EXPECT_EQ(queue_device, unsigned{CL_QUEUE_DEVICE});
    EXPECT_EQ(queue_properties, unsigned{CL_QUEUE_PROPERTIES});
    EXPECT_EQ(event_command_queue, unsigned{CL_EVENT_COMMAND_QUEUE});
    EXPECT_EQ(event_status, unsigned{CL_EVENT_COMMAND_EXECUTION_STATUS});
    EXPECT_EQ(stamp_queued, unsigned{CL_PROFILING_COMMAND_QUEUED});
    EXPECT_EQ(stamp_submitted, unsigned{CL_PROFILING_COMMAND_SUBMIT});
    EXPECT_EQ(stamp_started, unsigned{CL_PROFILING_COMMAND_START});
    EXPECT_EQ(stamp_ended, unsigned{CL_PROFILING_COMMAND_END});
    EXPECT_EQ(status_complete, CL_COMPLETE);
}

} // namespace
} // namespace plumb::backends::opencl

#else

TEST(OpenClAbi, values_are_those_of_the_header) { GTEST_SKIP() << "there is no CL/cl.h on this machine"; }

#endif

// SPDX-License-Identifier: Apache-2.0
// Every entry point of OpenCL that we use: X(member, symbol, need, result, (parameters)).
// `need` is `required` (OpenCL 1.2) or `optional` (its member is null where the loader is older).
#pragma once

#define PLUMB_OPENCL_CALLS(X)                                                                                        \
    X(get_platform_ids, clGetPlatformIDs, required, ClResult,                                                        \
      (std::uint32_t room, Platform * platforms, std::uint32_t * count))                                             \
    X(get_device_ids, clGetDeviceIDs, required, ClResult,                                                            \
      (Platform platform, Bits type, std::uint32_t room, DeviceId * devices, std::uint32_t * count))                 \
    X(get_device_info, clGetDeviceInfo, required, ClResult,                                                          \
      (DeviceId device, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                       \
    X(create_context, clCreateContext, required, Context,                                                            \
      (const ContextProperty* properties, std::uint32_t count, const DeviceId* devices,                              \
       void (*notify)(const char*, const void*, std::size_t, void*), void* user, ClResult* error))                   \
    X(release_context, clReleaseContext, required, ClResult, (Context context))                                      \
    X(create_command_queue, clCreateCommandQueue, required, CommandQueue,                                            \
      (Context context, DeviceId device, Bits properties, ClResult * error))                                         \
    X(retain_command_queue, clRetainCommandQueue, required, ClResult, (CommandQueue queue))                          \
    X(release_command_queue, clReleaseCommandQueue, required, ClResult, (CommandQueue queue))                        \
    X(get_command_queue_info, clGetCommandQueueInfo, required, ClResult,                                             \
      (CommandQueue queue, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                    \
    X(enqueue_marker, clEnqueueMarkerWithWaitList, required, ClResult,                                               \
      (CommandQueue queue, std::uint32_t count, const Event* list, Event* event))                                    \
    X(create_user_event, clCreateUserEvent, required, Event, (Context context, ClResult * error))                    \
    X(set_user_event_status, clSetUserEventStatus, required, ClResult, (Event event, std::int32_t status))           \
    X(flush, clFlush, required, ClResult, (CommandQueue queue))                                                      \
    X(wait_for_events, clWaitForEvents, required, ClResult, (std::uint32_t count, const Event* events))              \
    X(retain_event, clRetainEvent, required, ClResult, (Event event))                                                \
    X(release_event, clReleaseEvent, required, ClResult, (Event event))                                              \
    X(get_event_info, clGetEventInfo, required, ClResult,                                                            \
      (Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                           \
    X(get_event_stamp, clGetEventProfilingInfo, required, ClResult,                                                  \
      (Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                           \
    X(create_program, clCreateProgramWithSource, required, Program,                                                  \
      (Context context, std::uint32_t count, const char** texts, const std::size_t* lengths, ClResult* error))       \
    X(build_program, clBuildProgram, required, ClResult,                                                             \
      (Program program, std::uint32_t count, const DeviceId* devices, const char* options,                           \
       void (*notify)(Program, void*), void* user))                                                                  \
    X(release_program, clReleaseProgram, required, ClResult, (Program program))                                      \
    X(create_kernel, clCreateKernel, required, Kernel, (Program program, const char* name, ClResult* error))         \
    X(release_kernel, clReleaseKernel, required, ClResult, (Kernel kernel))                                          \
    X(set_kernel_argument, clSetKernelArg, required, ClResult,                                                       \
      (Kernel kernel, std::uint32_t place, std::size_t bytes, const void* value))                                    \
    X(create_buffer, clCreateBuffer, required, Memory,                                                               \
      (Context context, Bits flags, std::size_t bytes, void* host, ClResult* error))                                 \
    X(release_memory, clReleaseMemObject, required, ClResult, (Memory memory))                                       \
    X(enqueue_kernel, clEnqueueNDRangeKernel, required, ClResult,                                                    \
      (CommandQueue queue, Kernel kernel, std::uint32_t dimensions, const std::size_t* offset,                       \
       const std::size_t* items, const std::size_t* of_group, std::uint32_t count, const Event* list, Event* event)) \
    X(read_buffer, clEnqueueReadBuffer, required, ClResult,                                                          \
      (CommandQueue queue, Memory memory, std::uint32_t blocking, std::size_t offset, std::size_t bytes, void* to,   \
       std::uint32_t count, const Event* list, Event* event))                                                        \
    X(get_device_and_host_timer, clGetDeviceAndHostTimer, optional, ClResult,                                        \
      (DeviceId device, std::uint64_t * device_ns, std::uint64_t * host_ns))

// SPDX-License-Identifier: Apache-2.0
// Every entry point of OpenCL that we use: X(member, symbol, need, result, (parameters)).
// `need` is `required` (OpenCL 1.2) or `optional` (its member is null where the loader is older).
#pragma once

#define PLUMB_OPENCL_CALLS(X)                                                                              \
    X(get_platform_ids, clGetPlatformIDs, required, ClResult,                                              \
      (std::uint32_t room, Platform * platforms, std::uint32_t * count))                                   \
    X(get_device_ids, clGetDeviceIDs, required, ClResult,                                                  \
      (Platform platform, Bits type, std::uint32_t room, DeviceId * devices, std::uint32_t * count))       \
    X(get_device_info, clGetDeviceInfo, required, ClResult,                                                \
      (DeviceId device, std::uint32_t what, std::size_t room, void* value, std::size_t* size))             \
    X(create_context, clCreateContext, required, Context,                                                  \
      (const ContextProperty* properties, std::uint32_t count, const DeviceId* devices,                    \
       void (*notify)(const char*, const void*, std::size_t, void*), void* user, ClResult* error))         \
    X(release_context, clReleaseContext, required, ClResult, (Context context))                            \
    X(create_command_queue, clCreateCommandQueue, required, CommandQueue,                                  \
      (Context context, DeviceId device, Bits properties, ClResult * error))                               \
    X(retain_command_queue, clRetainCommandQueue, required, ClResult, (CommandQueue queue))                \
    X(release_command_queue, clReleaseCommandQueue, required, ClResult, (CommandQueue queue))              \
    X(get_command_queue_info, clGetCommandQueueInfo, required, ClResult,                                   \
      (CommandQueue queue, std::uint32_t what, std::size_t room, void* value, std::size_t* size))          \
    X(enqueue_marker, clEnqueueMarkerWithWaitList, required, ClResult,                                     \
      (CommandQueue queue, std::uint32_t count, const Event* list, Event* event))                          \
    X(create_user_event, clCreateUserEvent, required, Event, (Context context, ClResult * error))          \
    X(set_user_event_status, clSetUserEventStatus, required, ClResult, (Event event, std::int32_t status)) \
    X(flush, clFlush, required, ClResult, (CommandQueue queue))                                            \
    X(wait_for_events, clWaitForEvents, required, ClResult, (std::uint32_t count, const Event* events))    \
    X(retain_event, clRetainEvent, required, ClResult, (Event event))                                      \
    X(release_event, clReleaseEvent, required, ClResult, (Event event))                                    \
    X(get_event_info, clGetEventInfo, required, ClResult,                                                  \
      (Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                 \
    X(get_event_stamp, clGetEventProfilingInfo, required, ClResult,                                        \
      (Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size))                 \
    X(get_device_and_host_timer, clGetDeviceAndHostTimer, optional, ClResult,                              \
      (DeviceId device, std::uint64_t * device_ns, std::uint64_t * host_ns))

// SPDX-License-Identifier: Apache-2.0
// Entry points that an engine, a test or a tool calls but the library does not: the same form as driver_calls.hpp.
#pragma once

#include "backends/cuda/driver_types.hpp"

namespace plumb::vgpu {

using namespace plumb::backends::cuda;

struct MemAllocNodeParams { // CUDA_MEM_ALLOC_NODE_PARAMS
    unsigned char pool_properties[88];
    const void* access;
    std::size_t access_count;
    std::size_t bytes;
    DevicePointer address;
};

struct LaunchAttribute { // CUlaunchAttribute
    int id;
    int padding;
    LaunchAttributeValue value;
};

using UserObject = struct UserObjectHandle*; // CUuserObject
inline constexpr unsigned user_object_no_destructor_sync = 1;
inline constexpr unsigned graph_user_object_move = 1;

struct LaunchConfig { // CUlaunchConfig
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    Stream stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};

} // namespace plumb::vgpu

#define PLUMB_ENGINE_CALLS(X)                                                                                       \
    X(get_error_string, cuGetErrorString, 6000, engine, (CuResult error, const char** text))                        \
    X(ctx_create, cuCtxCreate, 3020, engine, (Context * context, unsigned flags, Device device))                    \
    X(ctx_destroy, cuCtxDestroy, 4000, engine, (Context context))                                                   \
    X(ctx_set_current, cuCtxSetCurrent, 4000, engine, (Context context))                                            \
    X(ctx_synchronize, cuCtxSynchronize, 2000, engine, (void))                                                      \
    X(memcpy_htod, cuMemcpyHtoD, 3020, engine, (DevicePointer to, const void* from, std::size_t bytes))             \
    X(memcpy_dtoh, cuMemcpyDtoH, 3020, engine, (void* to, DevicePointer from, std::size_t bytes))                   \
    X(memcpy_dtod, cuMemcpyDtoD, 3020, engine, (DevicePointer to, DevicePointer from, std::size_t bytes))           \
    X(memset_d32, cuMemsetD32, 3020, engine, (DevicePointer to, unsigned value, std::size_t count))                 \
    X(memset_d8_async, cuMemsetD8Async, 3020, engine,                                                               \
      (DevicePointer to, unsigned char value, std::size_t count, Stream stream))                                    \
    X(mem_alloc_async, cuMemAllocAsync, 11020, engine, (DevicePointer * address, std::size_t bytes, Stream stream)) \
    X(mem_free_async, cuMemFreeAsync, 11020, engine, (DevicePointer address, Stream stream))                        \
    X(module_load_data_ex, cuModuleLoadDataEx, 2010, engine,                                                        \
      (Module * module, const void* image, unsigned count, int* options, void** values))                            \
    X(stream_get_flags, cuStreamGetFlags, 5050, engine, (Stream stream, unsigned* flags))                           \
    X(stream_update_dependencies_v12030, cuStreamUpdateCaptureDependencies, 12030, engine,                          \
      (Stream stream, GraphNode * nodes, const EdgeData* edges, std::size_t count, unsigned flags))                 \
    X(stream_update_dependencies_v11030, cuStreamUpdateCaptureDependencies, 11030, engine,                          \
      (Stream stream, GraphNode * nodes, std::size_t count, unsigned flags))                                        \
    X(launch_kernel_ex, cuLaunchKernelEx, 11060, engine,                                                            \
      (const LaunchConfig* config, Function function, void** params, void** extra))                                 \
    X(stream_get_priority, cuStreamGetPriority, 5050, engine, (Stream stream, int* priority))                       \
    X(user_object_create, cuUserObjectCreate, 11030, engine,                                                        \
      (UserObject * object, void* pointer, HostFunction destroy, unsigned references, unsigned flags))              \
    X(user_object_retain, cuUserObjectRetain, 11030, engine, (UserObject object, unsigned count))                   \
    X(user_object_release, cuUserObjectRelease, 11030, engine, (UserObject object, unsigned count))                 \
    X(graph_retain_user_object, cuGraphRetainUserObject, 11030, engine,                                             \
      (Graph graph, UserObject object, unsigned count, unsigned flags))                                             \
    X(graph_release_user_object, cuGraphReleaseUserObject, 11030, engine,                                           \
      (Graph graph, UserObject object, unsigned count))                                                             \
    X(graph_add_memcpy_node, cuGraphAddMemcpyNode, 10000, engine,                                                   \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, const Memcpy3d* params,            \
       Context context))                                                                                            \
    X(graph_add_memset_node, cuGraphAddMemsetNode, 10000, engine,                                                   \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, const MemsetNodeParams* params,    \
       Context context))                                                                                            \
    X(graph_add_host_node, cuGraphAddHostNode, 10000, engine,                                                       \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, const HostNodeParams* params))     \
    X(graph_add_child_graph_node, cuGraphAddChildGraphNode, 10000, engine,                                          \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, Graph child))                      \
    X(graph_add_event_wait_node, cuGraphAddEventWaitNode, 11010, engine,                                            \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, Event event))                      \
    X(graph_add_mem_alloc_node, cuGraphAddMemAllocNode, 11040, engine,                                              \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, MemAllocNodeParams* params))       \
    X(graph_add_mem_free_node, cuGraphAddMemFreeNode, 11040, engine,                                                \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, DevicePointer address))            \
    X(graph_destroy_node, cuGraphDestroyNode, 10000, engine, (GraphNode node))                                      \
    X(graph_event_record_node_get_event, cuGraphEventRecordNodeGetEvent, 11010, engine,                             \
      (GraphNode node, Event * event))                                                                              \
    X(graph_kernel_node_set_params, cuGraphKernelNodeSetParams, 12000, engine,                                      \
      (GraphNode node, const KernelNodeParams* params))                                                             \
    X(graph_exec_kernel_node_set_params, cuGraphExecKernelNodeSetParams, 12000, engine,                             \
      (GraphExec exec, GraphNode node, const KernelNodeParams* params))

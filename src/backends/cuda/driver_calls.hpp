// SPDX-License-Identifier: Apache-2.0
// Every entry point of the CUDA driver that we use: X(member, symbol, version, need, (parameters)).
// `version` is the API version whose signature this is (major * 1000 + minor * 10), asked of cuGetProcAddress exactly.
// `need` is `required` (in every driver since 11.8) or `optional` (its member is null where the driver is older).
// Members that end in _v<version> are one function before and after its signature changed: at least one is there.
#pragma once

#define PLUMB_CUDA_CALLS(X)                                                                                           \
    X(init, cuInit, 2000, required, (unsigned flags))                                                                 \
    X(driver_get_version, cuDriverGetVersion, 2020, required, (int* version))                                         \
    X(get_error_name, cuGetErrorName, 6000, required, (CuResult error, const char** name))                            \
    X(device_get_count, cuDeviceGetCount, 2000, required, (int* count))                                               \
    X(device_get, cuDeviceGet, 2000, required, (Device * device, int ordinal))                                        \
    X(device_get_name, cuDeviceGetName, 2000, required, (char* name, int length, Device device))                      \
    X(device_get_uuid, cuDeviceGetUuid, 11040, required, (Uuid * uuid, Device device))                                \
    X(device_get_attribute, cuDeviceGetAttribute, 2000, required, (int* value, int attribute, Device device))         \
    X(device_total_mem, cuDeviceTotalMem, 3020, required, (std::size_t * bytes, Device device))                       \
    X(primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000, required, (Context * context, Device device))               \
    X(primary_ctx_release, cuDevicePrimaryCtxRelease, 11000, required, (Device device))                               \
    X(ctx_get_current, cuCtxGetCurrent, 4000, required, (Context * context))                                          \
    X(ctx_push_current, cuCtxPushCurrent, 4000, required, (Context context))                                          \
    X(ctx_pop_current, cuCtxPopCurrent, 4000, required, (Context * context))                                          \
    X(ctx_get_device, cuCtxGetDevice, 2000, required, (Device * device))                                              \
    X(ctx_get_id, cuCtxGetId, 12000, optional, (Context context, unsigned long long* id))                             \
    X(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange, 5050, required, (int* least, int* greatest))        \
    X(mem_get_info, cuMemGetInfo, 3020, required, (std::size_t * free_bytes, std::size_t * total_bytes))              \
    X(mem_alloc, cuMemAlloc, 3020, required, (DevicePointer * address, std::size_t bytes))                            \
    X(mem_free, cuMemFree, 3020, required, (DevicePointer address))                                                   \
    X(mem_host_alloc, cuMemHostAlloc, 2020, required, (void** memory, std::size_t bytes, unsigned flags))             \
    X(mem_free_host, cuMemFreeHost, 2000, required, (void* memory))                                                   \
    X(mem_host_get_device_pointer, cuMemHostGetDevicePointer, 3020, required,                                         \
      (DevicePointer * address, void* memory, unsigned flags))                                                        \
    X(memcpy_htod_async, cuMemcpyHtoDAsync, 3020, required,                                                           \
      (DevicePointer to, const void* from, std::size_t bytes, Stream stream))                                         \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync, 3020, required,                                                           \
      (void* to, DevicePointer from, std::size_t bytes, Stream stream))                                               \
    X(memcpy_dtod_async, cuMemcpyDtoDAsync, 3020, required,                                                           \
      (DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream))                                       \
    X(memset_d32_async, cuMemsetD32Async, 3020, required,                                                             \
      (DevicePointer to, unsigned value, std::size_t count, Stream stream))                                           \
    X(module_load_data, cuModuleLoadData, 2000, required, (Module * module, const void* image))                       \
    X(module_unload, cuModuleUnload, 2000, required, (Module module))                                                 \
    X(module_get_function, cuModuleGetFunction, 2000, required,                                                       \
      (Function * function, Module module, const char* name))                                                         \
    X(func_get_name, cuFuncGetName, 12030, optional, (const char** name, Function function))                          \
    X(kernel_get_name, cuKernelGetName, 12030, optional, (const char** name, Kernel kernel))                          \
    X(func_get_param_info, cuFuncGetParamInfo, 12040, optional,                                                       \
      (Function function, std::size_t index, std::size_t * offset, std::size_t * bytes))                              \
    X(kernel_get_param_info, cuKernelGetParamInfo, 12040, optional,                                                   \
      (Kernel kernel, std::size_t index, std::size_t * offset, std::size_t * bytes))                                  \
    X(launch_kernel, cuLaunchKernel, 4000, required,                                                                  \
      (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,      \
       unsigned block_z, unsigned shared_bytes, Stream stream, void** params, void** extra))                          \
    X(launch_host_func, cuLaunchHostFunc, 10000, required, (Stream stream, HostFunction function, void* user))        \
    X(stream_create, cuStreamCreate, 2000, required, (Stream * stream, unsigned flags))                               \
    X(stream_create_with_priority, cuStreamCreateWithPriority, 5050, optional,                                        \
      (Stream * stream, unsigned flags, int priority))                                                                \
    X(stream_destroy, cuStreamDestroy, 4000, required, (Stream stream))                                               \
    X(stream_query, cuStreamQuery, 2000, required, (Stream stream))                                                   \
    X(stream_synchronize, cuStreamSynchronize, 2000, required, (Stream stream))                                       \
    X(stream_wait_event, cuStreamWaitEvent, 3020, required, (Stream stream, Event event, unsigned flags))             \
    X(stream_get_ctx, cuStreamGetCtx, 9020, required, (Stream stream, Context * context))                             \
    X(stream_get_ctx_v12050, cuStreamGetCtx, 12050, optional,                                                         \
      (Stream stream, Context * context, GreenContext * green))                                                       \
    X(stream_get_id, cuStreamGetId, 12000, optional, (Stream stream, unsigned long long* id))                         \
    X(stream_batch_mem_op, cuStreamBatchMemOp, 11070, optional,                                                       \
      (Stream stream, unsigned count, WriteValueOp* operations, unsigned flags))                                      \
    X(stream_is_capturing, cuStreamIsCapturing, 10000, required, (Stream stream, CaptureStatus * status))             \
    X(stream_begin_capture, cuStreamBeginCapture, 10010, required, (Stream stream, CaptureMode mode))                 \
    X(stream_end_capture, cuStreamEndCapture, 10000, required, (Stream stream, Graph * graph))                        \
    X(stream_get_capture_info_v12030, cuStreamGetCaptureInfo, 12030, optional,                                        \
      (Stream stream, CaptureStatus * status, unsigned long long* id, Graph* graph, const GraphNode** nodes,          \
       const EdgeData** edges, std::size_t* count))                                                                   \
    X(stream_get_capture_info_v11030, cuStreamGetCaptureInfo, 11030, optional,                                        \
      (Stream stream, CaptureStatus * status, unsigned long long* id, Graph* graph, const GraphNode** nodes,          \
       std::size_t* count))                                                                                           \
    X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 10010, required, (CaptureMode * mode))         \
    X(event_create, cuEventCreate, 2000, required, (Event * event, unsigned flags))                                   \
    X(event_destroy, cuEventDestroy, 4000, required, (Event event))                                                   \
    X(event_record, cuEventRecord, 2000, required, (Event event, Stream stream))                                      \
    X(event_record_with_flags, cuEventRecordWithFlags, 11010, required, (Event event, Stream stream, unsigned flags)) \
    X(event_query, cuEventQuery, 2000, required, (Event event))                                                       \
    X(event_synchronize, cuEventSynchronize, 2000, required, (Event event))                                           \
    X(event_elapsed_time_v12080, cuEventElapsedTime, 12080, optional, (float* ms, Event begin, Event end))            \
    X(event_elapsed_time_v2000, cuEventElapsedTime, 2000, optional, (float* ms, Event begin, Event end))              \
    X(graph_create, cuGraphCreate, 10000, required, (Graph * graph, unsigned flags))                                  \
    X(graph_destroy, cuGraphDestroy, 10000, required, (Graph graph))                                                  \
    X(graph_clone, cuGraphClone, 10000, required, (Graph * clone, Graph original))                                    \
    X(graph_node_find_in_clone, cuGraphNodeFindInClone, 10000, required,                                              \
      (GraphNode * node, GraphNode original, Graph clone))                                                            \
    X(graph_get_nodes, cuGraphGetNodes, 10000, required, (Graph graph, GraphNode * nodes, std::size_t * count))       \
    X(graph_get_edges_v12030, cuGraphGetEdges, 12030, optional,                                                       \
      (Graph graph, GraphNode * from, GraphNode * to, EdgeData * edges, std::size_t * count))                         \
    X(graph_get_edges_v10000, cuGraphGetEdges, 10000, optional,                                                       \
      (Graph graph, GraphNode * from, GraphNode * to, std::size_t * count))                                           \
    X(graph_node_get_type, cuGraphNodeGetType, 10000, required, (GraphNode node, NodeType * type))                    \
    X(graph_kernel_node_get_params, cuGraphKernelNodeGetParams, 12000, optional,                                      \
      (GraphNode node, KernelNodeParams * params))                                                                    \
    X(graph_kernel_node_get_params_v10000, cuGraphKernelNodeGetParams, 10000, optional,                               \
      (GraphNode node, KernelNodeParams * params))                                                                    \
    X(graph_kernel_node_get_attribute, cuGraphKernelNodeGetAttribute, 11000, required,                                \
      (GraphNode node, int attribute, LaunchAttributeValue* value))                                                   \
    X(graph_kernel_node_set_attribute, cuGraphKernelNodeSetAttribute, 11000, required,                                \
      (GraphNode node, int attribute, const LaunchAttributeValue* value))                                             \
    X(graph_memcpy_node_get_params, cuGraphMemcpyNodeGetParams, 10000, required, (GraphNode node, Memcpy3d * params)) \
    X(graph_memset_node_get_params, cuGraphMemsetNodeGetParams, 10000, required,                                      \
      (GraphNode node, MemsetNodeParams * params))                                                                    \
    X(graph_host_node_get_params, cuGraphHostNodeGetParams, 10000, required,                                          \
      (GraphNode node, HostNodeParams * params))                                                                      \
    X(graph_batch_mem_op_node_get_params, cuGraphBatchMemOpNodeGetParams, 11070, optional,                            \
      (GraphNode node, BatchMemOpNodeParams * params))                                                                \
    X(graph_child_node_get_graph, cuGraphChildGraphNodeGetGraph, 10000, required, (GraphNode node, Graph * graph))    \
    X(graph_add_kernel_node, cuGraphAddKernelNode, 12000, optional,                                                   \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, const KernelNodeParams* params))     \
    X(graph_add_kernel_node_v10000, cuGraphAddKernelNode, 10000, optional,                                            \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, const KernelNodeParams* params))     \
    X(graph_add_event_record_node, cuGraphAddEventRecordNode, 11010, required,                                        \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count, Event event))                        \
    X(graph_add_empty_node, cuGraphAddEmptyNode, 10000, required,                                                     \
      (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count))                                     \
    X(graph_add_dependencies_v12030, cuGraphAddDependencies, 12030, optional,                                         \
      (Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges, std::size_t count))            \
    X(graph_add_dependencies_v10000, cuGraphAddDependencies, 10000, optional,                                         \
      (Graph graph, const GraphNode* from, const GraphNode* to, std::size_t count))                                   \
    X(graph_remove_dependencies_v12030, cuGraphRemoveDependencies, 12030, optional,                                   \
      (Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges, std::size_t count))            \
    X(graph_remove_dependencies_v10000, cuGraphRemoveDependencies, 10000, optional,                                   \
      (Graph graph, const GraphNode* from, const GraphNode* to, std::size_t count))                                   \
    X(graph_instantiate, cuGraphInstantiateWithFlags, 11040, required,                                                \
      (GraphExec * exec, Graph graph, unsigned long long flags))                                                      \
    X(graph_exec_get_flags, cuGraphExecGetFlags, 12000, optional, (GraphExec exec, unsigned long long* flags))        \
    X(graph_exec_destroy, cuGraphExecDestroy, 10000, required, (GraphExec exec))                                      \
    X(graph_exec_update_v12000, cuGraphExecUpdate, 12000, optional,                                                   \
      (GraphExec exec, Graph graph, ExecUpdateInfo * info))                                                           \
    X(graph_exec_update_v10020, cuGraphExecUpdate, 10020, optional,                                                   \
      (GraphExec exec, Graph graph, GraphNode * error_node, int* result))                                             \
    X(graph_upload, cuGraphUpload, 11010, required, (GraphExec exec, Stream stream))                                  \
    X(graph_launch, cuGraphLaunch, 10000, required, (GraphExec exec, Stream stream))                                  \
    X(graph_node_set_enabled, cuGraphNodeSetEnabled, 11060, required,                                                 \
      (GraphExec exec, GraphNode node, unsigned enabled))                                                             \
    X(graph_exec_event_record_node_set_event, cuGraphExecEventRecordNodeSetEvent, 11010, required,                    \
      (GraphExec exec, GraphNode node, Event event))

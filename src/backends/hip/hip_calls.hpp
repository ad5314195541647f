// SPDX-License-Identifier: Apache-2.0
// Every entry point of libamdhip64 that we use. The first list are those whose form is CUDA's, X(member of the driver
// table, CUDA's name, HIP's name, need); the second those that HIP has in a form of its own,
// X(member, CUDA's name, HIP's name, need, result, (parameters)): driver.cpp puts CUDA's form over them.
// `need` is `required` (in every HIP since 5.2) or `optional` (its member is null where the library has none).
#pragma once

#define PLUMB_HIP_CALLS(X)                                                                                           \
    X(init, cuInit, hipInit, required)                                                                               \
    X(driver_get_version, cuDriverGetVersion, hipRuntimeGetVersion, required)                                        \
    X(device_get_count, cuDeviceGetCount, hipGetDeviceCount, required)                                               \
    X(device_get, cuDeviceGet, hipDeviceGet, required)                                                               \
    X(device_get_name, cuDeviceGetName, hipDeviceGetName, required)                                                  \
    X(device_get_uuid, cuDeviceGetUuid, hipDeviceGetUuid, required)                                                  \
    X(ctx_get_device, cuCtxGetDevice, hipGetDevice, required)                                                        \
    X(stream_create, cuStreamCreate, hipStreamCreateWithFlags, required)                                             \
    X(stream_destroy, cuStreamDestroy, hipStreamDestroy, required)                                                   \
    X(stream_get_id, cuStreamGetId, hipStreamGetId, optional)                                                        \
    X(stream_is_capturing, cuStreamIsCapturing, hipStreamIsCapturing, required)                                      \
    X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode, required) \
    X(event_create, cuEventCreate, hipEventCreateWithFlags, required)                                                \
    X(event_destroy, cuEventDestroy, hipEventDestroy, required)                                                      \
    X(event_record, cuEventRecord, hipEventRecord, required)                                                         \
    X(event_query, cuEventQuery, hipEventQuery, required)                                                            \
    X(event_synchronize, cuEventSynchronize, hipEventSynchronize, required)                                          \
    X(event_elapsed_time_v2000, cuEventElapsedTime, hipEventElapsedTime, required)

// What graph probes need, alike too: X(member of Driver, CUDA's name, HIP's symbol). Without one of them there are no probes.
#define PLUMB_HIP_PROBE_CALLS(X)                                                                 \
    X(stream_get_capture_info_v11030, cuStreamGetCaptureInfo, hipStreamGetCaptureInfo_v2)        \
    X(graph_create, cuGraphCreate, hipGraphCreate)                                               \
    X(graph_destroy, cuGraphDestroy, hipGraphDestroy)                                            \
    X(graph_clone, cuGraphClone, hipGraphClone)                                                  \
    X(graph_node_find_in_clone, cuGraphNodeFindInClone, hipGraphNodeFindInClone)                 \
    X(graph_get_nodes, cuGraphGetNodes, hipGraphGetNodes)                                        \
    X(graph_get_edges_v10000, cuGraphGetEdges, hipGraphGetEdges)                                 \
    X(graph_node_get_type, cuGraphNodeGetType, hipGraphNodeGetType)                              \
    X(graph_child_node_get_graph, cuGraphChildGraphNodeGetGraph, hipGraphChildGraphNodeGetGraph) \
    X(graph_add_event_record_node, cuGraphAddEventRecordNode, hipGraphAddEventRecordNode)        \
    X(graph_add_empty_node, cuGraphAddEmptyNode, hipGraphAddEmptyNode)                           \
    X(graph_add_dependencies_v10000, cuGraphAddDependencies, hipGraphAddDependencies)            \
    X(graph_remove_dependencies_v10000, cuGraphRemoveDependencies, hipGraphRemoveDependencies)   \
    X(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)              \
    X(graph_exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy)                               \
    X(graph_launch, cuGraphLaunch, hipGraphLaunch)

#define PLUMB_HIP_OWN_CALLS(X)                                                              \
    X(error_name, cuGetErrorName, hipGetErrorName, required, const char*, (CuResult error)) \
    X(set_device, cuCtxPushCurrent, hipSetDevice, required, CuResult, (int device))         \
    X(stream_get_device, cuStreamGetCtx, hipStreamGetDevice, optional, CuResult, (Stream stream, int* device))

/// What CUDA's graphs have beyond that, X(capability, HIP's name): asked for to say which of them this library lacks.
#define PLUMB_HIP_GRAPH_CALLS(X)                      \
    X(event_record_external, hipEventRecordWithFlags) \
    X(graph_node_enabling, hipGraphNodeSetEnabled)    \
    X(graph_upload, hipGraphUpload)                   \
    X(batch_mem_ops, hipStreamBatchMemOp)             \
    X(get_proc_address, hipGetProcAddress)

// SPDX-License-Identifier: Apache-2.0
// The calls of the stand-in libamdhip64, as an engine declares them. Any thread.
#pragma once

#include "virtual_gpu/control.hpp"

extern "C" {
#define PLUMB_VHIP(name, parameters) PLUMB_VGPU_API plumb::vgpu::CuResult name parameters
PLUMB_VHIP(hipInit, (unsigned flags));
PLUMB_VHIP(hipRuntimeGetVersion, (int* version));
PLUMB_VGPU_API const char* hipGetErrorName(plumb::vgpu::CuResult error);
PLUMB_VHIP(hipGetDeviceCount, (int* count));
PLUMB_VHIP(hipDeviceGet, (int* device, int ordinal));
PLUMB_VHIP(hipDeviceGetName, (char* name, int length, int device));
PLUMB_VHIP(hipDeviceGetUuid, (plumb::vgpu::Uuid * uuid, int device));
PLUMB_VHIP(hipGetDevice, (int* device));
PLUMB_VHIP(hipSetDevice, (int device));
PLUMB_VHIP(hipModuleLoadData, (plumb::vgpu::Module * module, const void* image));
PLUMB_VHIP(hipModuleGetFunction, (plumb::vgpu::Function * function, plumb::vgpu::Module module, const char* name));
PLUMB_VHIP(hipModuleLaunchKernel, (plumb::vgpu::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                   plumb::vgpu::Stream stream, void** params, void** extra));
PLUMB_VHIP(hipStreamCreateWithFlags, (plumb::vgpu::Stream * stream, unsigned flags));
PLUMB_VHIP(hipStreamDestroy, (plumb::vgpu::Stream stream));
PLUMB_VHIP(hipStreamIsCapturing, (plumb::vgpu::Stream stream, plumb::vgpu::CaptureStatus* status));
PLUMB_VHIP(hipStreamBeginCapture, (plumb::vgpu::Stream stream, plumb::vgpu::CaptureMode mode));
PLUMB_VHIP(hipStreamEndCapture, (plumb::vgpu::Stream stream, plumb::vgpu::Graph* graph));
PLUMB_VHIP(hipThreadExchangeStreamCaptureMode, (plumb::vgpu::CaptureMode * mode));
PLUMB_VHIP(hipGraphDestroy, (plumb::vgpu::Graph graph));
PLUMB_VHIP(hipGraphCreate, (plumb::vgpu::Graph * graph, unsigned flags));
PLUMB_VHIP(hipGraphClone, (plumb::vgpu::Graph * clone, plumb::vgpu::Graph original));
PLUMB_VHIP(hipGraphNodeFindInClone,
           (plumb::vgpu::GraphNode * node, plumb::vgpu::GraphNode original, plumb::vgpu::Graph clone));
PLUMB_VHIP(hipGraphGetNodes, (plumb::vgpu::Graph graph, plumb::vgpu::GraphNode* nodes, std::size_t* count));
PLUMB_VHIP(hipGraphGetEdges,
           (plumb::vgpu::Graph graph, plumb::vgpu::GraphNode* from, plumb::vgpu::GraphNode* to, std::size_t* count));
PLUMB_VHIP(hipGraphNodeGetType, (plumb::vgpu::GraphNode node, int* type));
PLUMB_VHIP(hipGraphChildGraphNodeGetGraph, (plumb::vgpu::GraphNode node, plumb::vgpu::Graph* graph));
PLUMB_VHIP(hipGraphAddEventRecordNode,
           (plumb::vgpu::GraphNode * node, plumb::vgpu::Graph graph, const plumb::vgpu::GraphNode* after,
            std::size_t count, plumb::vgpu::Event event));
PLUMB_VHIP(hipGraphAddEmptyNode, (plumb::vgpu::GraphNode * node, plumb::vgpu::Graph graph,
                                  const plumb::vgpu::GraphNode* after, std::size_t count));
PLUMB_VHIP(hipGraphAddDependencies, (plumb::vgpu::Graph graph, const plumb::vgpu::GraphNode* from,
                                     const plumb::vgpu::GraphNode* to, std::size_t count));
PLUMB_VHIP(hipGraphRemoveDependencies, (plumb::vgpu::Graph graph, const plumb::vgpu::GraphNode* from,
                                        const plumb::vgpu::GraphNode* to, std::size_t count));
PLUMB_VHIP(hipGraphInstantiateWithFlags,
           (plumb::vgpu::GraphExec * exec, plumb::vgpu::Graph graph, unsigned long long flags));
PLUMB_VHIP(hipGraphExecDestroy, (plumb::vgpu::GraphExec exec));
PLUMB_VHIP(hipGraphLaunch, (plumb::vgpu::GraphExec exec, plumb::vgpu::Stream stream));
PLUMB_VHIP(hipStreamGetCaptureInfo_v2,
           (plumb::vgpu::Stream stream, plumb::vgpu::CaptureStatus* status, unsigned long long* id,
            plumb::vgpu::Graph* graph, const plumb::vgpu::GraphNode** nodes, std::size_t* count));
PLUMB_VHIP(hipEventCreateWithFlags, (plumb::vgpu::Event * event, unsigned flags));
PLUMB_VHIP(hipEventDestroy, (plumb::vgpu::Event event));
PLUMB_VHIP(hipEventRecord, (plumb::vgpu::Event event, plumb::vgpu::Stream stream));
PLUMB_VHIP(hipEventQuery, (plumb::vgpu::Event event));
PLUMB_VHIP(hipEventSynchronize, (plumb::vgpu::Event event));
PLUMB_VHIP(hipEventElapsedTime, (float* ms, plumb::vgpu::Event begin, plumb::vgpu::Event end));
#undef PLUMB_VHIP
}

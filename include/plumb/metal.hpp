// SPDX-License-Identifier: Apache-2.0
// Queues of Metal command queues. No Apple header is needed: an id<MTLCommandQueue> is a pointer (with ARC: a __bridge cast).
// Thread rule: any thread, but an encoder is used by one at a time.
#pragma once

#include "plumb/api.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// The queue of an id<MTLCommandQueue>, timed by its command buffers (source metal_command_buffer):
/// queue.timer->attach(command_buffer) before the commit and Profiler::record_device(name, queue, token) time one command
/// buffer under a name, in the layer that is open, and disturb nothing. Scopes on it are timed too, in every n-th step, by an
/// empty command buffer per border that orders what was committed before and after it: a scope holds what was committed inside.
/// The first call for a command queue makes its timer, which keeps it until the process ends; later ones are a lookup. Where
/// there is no Metal, or its command buffers carry no times, scopes are dropped and counted, and reports say why.
PLUMB_API Queue metal(void* command_queue) noexcept;

/// A pass of a command buffer that is not committed: an MTLComputePassDescriptor or MTLBlitPassDescriptor whose encoder is not
/// made yet. One brick, one encoder.
struct MetalPass {
    void* command_buffer = nullptr;
    void* descriptor = nullptr;
};

/// The same command queue, timed by the device's counters (source metal_counter), which have a clock of their own:
/// queue.timer->attach(&pass) has the pass sampled at its first and last stage. Where the device samples at dispatches, scopes
/// between metal_encoder() calls are sampled where they begin and end. Where it does not, errors and capabilities say why.
PLUMB_API Queue metal_counters(void* command_queue) noexcept;

/// From now on scopes on `counters` (of metal_counters()) are sampled in this open compute encoder of this command buffer;
/// null, null before its endEncoding. One thread at a time.
PLUMB_API Status metal_encoder(Queue counters, void* command_buffer, void* compute_encoder) noexcept;

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// Queues of OpenCL command queues. No OpenCL header is needed: a cl_command_queue is a pointer.
// Thread rule: any thread.
#pragma once

#include "plumb/api.hpp"
#include "plumb/record.hpp"

namespace plumb {

/// The queue of a cl_command_queue made with CL_QUEUE_PROFILING_ENABLE: scopes on it are timed on the device by markers, in
/// every n-th step (device.every=n). On an out-of-order queue only commands are timed: queue.timer->attach(event) and
/// Profiler::record_device(). The first call for a command queue makes its timer, which keeps it (and its context) until the
/// process ends; later ones are a lookup. Where there is no driver, or the command queue was made without profiling (it is kept all
/// the same), scopes are dropped and counted, and reports say why.
PLUMB_API Queue opencl(void* command_queue) noexcept;

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// The other side of the virtual GPU's HIP face: what HIP does that CUDA does not. Everything else is set and read by
// virtual_gpu/control.hpp, under the names of CUDA's calls, to which HIP's lead. Owned by the process; any thread.
#pragma once

#include <cstdint>

#include "virtual_gpu/control.hpp"

namespace plumb::vhip {

/// Resets the virtual GPU, initialises HIP, and makes device 0 current on every thread, as HIP does.
PLUMB_VGPU_API void reset(const vgpu::Config& config = {});

/// What hipRuntimeGetVersion answers from now on; 50'220'730 after a reset.
PLUMB_VGPU_API void version(int version);
/// No device from now on: hipInit and hipRuntimeGetVersion fail with 101, hipGetDeviceCount with 100.
PLUMB_VGPU_API void no_devices();
/// hipEventElapsedTime is off by so much, in every answer from now on that is shorter than `below_ns`.
PLUMB_VGPU_API void skew(double ns, double below_ns);

/// What hipEventElapsedTime makes of the event nodes of graphs from now on.
enum class EventNodes {
    work,
    unreadable, // an error
    never,      // not ready, for ever
    no_number,
    stand_still, // two of them read 0
    run_back,    // two of them read less than 0
    stale,       // they lie before whatever was recorded in front of them
};
PLUMB_VGPU_API void event_nodes(EventNodes behaviour);

/// Questions about events (query, elapsed time, wait) that were asked while a stream was captured. Before 7.3 such a capture
/// is broken: its end fails.
PLUMB_VGPU_API std::uint64_t questions_in_captures();
/// Before 7.0 a destroyed stream is answered with 709; later it is a crash, counted here instead.
PLUMB_VGPU_API std::uint64_t crashes();

/// The newer library's additions call these.
PLUMB_VGPU_API vgpu::CuResult device_of_stream(vgpu::Stream stream, int* device);
PLUMB_VGPU_API vgpu::CuResult id_of_stream(vgpu::Stream stream, unsigned long long* id);

} // namespace plumb::vhip

// SPDX-License-Identifier: Apache-2.0
// The device's time: durations are known when work is enqueued, so start and end are computed at once; what the work does
// to memory happens when host time has passed its end. Under the Gpu's lock.
#pragma once

#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

/// From when a stream may go on: its own tail, and what its kind waits for in its context.
std::int64_t ready_ns(const StreamObject& stream);
/// The stream is busy until then.
void occupy(StreamObject& stream, std::int64_t end_ns);
/// Waits while the stream's launch queue is full, then takes a place in it until `end_ns` is set.
void wait_for_place(Call& call, StreamObject& stream);
void take_place(StreamObject& stream, std::int64_t end_ns);

/// A kernel that may begin at `ready_ns` and takes `duration_ns` at full clocks: when it finds a place, and at the clocks of
/// that moment.
Span run_kernel(int device, const KernelWork& kernel, std::int64_t ready_ns, std::int64_t duration_ns);

/// Enqueues work, or adds it to the graph being captured.
CuResult submit(Call& call, StreamObject& stream, Work work, bool programmatic = false);
/// Records an event at a true time of the device.
void record_event(EventObject& event, std::int64_t submit_ns, std::int64_t done_ns, bool replayed);

/// The newest record that has happened, null if none; and whether a newer one is enqueued.
const EventRecord* happened(const EventObject& event, bool* newer_enqueued);

} // namespace plumb::vgpu

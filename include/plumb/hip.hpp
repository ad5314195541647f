// SPDX-License-Identifier: Apache-2.0
// Queues of HIP streams. No HIP header is needed: a hipStream_t is a pointer. Thread rule: any thread.
#pragma once

#include "plumb/api.hpp"
#include "plumb/record.hpp"

namespace plumb {

/// The queue of a hipStream_t: scopes on it are timed by events on the device, in every n-th step (device.every=n); scopes
/// of a captured stream are dropped, counted and explained. The first call for a stream makes its timer, which lives as long
/// as the process; later ones are a lookup. Give a stream of the calling thread's current device; null is the null stream.
/// Keep a stream until its scopes were collected: HIP itself looks into the stream of an event. Where there is no driver or
/// device the queue's scopes are dropped and counted, and reports say why.
PLUMB_API Queue hip(void* stream) noexcept;

} // namespace plumb

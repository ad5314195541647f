// SPDX-License-Identifier: Apache-2.0
// Queues of HIP streams, and probes of HIP graphs. No HIP header is needed: a hipStream_t and its like are pointers. Thread rule: any thread.
#pragma once

#include <utility>

#include "plumb/api.hpp"
#include "plumb/graph_probe.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// The queue of a hipStream_t: scopes on it are timed by events on the device, in every n-th step (device.every=n); while
/// the stream is captured they are noted instead, for hip_graph_captured(). The first call for a stream makes its timer, which lives as long
/// as the process; later ones are a lookup. Give a stream of the calling thread's current device; null is the null stream.
/// Keep a stream until its scopes were collected: HIP itself looks into the stream of an event. Where there is no driver or
/// device the queue's scopes are dropped and counted, and reports say why.
PLUMB_API Queue hip(void* stream) noexcept;

/// Launches a captured HIP graph, and times what is inside it in some of its replays. Made by
/// Profiler::hip_graph_captured(). The plain graph and its executable stay untouched and the caller's.
/// Copies share one state. Thread rule: any thread; launches of one probe are serialised.
class PLUMB_API HipGraphProbe {
  public:
    /// Launches plainly, and records nothing.
    HipGraphProbe() noexcept = default;

    /// hipGraphLaunch of `plain` (a hipGraphExec_t) on `stream`, or of an instrumented twin where this replay is to be
    /// sampled. The launch happens in any case; an error is HIP's own answer to it. Never waits for the device, beyond what
    /// hipGraphLaunch does.
    Status launch(void* plain, void* stream) noexcept;

    explicit HipGraphProbe(detail::ProbeHandle probe) noexcept : probe_(std::move(probe)) {}

  private:
    detail::ProbeHandle probe_;
};

} // namespace plumb

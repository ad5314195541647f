// SPDX-License-Identifier: Apache-2.0
// Measures what a stamp costs in a replay, with small graphs of our own on a stream of our own: stamps with nothing
// between them, and stamps between kernels that do nothing, at the start, in the middle and at the end.
// Thread rule: our own thread, which holds RelaxedCapture and has the context current; polls, never synchronises.
#pragma once

#include "cudagraph/graph_device.hpp"

namespace plumb::cudagraph {

/// `module` null: events only, and no kernels between.
struct StampCosts {
    StampCost event;
    StampCost stamp;
    double stamp_tick = StampCost::unknown; // of the timer that stamp kernels read
    bool ring_in_use = false;               // a replay was not seen to end: the ring may still be written to
    Status status;                          // the first thing that failed
};
[[nodiscard]] StampCosts measure_stamp_costs(backends::cuda::Timeline& timeline,
                                             const backends::cuda::StampModule* module, RingMemory ring);

} // namespace plumb::cudagraph

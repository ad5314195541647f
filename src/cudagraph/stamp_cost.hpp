// SPDX-License-Identifier: Apache-2.0
// Measures what a stamp costs in a replay, with small graphs of our own on a stream of our own: stamps with nothing
// between them. Beside an engine that works they wait for a place, and on an idle device clocks are low: a first guess.
// Thread rule: our own thread, which holds RelaxedCapture and has the context current; polls, never synchronises.
#pragma once

#include "cudagraph/graph_device.hpp"

namespace plumb::cudagraph {

/// Nanoseconds between two stamps with nothing between; `module` null: of events only.
struct StampCosts {
    double event = unknown_cost;
    double stamp = unknown_cost;
    double stamp_tick = unknown_cost; // of the timer that stamp kernels read
    bool ring_in_use = false;         // a replay was not seen to end: the ring may still be written to
    Status status;                    // the first thing that failed
};
[[nodiscard]] StampCosts measure_stamp_costs(backends::cuda::Timeline& timeline,
                                             const backends::cuda::StampModule* module, RingMemory ring);

} // namespace plumb::cudagraph

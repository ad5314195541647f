// SPDX-License-Identifier: Apache-2.0
// Whether event record nodes of graphs do here what graph probes need of them. Calls on one timeline's own stream.
// Thread rule: any thread of ours.
#pragma once

#include "backends/cuda/timeline.hpp"

namespace plumb::backends::cuda {

/// Replays a graph of nothing but event nodes twice and reads it: each replay must stamp anew, forward, and inside the two
/// plain events around it. Error unsupported: they do not, and the sentence says what came instead; pending: not known,
/// the device was busy or something is captured. Waits for a few milliseconds at most.
[[nodiscard]] Status try_event_nodes(Timeline& timeline);

} // namespace plumb::backends::cuda

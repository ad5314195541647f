// SPDX-License-Identifier: Apache-2.0
// What a graph cache needs of a profiler: probes for what it captures, and the life-cycle rows that end in the recording.
// Implemented where profilers are known (src/session); owned by the cache. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "plumb/cuda_graph.hpp"
#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::cudagraph {

class GraphHost {
  public:
    virtual ~GraphHost() = default;

    /// See Profiler::graph_captured(). A probe got here counts captures, replays, launch time, node changes and evictions
    /// of that key by itself.
    virtual Result<GraphProbe> captured(std::uint64_t key, CUgraph_st* graph) = 0;
    virtual void evicted(std::uint64_t key) = 0;
    /// See GraphProbes::update().
    virtual void update(std::uint64_t key, const std::function<void(recording::GraphInfo&)>& change) = 0;
};

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
// What a graph cache needs of a profiler: the ledger that it counts in, and probes for what it captures.
// Implemented by the Session, which outlives the cache. Thread rule: any thread.
#pragma once

#include <cstdint>

#include "cudagraph/graph_ledger.hpp"
#include "plumb/cuda_graph.hpp"
#include "plumb/graph_probe.hpp"
#include "plumb/result.hpp"

namespace plumb::cudagraph {

class GraphHost {
  public:
    virtual ~GraphHost() = default;

    /// Asked for with each new key: a forked child has a ledger of its own.
    virtual GraphLedger& graph_ledger() = 0;
    /// See Profiler::graph_captured(). The probe counts that capture and its launches in the ledger.
    virtual Result<GraphProbe> graph_captured(std::uint64_t key, CUgraph_st* graph) = 0;
    /// The probe of that key goes. Why, is the cache's to count.
    virtual void graph_dropped(std::uint64_t key) = 0;
};

} // namespace plumb::cudagraph

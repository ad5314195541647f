// SPDX-License-Identifier: Apache-2.0
// Scopes of a graph in which the engine opened none: nodes that follow each other on one lane and have one brick and layer, as their
// kernels' names and places tell. Pure but for names, which are interned. Any thread.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/capture_notes.hpp"
#include "cudagraph/graph_shape.hpp"
#include "cudagraph/node_map.hpp"
#include "recording/node_names.hpp"

namespace plumb::cudagraph {

struct NamedScopes {
    std::vector<backends::cuda::ScopeNote> notes; // frontiers are in `scopes`
    std::vector<MappedScope> scopes;              // of each note
    std::string told_by;                          // in words, for the graph's row
};

/// Nodes that do no work (events, empty nodes) and child graphs have no scope. No scopes at all where the driver tells no names.
[[nodiscard]] NamedScopes scopes_by_name(const GraphShape& shape, recording::NameNodes name_nodes,
                                         const Recorder& recorder);

} // namespace plumb::cudagraph

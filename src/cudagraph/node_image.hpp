// SPDX-License-Identifier: Apache-2.0
// A graph's nodes with the bytes of their parameters, in an order that two captures of the same step share: by depth and
// by what lies before and behind. Read once; the graph may go then. Plain data; thread rule: nobody changes the graph
// meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cudagraph/guarded_driver.hpp"
#include "plumb/cuda_graph.hpp"
#include "recording/recording.hpp"

namespace plumb::cudagraph {

struct ImagePart {
    std::string what; // "parameter 2", "grid", "source", …
    std::string bytes;
    bool operator==(const ImagePart& other) const { return bytes == other.bytes && what == other.what; }
};

struct NodeImage {
    std::string name; // "kernel rope", "memcpy", …
    std::uint32_t depth = 0;
    std::uint64_t place = 0; // hash of what lies before and behind
    std::vector<ImagePart> parts;
};

struct GraphImage {
    std::vector<NodeImage> nodes; // child graphs' nodes behind the others
    std::vector<recording::NamedCount> kernels;
    std::map<std::string, std::uint32_t> unread; // what has parameters that nobody could read, and how many
};

/// Error unsupported before CUDA 12.4, where nobody can tell how large a kernel's parameters are.
Result<GraphImage> image_of(GuardedDriver& driver, cuda::Graph graph);

/// What differs: one entry per parameter (or other part) of a node, or one that says how the structures differ; and one
/// per kind of node that could not be compared.
std::vector<BakedIn> differences(const GraphImage& first, const GraphImage& second);

} // namespace plumb::cudagraph

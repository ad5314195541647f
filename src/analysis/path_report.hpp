// SPDX-License-Identifier: Apache-2.0
// What is found on the critical path of one step (docs/reference/path.md). Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/execgraph.hpp"
#include "plumb/figure.hpp"

namespace plumb {

/// What the parts of one name do to the length of a step.
struct PathRow {
    std::string name;
    NodeKind kind = NodeKind::task;
    bool device = false;
    std::uint64_t count = 0;   // leaves
    std::uint64_t on_path = 0; // of those
    double total_ns = 0;       // of all
    double path_ns = 0;        // of those on the path
    double slack_ns = 0;       // the least of all
    Figure gain_ns;            // the path is so much shorter if they took no time
};

/// Launches, and kernels, of one brick in one layer.
struct KernelRow {
    std::string name;
    std::optional<std::uint32_t> layer; // absent: outside of layers
    std::uint64_t device_scopes = 0;
    Figure kernels;              // recorded in it, and those of the captured graphs that were replayed
    std::uint64_t in_graphs = 0; // of these, those of captured graphs
};

/// A kernel that took long, and where its code comes from.
struct SlowKernel {
    NodeId node = no_node;
    std::string file;      // of its source; empty: not registered
    Figure roofline_share; // of what work and peaks of the machine allow, 0 to 1
};

/// A kernel that was recorded in the step.
struct RecordedKernel {
    std::string name;
    std::uint64_t code_hash = 0; // 0: not given
    std::string file;            // as of SlowKernel
    std::uint64_t launches = 0;
};

struct PathReport {
    std::uint64_t step = 0;
    Phase phase = Phase::none;
    std::uint64_t candidates = 0; // counted steps the median was taken of; 0: the step was asked for
    double span_ns = 0;           // the step's begin to its last end on any track
    double host_ns = 0;           // the step's own scope
    std::uint64_t tokens = 0;
    std::uint64_t launches = 0; // of the host, and kernels inside the captured graphs that it launched
    Figure launches_per_token;
    std::uint64_t host_launches = 0; // kernels recorded, graphs, and device scopes in which no kernel was
    Figure host_launches_per_token;
    std::uint64_t graph_launches = 0; // of these
    std::uint64_t graph_kernels = 0;  // inside replays whose nodes are known
    ExecGraph graph;
    PathAnalysis analysis;
    std::vector<std::string> tracks;      // by GraphNode::track
    std::vector<PathRow> rows;            // by time on the path, then by slack
    std::vector<KernelRow> kernels;       // by brick and layer
    std::vector<SlowKernel> slowest;      // slowest first
    std::vector<RecordedKernel> recorded; // by launches, most first
    std::vector<PingPong> ping_pong;
    double window_ns = 0; // of ping_pong
    std::vector<std::string> notes;
};

struct PathOptions {
    std::optional<std::uint64_t> step;  // absent: the decode step of median length among the counted ones
    std::uint32_t slowest = 0;          // 1: of those, that of the longest period instead; 2: the next; and so on
    std::optional<Phase> phase;         // absent: decode before others
    std::int64_t window_ns = 1'000'000; // for ping-pong transfers
};

} // namespace plumb

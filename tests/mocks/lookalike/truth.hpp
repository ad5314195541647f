// SPDX-License-Identifier: Apache-2.0
// What the look-alike knows of itself: what each node is and takes, and when it ran. One line of JSON a step goes to the file
// that LOOKALIKE_TRUTH names, in one write, so that a process killed at any moment leaves whole lines.
//
// A Step belongs to one context; only the thread that computes its graph (number 0 of the team) adds to it. Times are
// nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lookalike/ggml.h"

namespace lookalike {

// A node as its builder meant it. Fused nodes: the last one counts, with the work of all.
struct Planted {
    const char* brick = ""; // several that are right: separated by |
    int layer = -1;
    std::int64_t ns = 0;
    double bytes = 0, flops = 0; // 0: not said
    struct Step* step = nullptr;
};

struct Node {
    std::string name;
    const char* op;
    Planted planted;
    std::int64_t called;  // just before the calls that lead to the work
    std::int64_t entered; // the work begins
    std::int64_t left;    // the work is done
    std::int64_t passed;  // behind the barrier; the next node's turn
};

struct Step {
    int context = 0, number = 0, tokens = 0, sequences = 0, kv_length = 0, status = 0;
    const char* phase = "";
    std::int64_t begin = 0, end = 0;
    std::int64_t compute_begin = 0, compute_end = 0; // of the last graph
    int graph_nodes = 0;                             // those that do work, of all graphs
    std::vector<Node> nodes;
};

struct Sampled {
    int context;
    std::int64_t begin, end;
};

inline Planted* planted(const ggml_tensor* tensor) { return static_cast<Planted*>(tensor->extra); }

} // namespace lookalike

LOOKALIKE_API std::int64_t lookalike_now();
LOOKALIKE_API void lookalike_busy(std::int64_t ns);
LOOKALIKE_API void lookalike_write_step(const lookalike::Step& step);
LOOKALIKE_API void lookalike_write_sampled(const lookalike::Sampled& sampled);

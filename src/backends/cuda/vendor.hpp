// SPDX-License-Identifier: Apache-2.0
// What vendors whose drivers have the same calls do differently, in names and in behaviour: this room is one implementation over
// one such table per vendor. Plain data, literals, as long as the process; any thread.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/driver_types.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"

namespace plumb::backends::cuda {

struct Driver;

struct Vendor {
    const char* api;              // "CUDA"
    const char* backend;          // "cuda": of the backend, its clocks and its queues
    const char* source;           // "cuda_event"
    const char* graph_source;     // "cuda_graph_event"
    const char* stamp_source;     // "cuda_graph_stamp"; null: there are no stamp kernels for it
    const char* no_device_advice; // where its tools list no device
    /// The vendor's own name for what CUDA calls "cuEventRecord".
    const char* (*symbol_of)(const char* call);
    std::string (*version_words)(int version);
    std::vector<Capability> (*capabilities)(const Driver& driver);
    /// Errors after which nothing more is asked of a context.
    bool (*is_sticky)(CuResult result);
    /// The queue of a stream, as engines ask for it.
    Queue (*queue_of)(Stream stream);
    bool doubts_event_nodes; // event nodes of graphs are tried before anybody trusts them
    bool small_negatives;    // two stamps close together may come back in the wrong order
    /// Why kernels of ours do not run there; null where they do (as PTX).
    const char* no_kernels;
};

extern const Vendor cuda_vendor;

} // namespace plumb::backends::cuda

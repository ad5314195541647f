// SPDX-License-Identifier: Apache-2.0
// What HIP can do for us, or why not.
#include "backends/hip/driver.hpp"

namespace plumb::backends::hip {

std::vector<Capability> capabilities_of(const Driver& driver) {
    std::vector<Capability> all = {
        {"concurrent_queue", true, ""},
        {"graph_capture", driver.no_graphs.empty(), driver.no_graphs},
        {"immediate_in_capture", false, "waiting is illegal while a stream is captured"},
        {"collection_in_capture", !driver.query_breaks_captures,
         driver.query_breaks_captures ? "before HIP 7.2.1 a question about an event breaks captures: nothing is "
                                        "collected while a timed stream is captured"
                                      : ""},
        {"true_busy_time", false, "events bound busy time from above; only kernel records give it"},
        {"hardware_counters", false, "this backend reads events only"},
    };
    const bool identity = driver.stream_get_id != nullptr;
    all.push_back({"stream_identity", identity,
                   identity ? ""
                            : "without hipStreamGetId a stream handle that is given out anew looks like the old "
                              "stream"});
    for (const GraphCall& call : graph_calls()) {
        all.push_back(
            {call.capability, false,
             call.there ? std::string("graph probes of HIP do without ") + call.symbol
                        : std::string("this libamdhip64 lacks ") + call.symbol + "; graph probes of HIP do without"});
    }
    all.push_back({"graph_stamp_kernels", false,
                   "stamp kernels are built for NVIDIA devices only; graph probes of HIP use event nodes"});
    all.push_back({"edge_data", false,
                   "the edges of HIP 5.2's graphs have no data, and no graph probe of HIP reads a newer one's"});
    return all;
}

} // namespace plumb::backends::hip

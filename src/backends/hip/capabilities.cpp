// SPDX-License-Identifier: Apache-2.0
// What HIP can do for us, or why not.
#include "backends/hip/driver.hpp"

namespace plumb::backends::hip {

std::vector<Capability> capabilities_of(const Driver& driver) {
    std::vector<Capability> all = {
        {"concurrent_queue", true, ""},
        {"graph_capture", false,
         "scopes of a captured HIP stream are dropped and counted: graph probes are built for CUDA only; time these "
         "steps without a graph"},
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
        const std::string has = call.there ? "this libamdhip64 has " : "this libamdhip64 lacks ";
        all.push_back(
            {call.capability, false,
             has + call.symbol +
                 (call.there ? ", but no graph probe of HIP uses it yet" : ", which graph probes would need")});
    }
    all.push_back({"edge_data", false,
                   "the edges of HIP 5.2's graphs have no data, and no graph probe of HIP reads a newer one's"});
    return all;
}

} // namespace plumb::backends::hip

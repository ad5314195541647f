// SPDX-License-Identifier: Apache-2.0
// How the graph cache adds what it knows to the life-cycle rows of a profiler. Any thread.
#pragma once

#include <functional>

#include "plumb/session.hpp"
#include "recording/recording.hpp"

namespace plumb::cudagraph {

struct RowAccess {
    /// Calls `change` once with the row of that key; it must not call back.
    static void change(Profiler& profiler, std::uint64_t key,
                       const std::function<void(recording::GraphInfo&)>& change) {
        profiler.change_graph_row(key, change);
    }
};

} // namespace plumb::cudagraph

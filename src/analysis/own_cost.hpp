// SPDX-License-Identifier: Apache-2.0
// What recording cost this run: what it recorded times the price measured when it started, plus the drain's CPU time.
// Pure.
#pragma once

#include <cstdint>

#include "plumb/results.hpp"
#include "recording/recording.hpp"

namespace plumb::analysis {

struct RecordedCounts {
    std::uint64_t scopes = 0; // scopes, spans, layers, steps
    std::uint64_t laps = 0;
    std::uint64_t cpu_stamps = 0;
    std::int64_t first_ns = 0, last_ns = 0; // of all samples; their distance is the wall clock compared with
};

[[nodiscard]] OwnCost own_cost(const recording::Metadata& metadata, const recording::Counters& counters,
                               const RecordedCounts& recorded, bool incomplete);

} // namespace plumb::analysis

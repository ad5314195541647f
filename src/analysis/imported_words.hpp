// SPDX-License-Identifier: Apache-2.0
// What is said where a figure needs what only a program that was instrumented tells, and a trace of another tool does not.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::analysis {

inline constexpr const char* no_tokens =
    "the steps carry no tokens (plumb::tokens(n) gives them; for a trace, import again with --tokens N)";

inline constexpr const char* no_price = "the price of a scope was not measured when the run started";
inline constexpr const char* cost_of_missing =
    "records of this run are missing, so what was paid for all of them is unknown";
inline constexpr const char* cost_of_another_tool = "another tool made the trace, and what that cost is not in it";

/// When replays were busy.
inline constexpr const char* in_rows_of_queues = "their operations are in the rows of their queues";

/// What the source of its times begins with; the tool follows.
inline constexpr std::string_view imported_source = "imported:";

[[nodiscard]] inline bool is_imported(std::string_view source) { return source.starts_with(imported_source); }
[[nodiscard]] inline bool is_imported(const std::vector<recording::TrackInfo>& tracks) {
    return std::any_of(tracks.begin(), tracks.end(),
                       [](const recording::TrackInfo& track) { return is_imported(track.source); });
}
/// By the floor that an import notes for its source.
[[nodiscard]] inline bool is_imported(const recording::Metadata& metadata) {
    return std::any_of(metadata.costs.begin(), metadata.costs.end(),
                       [](const auto& cost) { return cost.first.starts_with("floor.imported:"); });
}

} // namespace plumb::analysis

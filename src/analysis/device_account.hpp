// SPDX-License-Identifier: Apache-2.0
// What a report says about devices beyond its rows: the device's side of each phase, a summary per captured graph, and the
// sentences that go with them. Pure functions; no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/graph_table.hpp"
#include "analysis/phase_statistics.hpp"
#include "analysis/row_table.hpp"
#include "plumb/results.hpp"
#include "resolve/name_table.hpp"

namespace plumb::analysis {

/// None where nothing ran on a device in steps of this phase.
[[nodiscard]] std::optional<DeviceAccount> device_account(const PhaseStatistics& statistics, const GraphTable& graphs,
                                                          Phase phase);
/// Graphs that were replayed in steps of the phase, the most replays first.
[[nodiscard]] std::vector<GraphSummary> graph_summaries(const GraphTable& graphs, const RowTable& rows, Phase phase,
                                                        std::uint64_t steps);
/// Graphs some of whose samples were left out, and what found no room in the table.
[[nodiscard]] std::vector<std::string> left_out_notes(const GraphTable& graphs);
[[nodiscard]] std::vector<std::string> device_notes(const Report& report, const GraphTable& graphs,
                                                    const resolve::NameTable& names);

} // namespace plumb::analysis

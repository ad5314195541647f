// SPDX-License-Identifier: Apache-2.0
// Life-cycle rows of captured graphs to and from bytes (docs/reference/plumb_format.md), and the bounds they are kept within.
// Rows repeat as they grow, but their lists rarely change: an entry may leave its lists to the entry before it.
// Pure functions; no thread rule. Decoding takes hostile input: false when a part that must be there is not.
#pragma once

#include <cstddef>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// More sites, list entries and bytes of a name than these are cut off: an entry stays below 2 MiB.
inline constexpr std::size_t most_graph_sites = 16384;
inline constexpr std::size_t most_graph_entries = 512;
inline constexpr std::size_t most_graph_kinds = 64; // reasons of eager steps, node types
inline constexpr std::size_t most_graph_text = 1024;

struct StoredGraph {
    GraphInfo row;
    bool lists_kept = false;   // nodes, unattributed, node_changes, baked_in, sites: as in the entry of this key before
    std::uint64_t content = 0; // number of the ContentEntry that row.content lies in; 0: in none
};

/// The row with its lists and texts cut to the bounds; what was cut off is summed in a last entry "others".
[[nodiscard]] GraphInfo bounded(GraphInfo row);
[[nodiscard]] bool same_lists(const GraphInfo& a, const GraphInfo& b);
/// `to` takes the lists of `from`, which loses them.
void take_lists(GraphInfo& to, GraphInfo& from);

/// REQUIRES: the row is bounded.
void encode(const StoredGraph& from, Bytes& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, StoredGraph& to);

} // namespace plumb::recording

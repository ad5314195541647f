// SPDX-License-Identifier: Apache-2.0
// Finds one cycle in compressed rows. Plain function; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::execgraph {

/// The vertices of one cycle in order; empty where there is none. O(V+E), no recursion.
[[nodiscard]] std::vector<std::uint32_t> find_cycle(const std::vector<std::uint64_t>& offsets,
                                                    const std::vector<std::uint32_t>& targets);

} // namespace plumb::execgraph

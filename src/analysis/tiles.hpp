// SPDX-License-Identifier: Apache-2.0
// Totals of tiles to the answer of `plumb tiles`. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "plumb/tiles.hpp"
#include "recording/reader.hpp"
#include "recording/tile_codec.hpp"

namespace plumb::analysis {

/// What a recording says of tiles.
struct TileInput {
    std::vector<recording::TileTotals> tiles; // each key once
    std::vector<recording::NameInfo> names;
    Figure ns_per_tick; // absent: times are not known
    Figure own_cost_ns;
    bool kept = true; // false: the run did not keep tiles
    std::vector<std::string> notes;
};

[[nodiscard]] TileInput tiles_of(const recording::Reader& reader);
[[nodiscard]] TileReport build_tiles(const TileInput& input, const TileOptions& options);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Totals of tiles to the answer of `plumb tiles`. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/roofline.hpp"
#include "plumb/tiles.hpp"
#include "recording/run_facts.hpp"
#include "recording/tile_codec.hpp"

namespace plumb::analysis {

/// What one core can do, measured where the run ran. A peak of 0 or less is none.
struct TilePeaks {
    Figure flops_per_s{{}, no_peaks};
    std::array<Figure, tile_levels> bytes_per_s{flops_per_s, flops_per_s, flops_per_s}; // macro, midi, micro
};

/// What a recording says of tiles.
struct TileInput {
    std::vector<recording::TileTotals> tiles; // each key once
    std::vector<recording::NameInfo> names;
    Figure ns_per_tick; // absent: times are not known
    Figure own_cost_ns;
    TilePeaks peaks;
    bool kept = true;         // false: the run did not keep tiles
    bool ended_early = false; // the run was killed, or could not write: its last tiles are not here
    std::vector<std::string> notes;
};

[[nodiscard]] TileInput tiles_of(const recording::RunFacts& facts);
[[nodiscard]] TileReport build_tiles(const TileInput& input, const TileOptions& options);

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
// Totals of tiles to the answer of `plumb tiles`: per brick and level, what its tiles cost, and a map of them over row and column.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/roofline.hpp"
#include "plumb/figure.hpp"
#include "plumb/tile.hpp"
#include "recording/run_facts.hpp"
#include "recording/tile_codec.hpp"

namespace plumb {

/// Of one tile, or of all tiles of a map together. What is nested inside is part of its time.
struct TileFigures {
    std::uint64_t calls = 0;
    Figure total_ns, mean_ns, min_ns, max_ns; // mean, min and max of a call
    /// Mean of a call, each taken as at most four times the mean before it, the first as four times the second: one that the
    /// system put aside for a while counts as little as that.
    Figure typical_ns;
    Figure bytes, flops; // of all calls, as the program gave them
    Figure bytes_per_s, flops_per_s;
    Figure intensity; // flops per byte
    Figure of_peak;   // share of what the roofline of its level allows; above 1 its data came from a nearer level
};

struct TilePlace {
    std::uint32_t row = 0, col = 0;
    TileFigures figures;
    Figure cost; // what the map shows: in the unit of TileMapReport::basis
};

/// What tiles of one map are compared by: the typical time of a call, or of a unit of work where every tile says how much.
enum class TileBasis : std::uint8_t { ns_per_call, ns_per_flop, ns_per_byte };

struct TileMapReport {
    std::string name; // of the brick; empty: the tiles named none
    TileLevel level = TileLevel::macro;
    std::uint32_t rows = 0, cols = 0; // one more than the largest
    TileFigures all;
    TileBasis basis = TileBasis::ns_per_call;
    Figure median;                 // of the places' costs
    std::vector<TilePlace> places; // by row, then column; only those that were called
};

/// A tile that is slower than its map's median by more than a quarter, also without its longest call, and five robust standard
/// deviations (1.4826 times the median distance from the median), and by more than four times what a tile itself costs.
struct SlowTile {
    std::string name; // of its map
    TileLevel level = TileLevel::macro;
    std::uint32_t row = 0, col = 0;
    Figure typical_ns;
    double ratio = 0; // cost over the median
    double robust_z = 0;
};

/// Tiles of one level that were not kept apart.
struct TileOverflow {
    TileLevel level = TileLevel::macro;
    TileFigures figures;
};

struct TileReport {
    std::vector<TileMapReport> maps;    // level by level, the largest total first
    std::vector<SlowTile> slow;         // the largest ratio first
    std::vector<TileOverflow> overflow; // by level
    Figure own_cost_ns;                 // of one tile, on this machine when the run began
    std::vector<std::string> notes;
};

struct TileOptions {
    std::optional<TileLevel> level; // only this one
};

} // namespace plumb

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

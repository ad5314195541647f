// SPDX-License-Identifier: Apache-2.0
// The answer to PLUMB_TILE: per brick and level, what its tiles cost, and a map of them over row and column.
// Profiler::tiles() gives it of a run, ask("tiles", …) of a recording. Plain values, owned by the caller; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/figure.hpp"
#include "plumb/tile.hpp"

namespace plumb {

/// Of one tile, or of all tiles of a map together. What is nested inside is part of its time.
struct TileFigures {
    std::uint64_t calls = 0;
    Figure total_ns, mean_ns, min_ns, max_ns; // mean, min and max of a call
    /// Mean of a call, each call taken as at most four times the mean before it: one that the system put aside for a while
    /// counts as little as that.
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

/// A tile that is slower than its map's median by more than a quarter and five robust standard deviations (1.4826 times the
/// median distance from the median), and by more than four times what a tile itself costs.
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

// SPDX-License-Identifier: Apache-2.0
// The answer to PLUMB_TILE: per brick and level, what its tiles cost, and a map of them over row and column.
// Plain values, owned by the caller; functions of them are pure. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
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
    std::size_t map = 0, place = 0; // indices into TileReport::maps and TileMapReport::places
    double ratio = 0;               // cost over the median
    double robust_z = 0;
};

struct TileReport {
    std::vector<TileMapReport> maps;                              // level by level, the largest total first
    std::vector<SlowTile> slow;                                   // the largest ratio first
    std::array<std::optional<TileFigures>, tile_levels> overflow; // tiles not kept apart
    Figure own_cost_ns;                                           // of one tile, on this machine when the run began
    std::vector<std::string> notes;
};

struct TileOptions {
    std::optional<TileLevel> level; // only this one
};

PLUMB_API std::optional<TileLevel> tile_level_of_word(std::string_view word);
PLUMB_API Result<TileReport> tiles_recording(const std::string& path, const TileOptions& options = {});
/// A table and a heat map per brick and level, in colour only where the options say so; and JSON (schema plumb.tiles/1).
PLUMB_API std::string render_text(const TileReport& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const TileReport& report);

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// The answer to PLUMB_TILE in words and JSON.
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/tiles.hpp"
#include "page/options.hpp"
#include "page/page.hpp"

namespace plumb {

inline Words words_of(TileLevel) {
    static constexpr const char* words[] = {"", "macro", "midi", "micro"};
    return words;
}
inline Words words_of(TileBasis) {
    static constexpr const char* words[] = {"ns_per_call", "ns_per_flop", "ns_per_byte"};
    return words;
}

[[nodiscard]] Result<TileReport> read_tiles(const std::vector<std::string>& files, const TileOptions& options);

template <class V>
void describe(V& v, TileOptions& o) {
    v("level", o.level, "Only the tiles of one level");
}

template <class V>
void describe_figures(V& v, const TileFigures& f) {
    v("calls", f.calls, "how often it ran");
    v("total_ns", f.total_ns, "of all calls");
    v("mean_ns", f.mean_ns, "of a call");
    v("min_ns", f.min_ns, "of a call");
    v("max_ns", f.max_ns, "of a call");
    v("typical_ns", f.typical_ns,
      "mean of a call, each taken as at most four times the mean before it, the first as four times the second");
    v("bytes", f.bytes, "of all calls, as the program gave them");
    v("flops", f.flops, "of all calls, as the program gave them");
    v("bytes_per_s", f.bytes_per_s, "over the total time");
    v("flops_per_s", f.flops_per_s, "over the total time");
    v("intensity", f.intensity, "flops per byte");
    v("of_peak", f.of_peak, "share of the roofline of its level; never clamped");
}

template <class V>
void describe(V& v, const TilePlace& p) {
    v.type("tile", "One tile that was called.");
    v("row", p.row, "");
    v("col", p.col, "");
    describe_figures(v, p.figures);
    v("cost", p.cost, "in the unit of the map's `basis`");
}

template <class V>
void describe(V& v, const TileMapReport& m) {
    v.type("tile map", "The tiles of one brick and level. Its figures are those of all its tiles together.");
    v("name", m.name, "the brick; empty: the tiles named none");
    v("level", m.level, "where the data of its tiles lie");
    v("rows", m.rows, "one more than the largest row");
    v("cols", m.cols, "one more than the largest column");
    describe_figures(v, m.all);
    v("basis", m.basis, "what its tiles are compared by");
    v("median", m.median, "of the tiles' `cost`");
    v("tiles", m.places, "those that were called, by `row`, then `col`");
}

template <class V>
void describe(V& v, const SlowTile& s) {
    v.type("slow tile", "A tile that is slower than the others of its map.");
    v("name", s.name, "the brick");
    v("level", s.level, "that of its map");
    v("row", s.row, "");
    v("col", s.col, "");
    v("ratio", s.ratio, "`cost` over the median of its map");
    v("robust_z", s.robust_z, "distance from the median in robust standard deviations");
}

template <class V>
void describe(V& v, const TileOverflow& o) {
    v.type("tile overflow", "The tiles of one level that were not kept apart.");
    v("level", o.level, "");
    describe_figures(v, o.figures);
}

template <class V>
void describe(V& v, const TileReport& r) {
    v.type("tiles", "What tiles of kernels cost, and the slow ones (`plumb tiles`).");
    v("own_cost_ns", r.own_cost_ns, "of one tile, measured when the run began");
    v("maps", r.maps, "one for each brick and level");
    v("slow", r.slow, "the largest ratio first");
    v("overflow", r.overflow, "tiles that were not kept apart, by level");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const TileReport&) { return "plumb.tiles/1"; }
[[nodiscard]] page::Page page_of(const TileReport& report, const TextOptions& options);

} // namespace plumb

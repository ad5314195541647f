// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/tiles.hpp"
#include "render/json_figure.hpp"
#include "render/tile_words.hpp"

namespace plumb {

namespace {

using base::JsonWriter;
using render::put_figure;

void put_figures(JsonWriter& json, const TileFigures& figures) {
    json.field("calls", figures.calls);
    put_figure(json, "total_ns", figures.total_ns);
    put_figure(json, "mean_ns", figures.mean_ns);
    put_figure(json, "min_ns", figures.min_ns);
    put_figure(json, "max_ns", figures.max_ns);
    put_figure(json, "typical_ns", figures.typical_ns);
    put_figure(json, "bytes", figures.bytes);
    put_figure(json, "flops", figures.flops);
    put_figure(json, "bytes_per_s", figures.bytes_per_s);
    put_figure(json, "flops_per_s", figures.flops_per_s);
    put_figure(json, "intensity", figures.intensity);
    put_figure(json, "of_peak", figures.of_peak);
}

void put_names(JsonWriter& json, const TileMapReport& map) {
    json.field("name", map.name);
    json.field("level", tile_word(map.level));
}

void put_map(JsonWriter& json, const TileMapReport& map) {
    json.begin_object();
    put_names(json, map);
    json.field("rows", map.rows);
    json.field("cols", map.cols);
    put_figures(json, map.all);
    json.field("basis", render::basis_word(map.basis));
    put_figure(json, "median", map.median);
    json.key("tiles");
    json.begin_array();
    for (const TilePlace& place : map.places) {
        json.begin_object();
        json.field("row", place.row);
        json.field("col", place.col);
        put_figures(json, place.figures);
        put_figure(json, "cost", place.cost);
        json.end();
    }
    json.end();
    json.end();
}

void put_slow(JsonWriter& json, const TileReport& report, const SlowTile& slow) {
    const TileMapReport& map = report.maps[slow.map];
    json.begin_object();
    put_names(json, map);
    json.field("row", map.places[slow.place].row);
    json.field("col", map.places[slow.place].col);
    json.field("ratio", slow.ratio);
    json.field("robust_z", slow.robust_z);
    json.end();
}

} // namespace

std::string render_json(const TileReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.tiles/1");
    put_figure(json, "own_cost_ns", report.own_cost_ns);
    json.key("maps");
    json.begin_array();
    for (const TileMapReport& map : report.maps) {
        put_map(json, map);
    }
    json.end();
    json.key("slow");
    json.begin_array();
    for (const SlowTile& slow : report.slow) {
        put_slow(json, report, slow);
    }
    json.end();
    json.key("overflow");
    json.begin_array();
    for (std::size_t i = 0; i < tile_levels; ++i) {
        if (report.overflow[i]) {
            json.begin_object();
            json.field("level", tile_word(static_cast<TileLevel>(i + 1)));
            put_figures(json, *report.overflow[i]);
            json.end();
        }
    }
    json.end();
    json.key("notes");
    json.begin_array();
    for (const std::string& note : report.notes) {
        json.value(note);
    }
    json.end();
    json.finish();
    out += '\n';
    return out;
}

} // namespace plumb

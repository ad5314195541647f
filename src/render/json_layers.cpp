// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/layers.hpp"
#include "render/json_figure.hpp"

namespace plumb {

namespace {

using base::JsonWriter;
using render::put_figure;

void put_cells(JsonWriter& json, const LayerReport& report, const LayerRow& row) {
    json.key("cells");
    json.begin_array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
        json.begin_object();
        json.field("layer", report.layers[i]);
        put_figure(json, "value", row.cells[i]);
        json.end();
    }
    json.end();
}

void put_names(JsonWriter& json, const LayerRow& row) {
    json.field("phase", phase_word(row.phase));
    json.field("name", row.name);
    json.field("source", row.source);
    json.field("lap", row.lap);
    json.field("parent", row.parent);
}

} // namespace

std::string render_json(const LayerReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.layers/1");
    json.field("metric", metric_word(report.metric));
    json.key("rows");
    json.begin_array();
    for (const LayerRow& row : report.rows) {
        json.begin_object();
        put_names(json, row);
        put_figure(json, "median", row.median);
        put_figure(json, "mad", row.mad);
        put_cells(json, report, row);
        json.end();
    }
    json.end();
    json.key("odd");
    json.begin_array();
    for (const OddLayer& odd : report.odd) {
        json.begin_object();
        put_names(json, report.rows[odd.row]);
        json.field("layer", odd.layer);
        json.field("value", odd.value);
        json.field("median", odd.median);
        json.field("robust_z", odd.robust_z);
        json.end();
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

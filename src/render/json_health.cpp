// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "render/json_figure.hpp"
#include "render/numerics_words.hpp"

namespace plumb {

namespace {

using namespace render;
using base::JsonWriter;

void put_first(JsonWriter& json, const FirstNonfinite& first) {
    json.key("first_nonfinite");
    json.begin_object();
    put_place(json, first.place);
    put_facts(json, "facts", first.facts);
    json.field("inputs", input_word(first.inputs));
    json.key("input_tensors");
    json.begin_array();
    for (const auto& [place, facts] : first.input_tensors) {
        json.begin_object();
        put_place(json, place);
        put_facts(json, "facts", facts);
        json.end();
    }
    json.end();
    json.end();
}

void put_layer(JsonWriter& json, const LayerHealth& row, bool twin) {
    json.begin_object();
    if (row.layer) {
        json.field("layer", *row.layer);
    }
    json.field("tensors", row.tensors);
    json.field("nonfinite", row.nonfinite);
    json.field("brick", row.brick);
    put_figure(json, "rms", row.rms);
    put_figure(json, "l2", row.l2);
    put_figure(json, "growth", row.growth);
    put_number(json, "largest", row.largest);
    json.field("largest_brick", row.largest_brick);
    put_figure(json, "saturation", row.saturation);
    json.field("saturated_brick", row.saturated_brick);
    if (twin) {
        put_figure(json, "relative_error", row.relative_error);
        put_figure(json, "cosine", row.cosine);
        put_figure(json, "signal_to_noise_db", row.signal_to_noise_db);
    }
    json.end();
}

} // namespace

std::string render_json(const HealthReport& report) {
    const bool twin = !report.twin.empty();
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.health/1");
    json.field("finite", report.finite());
    json.field("path", report.path);
    json.field("twin", report.twin);
    json.field("tensors", report.tensors);
    json.field("steps", report.steps);
    json.field("nonfinite", report.nonfinite);
    json.field("looked_at", report.looked_at);
    if (report.first_nonfinite) {
        put_first(json, *report.first_nonfinite);
    }
    json.key("layers");
    json.begin_array();
    for (const LayerHealth& row : report.layers) {
        put_layer(json, row, twin);
    }
    json.end();
    put_figure(json, "residual_growth", report.residual_growth);
    json.key("findings");
    json.begin_array();
    for (const std::string& finding : report.findings) {
        json.value(finding);
    }
    json.end();
    if (twin) {
        json.field("compared", report.compared);
        json.field("twin_nonfinite", report.twin_nonfinite);
        json.key("worst");
        json.begin_array();
        for (const TensorPair& pair : report.worst) {
            json.begin_object();
            put_pair(json, pair);
            json.end();
        }
        json.end();
    }
    put_notes(json, report.notes);
    json.end();
    out += '\n';
    return out;
}

} // namespace plumb

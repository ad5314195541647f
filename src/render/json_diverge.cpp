// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "render/json_figure.hpp"
#include "render/numerics_words.hpp"

namespace plumb {

namespace {

using namespace render;
using base::JsonWriter;

void put_first(JsonWriter& json, const FirstDivergence& first) {
    json.key("first");
    json.begin_object();
    put_pair(json, first.tensor);
    json.field("inputs", input_word(first.inputs));
    json.key("input_tensors");
    json.begin_array();
    for (const TensorPair& input : first.input_tensors) {
        json.begin_object();
        put_pair(json, input);
        json.end();
    }
    json.end();
    if (first.preceded_by) {
        json.key("preceded_by");
        json.begin_object();
        put_place(json, *first.preceded_by);
        json.end();
    }
    if (first.token_a && first.token_b) {
        json.field("token_a", *first.token_a);
        json.field("token_b", *first.token_b);
    }
    json.end();
}

void put_flips(JsonWriter& json, const DivergeReport& report) {
    json.field("flip_count", report.flip_count);
    json.key("flips");
    json.begin_array();
    for (const TokenFlip& flip : report.flips) {
        json.begin_object();
        put_place(json, flip.place);
        json.field("token_a", flip.token_a);
        json.field("token_b", flip.token_b);
        put_number(json, "margin_a", flip.margin_a);
        put_number(json, "margin_b", flip.margin_b);
        json.end();
    }
    json.end();
}

void put_count(JsonWriter& json, const char* name, const MissingCount& count) {
    json.key(name);
    json.begin_object();
    json.field("tensors", count.tensors);
    json.field("steps", count.steps);
    json.field("step_tensors", count.step_tensors);
    json.end();
}

void put_missing(JsonWriter& json, const DivergeReport& report) {
    put_count(json, "only_in_a", report.only_in_a);
    put_count(json, "only_in_b", report.only_in_b);
    json.key("missing");
    json.begin_array();
    for (const MissingTensor& missing : report.missing) {
        json.begin_object();
        json.field("only_in", missing.only_in_a ? "a" : "b");
        json.field("what", missing.place.brick.empty() ? "step" : "tensor");
        put_place(json, missing.place);
        json.end();
    }
    json.end();
}

} // namespace

std::string render_json(const DivergeReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.diverge/1");
    json.field("same", report.same());
    json.field("path_a", report.path_a);
    json.field("path_b", report.path_b);
    json.field("tensors_a", report.tensors_a);
    json.field("tensors_b", report.tensors_b);
    json.field("steps_a", report.steps_a);
    json.field("steps_b", report.steps_b);
    json.field("compared", report.compared);
    json.field("identical", report.identical);
    json.field("divergent", report.divergent);
    json.field("exact", report.exact);
    json.field("tolerance", report.tolerance);
    if (report.tolerance_of) {
        json.field("tolerance_of", dtype_word(*report.tolerance_of));
    }
    if (report.first) {
        put_first(json, *report.first);
    }
    if (report.worst) {
        json.key("worst");
        json.begin_object();
        put_pair(json, *report.worst);
        json.end();
    }
    json.key("layers");
    json.begin_array();
    for (const LayerDistance& layer : report.layers) {
        json.begin_object();
        json.field("layer", layer.layer);
        put_pair(json, layer.tensor);
        json.end();
    }
    json.end();
    put_flips(json, report);
    put_missing(json, report);
    json.field("chunking", report.chunking);
    put_notes(json, report.notes);
    json.end();
    out += '\n';
    return out;
}

} // namespace plumb

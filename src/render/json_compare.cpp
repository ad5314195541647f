// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/compare.hpp"
#include "render/json_figure.hpp"

namespace plumb {

namespace {

using base::JsonWriter;
using render::put_figure;

void put(JsonWriter& json, std::string_view name, const Change& change) {
    json.key(name);
    json.begin_object();
    put_figure(json, "estimate", change.estimate);
    put_figure(json, "low", change.low);
    put_figure(json, "high", change.high);
    json.end();
}

void put(JsonWriter& json, std::string_view name, const std::vector<double>& values) {
    json.key(name);
    json.begin_array();
    for (const double value : values) {
        json.value(value);
    }
    json.end();
}

void put(JsonWriter& json, std::string_view name, const std::vector<std::string>& sentences) {
    json.key(name);
    json.begin_array();
    for (const std::string& sentence : sentences) {
        json.value(sentence);
    }
    json.end();
}

void put_runs(JsonWriter& json, std::string_view name, const std::vector<ComparedRun>& runs) {
    json.key(name);
    json.begin_array();
    for (const ComparedRun& run : runs) {
        json.begin_object();
        json.field("name", run.name);
        json.field("start_realtime_ns", run.start_realtime_ns);
        json.key("conditions");
        json.begin_object();
        for (const auto& [key, value] : run.conditions) {
            json.field(key, value);
        }
        json.end();
        json.end();
    }
    json.end();
}

void put_key(JsonWriter& json, const Comparison& comparison) {
    json.key("key");
    json.begin_array();
    for (const auto& [field, value] : comparison.key) {
        json.begin_object();
        json.field("field", field);
        json.field("value", value);
        json.end();
    }
    json.end();
    json.key("differences");
    json.begin_array();
    for (const KeyDifference& difference : comparison.differences) {
        json.begin_object();
        json.field("field", difference.field);
        json.field("base", difference.base);
        json.field("new", difference.changed);
        json.field("ignored", difference.ignored);
        json.end();
    }
    json.end();
}

template <class Row>
void put_subject(JsonWriter& json, const Row& row) {
    json.field("phase", phase_word(row.phase));
    json.field("subject", subject_word(row.subject));
    if (!row.name.empty()) {
        json.field("name", row.name);
    }
    json.field("device", row.device);
    json.field("statistic", statistic_word(row.statistic));
}

void put_row(JsonWriter& json, const CompareRow& row) {
    json.begin_object();
    put_subject(json, row);
    if (row.subject == CompareSubject::layer) {
        json.field("layer", row.layer);
    }
    if (row.subject == CompareSubject::brick) {
        json.field("category", category_word(row.category));
    }
    json.field("per_replay", row.per_replay);
    put_figure(json, "base_ns", row.base_ns);
    put_figure(json, "new_ns", row.changed_ns);
    put_figure(json, "base_noise", row.base_noise);
    put_figure(json, "new_noise", row.changed_noise);
    put(json, "base_runs_ns", row.base_runs);
    put(json, "new_runs_ns", row.changed_runs);
    put(json, "change", row.change);
    put(json, "own_change", row.own_change);
    json.field("verdict", verdict_word(row.verdict));
    json.field("by_own_change", row.by_own_change);
    if (row.verdict == Verdict::undecided) {
        json.field("reason", row.reason);
    }
    json.end();
}

void put_attribution(JsonWriter& json, const Attribution& attribution) {
    json.begin_object();
    json.field("phase", phase_word(attribution.phase));
    json.field("device", attribution.device);
    json.field("base_ns", attribution.base_ns);
    json.field("new_ns", attribution.changed_ns);
    json.field("change_ns", attribution.change_ns);
    json.key("parts");
    json.begin_array();
    for (const Contribution& part : attribution.parts) {
        json.begin_object();
        json.field("name", part.name);
        json.field("base_ns", part.base_ns);
        json.field("new_ns", part.changed_ns);
        json.field("change_ns", part.change_ns);
        json.end();
    }
    json.end();
    json.end();
}

void put_gate(JsonWriter& json, const GateResult& gate) {
    json.begin_object();
    json.field("gate", gate.gate.text);
    json.field("outcome", gate_word(gate.outcome));
    json.field("sentence", gate.sentence);
    if (gate.change.estimate.value) {
        put(json, "change", gate.change);
    }
    json.end();
}

} // namespace

std::string render_json(const Comparison& comparison) {
    std::string out;
    JsonWriter json(out, 2);
    json.begin_object();
    json.field("schema", "plumb.compare/1");
    json.field("comparable", comparison.comparable);
    json.field("exit_code", exit_code(comparison));
    json.field("same_band", comparison.same_band);
    json.field("false_alarm", comparison.false_alarm);
    json.field("intervals", comparison.rows_corrected_for);
    put_runs(json, "base", comparison.base);
    put_runs(json, "new", comparison.changed);
    put_key(json, comparison);
    json.key("rows");
    json.begin_array();
    for (const CompareRow& row : comparison.rows) {
        put_row(json, row);
    }
    json.end();
    json.key("attributions");
    json.begin_array();
    for (const Attribution& attribution : comparison.attributions) {
        put_attribution(json, attribution);
    }
    json.end();
    json.key("gates");
    json.begin_array();
    for (const GateResult& gate : comparison.gates) {
        put_gate(json, gate);
    }
    json.end();
    put(json, "notes", comparison.notes);
    json.finish();
    out += '\n';
    return out;
}

std::string render_json(const History& history) {
    std::string out;
    JsonWriter json(out, 2);
    json.begin_object();
    json.field("schema", "plumb.history/1");
    put_runs(json, "runs", history.runs);
    json.key("rows");
    json.begin_array();
    for (const HistoryRow& row : history.rows) {
        json.begin_object();
        put_subject(json, row);
        json.key("runs_ns");
        json.begin_array();
        for (const Figure& figure : row.runs_ns) {
            if (figure.value) {
                json.value(*figure.value);
            } else {
                json.null();
            }
        }
        json.end();
        json.end();
    }
    json.end();
    put(json, "notes", history.notes);
    json.finish();
    out += '\n';
    return out;
}

} // namespace plumb

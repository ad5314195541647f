// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/results.hpp"

namespace plumb {

namespace {

using base::JsonWriter;

void put(JsonWriter& json, std::string_view name, const Figure& figure) {
    json.key(name);
    if (figure.value) {
        json.value(*figure.value);
        return;
    }
    json.begin_object();
    json.field("absent", figure.reason);
    json.end();
}

void put_counts(JsonWriter& json, std::string_view name, const char* what, const ReplayRow::Counts& counts) {
    json.key(name);
    json.begin_array();
    for (const auto& [text, count] : counts) {
        json.begin_object();
        json.field(what, text);
        json.field("count", count);
        json.end();
    }
    json.end();
}

void put_life(JsonWriter& json, const ReplayRow& row) {
    json.field("graph", row.key);
    json.field("captures", row.captures);
    json.field("instantiations", row.instantiations);
    json.field("updates", row.updates);
    json.field("uploads", row.uploads);
    json.field("evictions", row.evictions);
    json.field("replays", row.replays);
    json.field("instrumented", row.instrumented);
    json.field("unread", row.unread);
    put_counts(json, "eager_steps", "reason", row.eager_steps);
    json.field("rows_used", row.rows_used);
    json.field("rows_padded", row.rows_padded);
    put(json, "padding_wasted", row.padding_wasted);
}

void put_nodes(JsonWriter& json, const ReplayRow& row) {
    put_counts(json, "nodes", "type", row.nodes);
    put_counts(json, "unattributed", "kernel", row.unattributed);
    json.field("node_checks", row.node_checks);
    json.key("node_changes");
    json.begin_array();
    for (const NodeChange& change : row.node_changes) {
        json.begin_object();
        json.field("kernel", change.kernel);
        json.field("before", change.before);
        json.field("after", change.after);
        json.end();
    }
    json.end();
    json.key("baked_in");
    json.begin_array();
    for (const std::string& found : row.baked_in) {
        json.value(found);
    }
    json.end();
}

void put_times(JsonWriter& json, const ReplayRow& row) {
    json.field("sites", row.sites);
    json.field("sites_timed", row.sites_timed);
    put(json, "device_ns", row.device_ns);
    put(json, "raw_device_ns", row.raw_device_ns);
    put(json, "plain_span_ns", row.plain_span_ns);
    put(json, "capture_ns", row.capture_ns);
    put(json, "instantiate_ns", row.instantiate_ns);
    put(json, "upload_ns", row.upload_ns);
    put(json, "launch_ns", row.launch_ns);
    put(json, "estimated_bytes", row.bytes);
    json.field("twin", row.twin);
    json.field("twin_reason", row.twin_reason);
    put(json, "twin_build_ns", row.twin_build_ns);
    put(json, "twin_estimated_bytes", row.twin_bytes);
    put(json, "site_cost_ns", row.site_cost_ns);
    put(json, "closure_raw", row.closure_raw);
    put(json, "closure", row.closure);
    json.field("sampled_every", row.every);
}

const char* word(NodeCheck check) {
    return check == NodeCheck::agree ? "agree" : check == NodeCheck::differ ? "differ" : "not_compared";
}

} // namespace

std::string render_json(const ReplayReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.replays/1");
    json.field("node_check", word(report.node_check));
    json.key("graphs");
    json.begin_array();
    for (const ReplayRow& row : report.graphs) {
        json.begin_object();
        put_life(json, row);
        put_nodes(json, row);
        put_times(json, row);
        json.end();
    }
    json.end();
    json.key("never_replayed");
    json.begin_object();
    json.key("graphs");
    json.begin_array();
    for (const std::uint64_t key : report.never_replayed) {
        json.value(key);
    }
    json.end();
    put(json, "host_ns", report.never_replayed_ns);
    put(json, "estimated_bytes", report.never_replayed_bytes);
    json.end();
    json.key("notes");
    json.begin_array();
    for (const std::string& note : report.notes) {
        json.value(note);
    }
    json.end();
    json.end();
    out += '\n';
    return out;
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "plumb/execgraph.hpp"

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

void put_layer(JsonWriter& json, std::uint32_t layer) {
    if (layer != no_layer_index) {
        json.field("layer", layer);
    }
}

void put_duration(JsonWriter& json, const GraphNode& node) {
    if (node.timed) {
        json.field("duration_ns", node.duration_ns);
    } else {
        put(json, "duration_ns", Figure{std::nullopt, "it was not timed by itself"});
    }
}

void put_extent(JsonWriter& json, std::string_view name, const std::uint32_t (&extent)[3]) {
    json.key(name);
    json.begin_array();
    for (const std::uint32_t size : extent) {
        json.value(size);
    }
    json.end();
}

void put_shape(JsonWriter& json, const ExecGraph& graph, NodeId id) {
    if (const LaunchShape* launch = graph.launch_of(id); launch != nullptr) {
        put_extent(json, "grid", launch->grid);
        put_extent(json, "block", launch->block);
        json.field("shared_bytes", launch->shared_bytes);
        if (launch->code_hash != 0) {
            json.field("code", base::hex_digits(launch->code_hash));
        }
    }
    if (const TransferShape* transfer = graph.transfer_of(id); transfer != nullptr) {
        if (transfer->source != 0) {
            json.field("source", base::hex_digits(transfer->source));
        }
        if (transfer->target != 0) {
            json.field("target", base::hex_digits(transfer->target));
        }
    }
    if (const TaskShape* task = graph.task_of(id); task != nullptr) {
        json.field("polls", task->polls);
        json.field("yields", task->yields);
    }
}

void put_node_fields(JsonWriter& json, const PathReport& report, NodeId id) {
    const GraphNode& node = report.graph[id];
    json.field("node", id);
    json.field("name", report.graph.name_of(id));
    json.field("kind", node_kind_word(node.kind));
    json.field("device", node.device);
    if (node.track < report.tracks.size()) {
        json.field("track", report.tracks[node.track]);
    }
    put_layer(json, node.layer);
    json.field("begin_ns", node.begin_ns);
    put_duration(json, node);
    put_shape(json, report.graph, id);
}

void put_node(JsonWriter& json, const PathReport& report, NodeId id) {
    json.begin_object();
    put_node_fields(json, report, id);
    json.end();
}

void put_rows(JsonWriter& json, const PathReport& report) {
    json.key("rows");
    json.begin_array();
    for (const PathRow& row : report.rows) {
        json.begin_object();
        json.field("name", row.name);
        json.field("kind", node_kind_word(row.kind));
        json.field("device", row.device);
        json.field("count", row.count);
        json.field("on_path", row.on_path);
        json.field("total_ns", row.total_ns);
        json.field("path_ns", row.path_ns);
        put(json, "gain_ns", row.gain_ns);
        json.field("slack_ns", row.slack_ns);
        json.end();
    }
    json.end();
}

void put_transfers(JsonWriter& json, const PathReport& report) {
    json.key("ping_pong");
    json.begin_array();
    for (const PingPong& found : report.ping_pong) {
        json.begin_object();
        json.field("there", found.there);
        json.field("back", found.back);
        json.field("between_ns", found.between_ns);
        json.end();
    }
    json.end();
    json.field("window_ns", report.window_ns);
}

void put_kernels(JsonWriter& json, const PathReport& report) {
    json.key("slowest_kernels");
    json.begin_array();
    for (const SlowKernel& kernel : report.slowest) {
        json.begin_object();
        put_node_fields(json, report, kernel.node);
        if (!kernel.file.empty()) {
            json.field("file", kernel.file);
        }
        put(json, "roofline_share", kernel.roofline_share);
        json.end();
    }
    json.end();
    json.key("recorded_kernels");
    json.begin_array();
    for (const RecordedKernel& kernel : report.recorded) {
        json.begin_object();
        json.field("name", kernel.name);
        json.field("launches", kernel.launches);
        if (kernel.code_hash != 0) {
            json.field("code", base::hex_digits(kernel.code_hash));
        }
        if (!kernel.file.empty()) {
            json.field("file", kernel.file);
        }
        json.end();
    }
    json.end();
    json.key("kernels");
    json.begin_array();
    for (const KernelRow& row : report.kernels) {
        json.begin_object();
        json.field("name", row.name);
        put_layer(json, row.layer);
        json.field("device_scopes", row.device_scopes);
        put(json, "kernels", row.kernels);
        json.field("in_graphs", row.in_graphs);
        json.end();
    }
    json.end();
}

} // namespace

std::string render_json(const PathReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.path/1");
    json.field("step", report.step);
    json.field("phase", phase_word(report.phase));
    json.field("candidates", report.candidates);
    json.field("path_ns", report.analysis.length_ns);
    json.field("span_ns", report.span_ns);
    json.field("host_ns", report.host_ns);
    json.field("nodes", report.graph.size());
    json.field("edges", report.graph.edges());
    json.field("tokens", report.tokens);
    json.field("launches", report.launches);
    put(json, "launches_per_token", report.launches_per_token);
    json.field("host_launches", report.host_launches);
    put(json, "host_launches_per_token", report.host_launches_per_token);
    json.field("graph_launches", report.graph_launches);
    json.field("graph_kernels", report.graph_kernels);
    put_rows(json, report);
    json.key("path");
    json.begin_array();
    for (const NodeId id : report.analysis.path) {
        put_node(json, report, id);
    }
    json.end();
    put_transfers(json, report);
    put_kernels(json, report);
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

std::string render_csr(const ExecGraph& graph) {
    std::string out;
    JsonWriter json(out);
    const auto numbers = [&json](const char* key, const auto& values) {
        json.key(key);
        json.begin_array();
        for (const auto value : values) {
            json.value(value);
        }
        json.end();
    };
    std::vector<NodeId> rows;
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        rows.push_back(graph.node_of_row(row));
    }
    json.begin_object();
    json.field("schema", "plumb.path_csr/1");
    numbers("offsets", graph.offsets());
    numbers("targets", graph.targets());
    numbers("rows", rows);
    json.key("nodes");
    json.begin_array();
    for (NodeId id = 0; id < graph.size(); ++id) {
        json.begin_object();
        json.field("name", graph.name_of(id));
        json.field("kind", node_kind_word(graph[id].kind));
        json.field("begin_ns", graph[id].begin_ns);
        put_duration(json, graph[id]);
        put_shape(json, graph, id);
        if (graph[id].parent != no_node) {
            json.field("parent", graph[id].parent);
        }
        json.end();
    }
    json.end();
    json.end();
    out += '\n';
    return out;
}

} // namespace plumb

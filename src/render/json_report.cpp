// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/results.hpp"
#include "render/json_peaks.hpp"
#include "render/style.hpp"

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

void put(JsonWriter& json, std::string_view name, const Distribution& time) {
    json.key(name);
    json.begin_object();
    json.field("count", time.count);
    json.field("total_ns", time.total_ns);
    json.field("self_ns", time.self_ns);
    json.field("min_ns", time.min_ns);
    json.field("max_ns", time.max_ns);
    json.field("mean_ns", time.mean_ns);
    json.field("variance_ns2", time.variance_ns2);
    put(json, "p50_ns", time.p50_ns);
    put(json, "p90_ns", time.p90_ns);
    put(json, "p99_ns", time.p99_ns);
    put(json, "p999_ns", time.p999_ns);
    json.end();
}

const char* basis_word(RowBasis basis) {
    return basis == RowBasis::replays ? "replays" : basis == RowBasis::timed_steps ? "timed_steps" : "steps";
}

/// What only rows of devices have: a report of a CPU alone is free of it.
void put_row_device(JsonWriter& json, const Row& row) {
    if (!row.device) {
        return;
    }
    json.key("device");
    json.begin_object();
    json.field("basis", basis_word(row.basis));
    json.field("basis_steps", row.basis_steps);
    json.field("launch_wait", row.launch_wait);
    json.field("below_floor", row.below_floor);
    if (row.may_overlap != 0) {
        json.field("may_overlap", row.may_overlap);
    }
    if (row.cut_by_neighbour != 0) {
        json.field("cut_by_neighbour", row.cut_by_neighbour);
    }
    if (row.basis == RowBasis::replays) {
        json.field("sites", row.sites);
        json.field("sites_timed", row.sites_timed);
        put(json, "raw_sum_per_step_ns", row.raw_sum_per_step_ns);
    }
    json.end();
}

void put_row(JsonWriter& json, const Row& row) {
    json.begin_object();
    json.field("phase", phase_word(row.key.phase));
    json.field("name", row.key.name);
    json.field("category", category_word(row.key.category));
    if (row.key.layer) {
        json.field("layer", *row.key.layer);
    }
    if (row.key.track) {
        json.field("track", *row.key.track);
    }
    if (row.key.graph) {
        json.field("graph", *row.key.graph);
    }
    put(json, "time", row.time);
    json.field("calls_per_step", row.calls_per_step);
    json.field("sum_per_step_ns", row.sum_per_step_ns);
    put(json, "wall_percent", row.wall_share);
    put(json, "gigabytes_per_second", row.gigabytes_per_second);
    put(json, "teraflops", row.teraflops);
    put(json, "bytes_per_call", row.bytes_per_call);
    put(json, "flops_per_call", row.flops_per_call);
    put(json, "elements_per_call", row.elements_per_call);
    json.field("source", row.source);
    json.field("lap", row.lap);
    json.field("parent", row.parent);
    put_row_device(json, row);
    json.key("roofline");
    json.begin_object();
    put(json, "bytes_per_step", row.bytes_per_step);
    render::put_roofline(json, row.roof);
    json.end();
    json.end();
}

void put_rows(JsonWriter& json, std::string_view name, const std::vector<Row>& rows) {
    json.key(name);
    json.begin_array();
    for (const Row& row : rows) {
        put_row(json, row);
    }
    json.end();
}

void put_wall(JsonWriter& json, const WallAccount& wall) {
    json.key("wall");
    json.begin_object();
    json.field("period_ns", wall.period_ns);
    json.field("busy_ns", wall.busy_ns);
    json.field("idle_ns", wall.idle_ns);
    json.field("union_ns", wall.union_ns);
    json.field("sum_ns", wall.sum_ns);
    json.field("overlap_ns", wall.overlap_ns);
    json.field("unattributed_ns", wall.unattributed_ns);
    json.field("lap_union_ns", wall.lap_union_ns);
    json.field("off_cpu_uncertain_ns", wall.off_cpu_uncertain_ns);
    put(json, "coverage", wall.coverage);
    json.end();
}

void put_phase_device(JsonWriter& json, const PhaseSummary& phase) {
    if (phase.sampled_steps != 0 || phase.all_sampled) {
        json.field("sampled_steps", phase.sampled_steps);
        json.field("all_sampled", phase.all_sampled);
    }
    if (!phase.device) {
        return;
    }
    json.key("device");
    json.begin_object();
    json.field("timed_steps", phase.device->steps);
    put(json, "busy_per_step_ns", phase.device->busy_per_step_ns);
    put(json, "idle_per_step_ns", phase.device->idle_per_step_ns);
    put(json, "stretch_per_step_ns", phase.device->stretch_per_step_ns);
    put(json, "coverage_at_least", phase.device->coverage_at_least);
    json.field("replays", phase.device->replays);
    put(json, "in_graph_busy_at_most_per_step_ns", phase.device->in_graph_busy_per_step_ns);
    put(json, "in_graph_idle_per_step_ns", phase.device->in_graph_idle_per_step_ns);
    json.end();
}

void put_phases(JsonWriter& json, const std::vector<PhaseSummary>& phases) {
    json.key("phases");
    json.begin_array();
    for (const PhaseSummary& phase : phases) {
        json.begin_object();
        json.field("phase", phase_word(phase.phase));
        json.field("steps", phase.steps);
        json.field("warmup_steps", phase.warmup_steps);
        json.field("tokens", phase.tokens);
        json.field("prefill_tokens", phase.prefill_tokens);
        json.field("decode_tokens", phase.decode_tokens);
        json.field("sequences", phase.sequences);
        put(json, "tokens_per_second", phase.tokens_per_second);
        put(json, "period", phase.period);
        put(json, "span", phase.span);
        put_wall(json, phase.wall);
        put_phase_device(json, phase);
        render::put_speed_of_light(json, phase.speed_of_light);
        json.end();
    }
    json.end();
}

void put_description(JsonWriter& json, const Report& report) {
    json.key("description");
    json.begin_array();
    for (const auto& [key, text] : report.description) {
        json.begin_object();
        json.field("key", key);
        json.field("value", text);
        json.end();
    }
    json.end();
}

void put_tracks(JsonWriter& json, const std::vector<TrackSummary>& tracks) {
    json.key("tracks");
    json.begin_array();
    for (const TrackSummary& track : tracks) {
        json.begin_object();
        json.field("id", track.id);
        json.field("name", track.name);
        json.field("device", track.device);
        json.field("source", track.source);
        json.field("scopes", track.scopes);
        json.field("total_ns", track.total_ns);
        if (track.sampled_every != 1) {
            json.field("sampled_every", track.sampled_every);
        }
        if (track.graph) {
            json.field("graph", *track.graph);
        }
        json.end();
    }
    json.end();
}

void put_graphs(JsonWriter& json, const Report& report) {
    if (report.graphs.empty()) {
        return;
    }
    put_rows(json, "graph_bricks", report.graph_bricks);
    json.key("graphs");
    json.begin_array();
    for (const GraphSummary& graph : report.graphs) {
        json.begin_object();
        json.field("phase", phase_word(graph.phase));
        json.field("graph", graph.key);
        json.field("source", graph.source);
        json.field("replays", graph.replays);
        json.field("replays_per_step", graph.replays_per_step);
        json.field("sampled_replays", graph.sampled_replays);
        json.field("sites", graph.sites);
        json.field("sites_timed", graph.sites_timed);
        put(json, "sites_ns", graph.sites_ns);
        put(json, "raw_sites_ns", graph.raw_sites_ns);
        put(json, "plain_span_ns", graph.plain_span_ns);
        put(json, "closure_raw", graph.closure_raw);
        put(json, "closure", graph.closure);
        json.key("unattributed");
        json.begin_array();
        for (const auto& [kernel, count] : graph.unattributed) {
            json.begin_object();
            json.field("kernel", kernel);
            json.field("nodes", count);
            json.end();
        }
        json.end();
        json.end();
    }
    json.end();
}

void put_labels(JsonWriter& json, const std::vector<LabelTotal>& labels) {
    json.key("labels");
    json.begin_array();
    for (const LabelTotal& label : labels) {
        json.begin_object();
        json.field("label", label.label);
        json.field("count", label.count);
        json.field("total_ns", label.total_ns);
        json.field("min_ns", label.min_ns);
        json.field("max_ns", label.max_ns);
        json.end();
    }
    json.end();
}

void put_losses(JsonWriter& json, const Report& report) {
    json.key("losses");
    json.begin_array();
    for (const LossRow& loss : report.losses) {
        json.begin_object();
        json.field("reason", loss.reason);
        json.field("count", loss.count);
        json.end();
    }
    json.end();
    json.key("notes");
    json.begin_array();
    for (const std::string& note : report.notes) {
        json.value(note);
    }
    json.end();
}

void put_own_cost(JsonWriter& json, const OwnCost& cost) {
    json.key("own_cost");
    json.begin_object();
    put(json, "scope_ns", cost.scope_ns);
    put(json, "lap_ns", cost.lap_ns);
    put(json, "floor_ns", cost.floor_ns);
    put(json, "drain_cpu_ns", cost.drain_cpu_ns);
    put(json, "percent_of_wall", cost.percent_of_wall);
    json.end();
}

void put_counters(JsonWriter& json, const std::optional<ProcessorCounters>& counters) {
    if (!counters) {
        return;
    }
    json.key("counters");
    json.begin_object();
    put(json, "cycles", counters->cycles);
    put(json, "instructions", counters->instructions);
    put(json, "instructions_per_cycle", counters->instructions_per_cycle);
    put(json, "cache_references", counters->cache_references);
    put(json, "cache_misses", counters->cache_misses);
    put(json, "cache_miss_percent", counters->cache_miss_percent);
    json.end();
}

void put_clock(JsonWriter& json, const ClockQuality& clock) {
    json.key("clock");
    json.begin_object();
    json.field("clock", clock.clock);
    json.field("ticks_per_second", clock.ticks_per_second);
    put(json, "residual_ns", clock.residual_ns);
    json.field("pairs", clock.pairs);
    json.end();
}

} // namespace

std::string render_json(const Report& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.report/1");
    put_description(json, report);
    put_phases(json, report.phases);
    put_rows(json, "bricks", report.bricks);
    put_rows(json, "layers", report.layers);
    put_rows(json, "brick_layers", report.brick_layers);
    put_rows(json, "categories", report.categories);
    put_graphs(json, report);
    put_tracks(json, report.tracks);
    put_labels(json, report.labels);
    put_losses(json, report);
    json.field("scopes", report.scopes);
    json.field("unresolved", report.unresolved);
    put_own_cost(json, report.own_cost);
    put_clock(json, report.clock);
    json.field("sync_mode", report.sync_mode);
    put_counters(json, report.counters);
    json.key("peaks");
    json.begin_array();
    for (const Peaks& peaks : report.peaks) {
        render::put_peaks(json, peaks);
    }
    json.end();
    json.end();
    out += '\n';
    return out;
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/wall.hpp"
#include "render/json_figure.hpp"

namespace plumb {

namespace {

using base::JsonWriter;
using render::put_figure;

void put_idle(JsonWriter& json, const WallIdle& idle) {
    json.key("idle");
    json.begin_object();
    put_figure(json, "total_ns", idle.total);
    put_figure(json, "exposed_launch_ns", idle.exposed_launch);
    put_figure(json, "host_work_ns", idle.host_work);
    put_figure(json, "unknown_ns", idle.unknown);
    put_figure(json, "queued_ns", idle.queued);
    put_figure(json, "unnamed_ns", idle.unnamed);
    put_figure(json, "off_cpu_ns", idle.off_cpu);
    put_figure(json, "for_device_ns", idle.for_device);
    json.key("scopes");
    json.begin_array();
    for (const WallScope& scope : idle.scopes) {
        json.begin_object();
        json.field("name", scope.name);
        json.field("self_ns", scope.self_ns);
        json.field("total_ns", scope.total_ns);
        json.end();
    }
    json.end();
    json.end();
}

void put_lane(JsonWriter& json, const WallLane& lane) {
    json.begin_object();
    json.field("name", lane.name);
    json.field("device", lane.device);
    json.field("tracks", lane.tracks);
    json.field("steps", lane.steps);
    json.field("period_ns", lane.period_ns);
    put_figure(json, "busy_ns", lane.busy_ns);
    put_figure(json, "busy_sum_ns", lane.busy_sum_ns);
    put_figure(json, "launch_wait_ns", lane.launch_wait_ns);
    json.field("bricks_ns", lane.bricks_ns);
    json.field("bricks_sum_ns", lane.bricks_sum_ns);
    json.field("overlap_ns", lane.overlap_ns);
    json.field("laps_ns", lane.laps_ns);
    put_figure(json, "unattributed_ns", lane.unattributed_ns);
    put_figure(json, "coverage", lane.coverage);
    put_idle(json, lane.idle);
    put_figure(json, "host_waits_ns", lane.host_waits_ns);
    json.end();
}

void put_gains(JsonWriter& json, const WallPhase& phase) {
    json.key("gains");
    json.begin_array();
    for (const WallGain& gain : phase.gains) {
        json.begin_object();
        json.field("what", gain.what);
        json.field("at_most_ns", gain.at_most_ns);
        json.field("share", gain.share);
        put_figure(json, "tokens_per_second", gain.tokens_per_second);
        json.end();
    }
    json.end();
}

/// The fields of an object that the caller began and ends.
void put_phase(JsonWriter& json, const WallPhase& phase) {
    json.field("phase", phase_word(phase.phase));
    json.field("steps", phase.steps);
    json.field("tokens", phase.tokens);
    json.field("period_ns", phase.period_ns);
    json.field("bound", wall_bound_word(phase.bound));
    json.field("reason", phase.reason);
    json.key("lanes");
    json.begin_array();
    for (const WallLane& lane : phase.lanes) {
        put_lane(json, lane);
    }
    json.end();
    put_gains(json, phase);
    put_figure(json, "own_cost_ns", phase.own_cost_ns);
    put_figure(json, "in_graph_busy_ns", phase.in_graph_busy_ns);
    json.key("unattributed");
    json.begin_array();
    for (const auto& [kernel, count] : phase.unattributed) {
        json.begin_object();
        json.field("kernel", kernel);
        json.field("count", count);
        json.end();
    }
    json.end();
}

void put_own_cost(JsonWriter& json, const OwnCost& cost) {
    json.key("own_cost");
    json.begin_object();
    put_figure(json, "scope_ns", cost.scope_ns);
    put_figure(json, "lap_ns", cost.lap_ns);
    put_figure(json, "drain_cpu_ns", cost.drain_cpu_ns);
    put_figure(json, "percent_of_wall", cost.percent_of_wall);
    json.end();
}

} // namespace

std::string render_json(const WallReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.wall/1");
    if (report.step) {
        json.field("step", *report.step);
    }
    json.key("phases");
    json.begin_array();
    for (const WallPhase& phase : report.phases) {
        json.begin_object();
        put_phase(json, phase);
        json.end();
    }
    json.end();
    json.key("slowest");
    json.begin_array();
    for (const WallStep& slow : report.slowest) {
        json.begin_object();
        json.field("step", slow.step);
        put_phase(json, slow.account);
        json.end();
    }
    json.end();
    put_own_cost(json, report.own_cost);
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

// SPDX-License-Identifier: Apache-2.0
#include "analysis/replay_builder.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/device_account.hpp"
#include "analysis/loss_note.hpp"
#include "base/layout.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

constexpr std::size_t most_launched_keys = 65536;

Figure known(double value, const char* otherwise = "not measured in this run") {
    return std::isfinite(value) ? stats::measured(value) : stats::absent(otherwise);
}

} // namespace

void ReplayReader::consume(const resolve::ResolvedBatch& batch) {
    for (const resolve::Submission& submission : batch.submissions) {
        if (submission.graph && !submission.linked()) {
            launched(submission);
        }
    }
    const std::uint32_t graph = graphs_.of_track(batch.track->info.id);
    if (graph == GraphTable::none) {
        return;
    }
    for (resolve::Sample sample : batch.samples) {
        if (graph == GraphTable::former) {
            graphs_.left_out(batch.track->info.id);
        }
        if (sample.warmup || graph == GraphTable::former) {
            continue;
        }
        sample.phase = Phase::none; // a graph has no phase
        sample.leaf = graphs_.is_leaf(graph, sample);
        graphs_.add(graph, 0, sample);
    }
}

ReplayReport ReplayReader::take() {
    ReplayReport report;
    report.notes = facts_.notes;
    for (std::uint32_t i = 0; i < graphs_.size(); ++i) {
        if (const recording::GraphInfo* info = graphs_.info_of(i); info != nullptr) {
            report.graphs.push_back(row_of(i, *info));
        }
    }
    std::sort(report.graphs.begin(), report.graphs.end(),
              [](const ReplayRow& a, const ReplayRow& b) { return a.key < b.key; });
    check_nodes(report);
    add_never_replayed(report);
    add_notes(report);
    add_loss_note(lost_of(facts_), report.notes);
    return report;
}

void ReplayReader::launched(resolve::Submission launch) {
    launch.phase = Phase::none;
    graphs_.launched(launch);
    const auto found = launches_.find(launch.key);
    if (found == launches_.end() && launches_.size() >= most_launched_keys) {
        return;
    }
    Launches& counts = launches_[launch.key];
    ++counts.all;
    counts.instrumented += (launch.flags & launch_instrumented) != 0 ? 1 : 0;
}

ReplayRow ReplayReader::row_of(std::uint32_t graph, const recording::GraphInfo& info) const {
    ReplayRow row;
    row.key = info.key;
    row.captures = info.captures;
    row.instantiations = info.instantiations;
    row.updates = info.updates;
    row.uploads = info.uploads;
    row.evictions = info.evictions;
    // The rows are written now and then: of a run that was cut short the launches themselves know more.
    const auto counted = launches_.find(info.key);
    const Launches seen = counted == launches_.end() ? Launches{} : counted->second;
    row.replays = std::max(info.replays, seen.all);
    row.instrumented = std::max(info.instrumented, seen.instrumented);
    row.unread = info.unread;
    row.eager_steps = info.eager_steps;
    row.rows_used = info.rows_used;
    row.rows_padded = info.rows_padded;
    row.replays_of_rows = info.replays;
    row.padding_wasted =
        info.rows_padded == 0 ? stats::absent("the engine did not say how many rows it padded")
        : info.rows_used > info.rows_padded
            ? stats::absent("the engine said that more rows carried work than were replayed")
            : stats::measured(1 - static_cast<double>(info.rows_used) / static_cast<double>(info.rows_padded));
    row.nodes = info.nodes;
    row.unattributed = info.unattributed;
    row.node_checks = info.node_checks;
    for (const recording::GraphNodeChange& change : info.node_changes) {
        row.node_changes.push_back({change.kernel, change.before, change.after});
    }
    row.baked_in = info.baked_in;
    add_costs(row, info);
    add_device_time(row, graph);
    return row;
}

void ReplayReader::add_device_time(ReplayRow& row, std::uint32_t graph) const {
    const GraphTable::Rate rate = graphs_.per_replay(graph, Phase::none);
    row.sites = rate.sites;
    row.sites_timed = rate.sites_timed;
    row.raw_device_ns = rate.raw_ns;
    if (rate.sites_timed != 0) {
        row.device_ns = stats::measured(rate.sum_per_step_ns);
    } else {
        const bool no_twin = row.twin.empty() && !row.twin_reason.empty(); // then nobody may have looked for scopes
        row.device_ns = stats::absent(row.replays == 0 ? "it was never replayed"
                                      : no_twin ? "no replay was sampled, for there is no twin: " + row.twin_reason
                                      : rate.sites == 0 ? "no scope was recorded while it was captured"
                                                        : "no replay was sampled");
    }
}

void ReplayReader::add_costs(ReplayRow& row, const recording::GraphInfo& info) {
    row.plain_span_ns = known(info.plain_span_ns);
    row.capture_ns = known(info.capture_ns);
    row.instantiate_ns = known(info.instantiate_ns);
    row.upload_ns = known(info.upload_ns);
    row.launch_ns = known(info.launch_ns);
    row.launches_timed = row.launch_ns.value ? info.replays : 0;
    row.bytes = known(info.bytes, "not estimated");
    row.twin = info.twin;
    row.twin_reason = info.twin_reason;
    row.sites_told_by = info.sites_told_by;
    const char* no_twin = info.twin.empty() ? "there is no twin" : "not measured in this run";
    row.twin_build_ns = known(info.twin_build_ns, no_twin);
    row.twin_bytes = known(info.twin_bytes, info.twin.empty()            ? no_twin
                                            : !std::isfinite(info.bytes) ? "not estimated"
                                                                         : "the twin was given up, or went with its "
                                                                           "graph");
    row.tick_ns = known(info.tick_ns, no_twin);
    row.site_cost_ns = known(info.site_cost_ns, "not calibrated, or its readings lie too far apart");
    row.site_cost_error_ns = known(info.site_cost_error_ns, "not calibrated, or its readings lie too far apart");
    row.closure_raw = known(info.closure_raw, "not all of it was sampled");
    row.closure = known(info.closure, "not all of it was sampled, or the cost of a stamp is not known");
    row.every = info.every;
}

void ReplayReader::check_nodes(ReplayReport& report) {
    for (const ReplayRow& row : report.graphs) {
        report.baked_in = report.baked_in || !row.baked_in.empty();
        if (!row.node_changes.empty()) {
            report.node_check = NodeCheck::differ;
        } else if (row.node_checks != 0 && report.node_check == NodeCheck::not_compared) {
            report.node_check = NodeCheck::agree;
        }
    }
}

void ReplayReader::add_never_replayed(ReplayReport& report) {
    double ns = 0;
    double bytes = 0;
    bool any_ns = false;
    bool any_bytes = false;
    for (const ReplayRow& row : report.graphs) {
        if (row.replays != 0 || row.captures == 0) {
            continue;
        }
        report.never_replayed.push_back(row.key);
        for (const Figure* part : {&row.capture_ns, &row.instantiate_ns, &row.upload_ns}) {
            any_ns = any_ns || part->value.has_value();
            ns += part->value.value_or(0);
        }
        any_bytes = any_bytes || row.bytes.value.has_value();
        bytes += row.bytes.value.value_or(0);
    }
    const char* none = report.never_replayed.empty() ? "every captured graph was replayed" : "not measured in this run";
    report.never_replayed_ns = any_ns ? stats::measured(ns) : stats::absent(none);
    report.never_replayed_bytes = any_bytes ? stats::measured(bytes) : stats::absent(none);
}

void ReplayReader::add_notes(ReplayReport& report) const {
    for (const auto& [key, counts] : launches_) {
        const bool described = std::any_of(report.graphs.begin(), report.graphs.end(),
                                           [key = key](const ReplayRow& row) { return row.key == key; });
        if (!described) {
            report.notes.push_back("Graph " + std::to_string(key) + " was launched " + std::to_string(counts.all) +
                                   " times, but its life-cycle row is not in the recording.");
        }
    }
    if (report.graphs.empty() && launches_.empty()) {
        report.notes.push_back("No captured graph is in this recording: graph_captured() of the profiler or "
                               "CudaGraphCache puts them there.");
    }
    for (std::string& sentence : left_out_notes(graphs_)) {
        report.notes.push_back(std::move(sentence));
    }
}

Result<ReplayReport> build_replays(const recording::RecordedRun& run) {
    ReplayReader reader(*run.facts);
    if (Status read = read::read(run, {&reader}); !read.ok()) {
        return read.error();
    }
    return reader.take();
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_builder.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/imported_words.hpp"
#include "analysis/loss_note.hpp"
#include "analysis/no_step.hpp"
#include "analysis/wall_verdict.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using stats::absent;
using stats::measured;

constexpr const char* in_graphs =
    "captured graphs ran in steps of this phase, and when the device was idle inside of them only kernel records could tell";
constexpr const char* gapless =
    "captured graphs ran in steps of this phase, and the gaps between their operations lie inside of durations";
constexpr const char* no_waits = "the trace holds no call in which a thread that launches waits for the device";
constexpr const char* not_timed = "the device was not timed in these steps";
constexpr const char* no_launch = "no launch was recorded, so it is not known which threads feed the device";
constexpr const char* of_devices = "only of a device";
constexpr const char* of_the_host = "only of the host";

} // namespace

WallReader::WallReader(const recording::RunFacts& facts, const WallOptions& options, ReportReader& report)
    : facts_(facts), options_(options), report_(report), number_(report.ask({})),
      any_queue_(std::any_of(facts.tracks.begin(), facts.tracks.end(),
                             [](const auto& track) { return track.kind != recording::TrackKind::host_thread; })),
      imported_(is_imported(facts.tracks)), names_(facts.names), lanes_(launches_, facts.metadata.clocks, options_) {
    report.observe(lanes_);
}

/// Without queues there is nothing to launch.
bool WallReader::looks_at(const recording::TrackInfo& track) const {
    return any_queue_ && track.kind != recording::TrackKind::captured_graph;
}

void WallReader::set_idle_absent(WallLane& made, const std::string& reason) {
    for (Figure* figure : {&made.idle.total, &made.idle.exposed_launch, &made.idle.host_work, &made.idle.unknown,
                           &made.idle.queued, &made.idle.unnamed, &made.idle.off_cpu, &made.host_waits_ns}) {
        *figure = absent(reason);
    }
    made.idle.for_device = absent(of_the_host);
}

void WallReader::set_idle(WallLane& made, const WallLanes::Lane& lane, const LaneSums& sums) const {
    const auto figure = [](std::int64_t ns) {
        return measured(static_cast<double>(ns));
    };
    made.idle.total = figure(sums.period - sums.busy);
    if (made.device) {
        made.idle.exposed_launch = figure(sums.exposed);
        made.idle.host_work = figure(sums.host);
        made.idle.unknown = figure(sums.queued + sums.unnamed + sums.off_cpu);
        made.idle.queued = figure(sums.queued);
        made.idle.unnamed = figure(sums.unnamed);
        made.idle.off_cpu = figure(sums.off_cpu);
        made.idle.for_device = absent(of_the_host);
        made.host_waits_ns = !lane.fed                            ? absent(no_launch)
                             : imported_ && !lanes_.waits_known() ? absent(no_waits)
                                                                  : figure(sums.host_waits);
    } else {
        set_idle_absent(made, of_devices);
        made.idle.total = figure(sums.period - sums.busy);
        made.idle.unknown = figure(sums.waiting);
        made.idle.off_cpu = figure(sums.waiting);
        made.idle.for_device = figure(sums.for_device);
    }
    for (const auto& [name, scope] : sums.scopes) {
        made.idle.scopes.push_back(
            {names_.text(name), static_cast<double>(scope.self), static_cast<double>(scope.total)});
    }
    for (const auto& [name, ns] : {std::pair("code between calls", sums.between_calls),
                                   std::pair("calls that wait for the device", sums.in_waits)}) {
        if (ns != 0) {
            made.idle.scopes.push_back({name, static_cast<double>(ns), static_cast<double>(ns)});
        }
    }
    std::stable_sort(made.idle.scopes.begin(), made.idle.scopes.end(), [](const WallScope& a, const WallScope& b) {
        return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.total_ns > b.total_ns;
    });
}

WallLane WallReader::lane_of(const WallLanes::Lane& lane, const LaneSums& sums, Phase phase) const {
    WallLane made;
    made.name = lane.name;
    made.device = lane.device;
    made.tracks = lane.tracks;
    made.steps = sums.steps;
    made.period_ns = static_cast<double>(sums.period);
    made.launch_wait_ns = lane.device ? measured(static_cast<double>(sums.launch_wait)) : absent(of_devices);
    const bool graphs = lane.device && launches_.graphs[static_cast<std::size_t>(phase)];
    const char* const hidden = launches_.gapless[static_cast<std::size_t>(phase)] ? gapless : in_graphs;
    std::string nothing;
    if (sums.steps == 0) {
        nothing = options_.step ? "its queues were not timed in this step" : "its queues were timed in no counted step";
    } else if (graphs && sums.busy == 0) {
        nothing = hidden;
    }
    if (!nothing.empty()) {
        made.busy_ns = made.busy_sum_ns = made.unattributed_ns = made.coverage = made.launch_wait_ns = absent(nothing);
        set_idle_absent(made, nothing);
        return made;
    }
    made.busy_ns = measured(static_cast<double>(sums.busy));
    made.busy_sum_ns = measured(static_cast<double>(sums.busy_sum));
    made.bricks_ns = static_cast<double>(sums.bricks);
    made.bricks_sum_ns = static_cast<double>(sums.bricks_sum);
    made.overlap_ns = static_cast<double>(sums.bricks_sum - sums.bricks);
    made.laps_ns = static_cast<double>(sums.laps);
    made.off_cpu_uncertain_ns = static_cast<double>(sums.uncertain);
    made.unattributed_ns = measured(static_cast<double>(sums.busy - sums.bricks));
    made.coverage = sums.busy > 0 ? measured(made.bricks_ns / static_cast<double>(sums.busy))
                                  : absent(lane.device ? "the device was never busy" : "no thread was seen on the CPU");
    set_idle(made, lane, sums);
    if (graphs) {
        set_idle_absent(made, hidden);
        made.idle.scopes.clear();
    }
    return made;
}

void WallReader::add_from_report(WallPhase& made, const WallLanes::Sums& sums, const Report& report) const {
    const OwnCost& cost = report.own_cost;
    if (!cost.scope_ns.value || (!cost.lap_ns.value && sums.laps != 0)) {
        made.own_cost_ns = absent(imported_ ? cost_of_another_tool : no_price);
    } else if (report_.records_missing()) {
        made.own_cost_ns = absent(cost_of_missing);
    } else if (sums.steps == 0) {
        made.own_cost_ns = absent("no counted step");
    } else {
        made.own_cost_ns = measured((static_cast<double>(sums.scopes) * *cost.scope_ns.value +
                                     static_cast<double>(sums.laps) * cost.lap_ns.value.value_or(0)) /
                                    static_cast<double>(sums.steps));
    }
    made.in_graph_busy_ns = absent("no captured graph was replayed");
    if (!options_.step) {
        for (const PhaseSummary& summary : report.phases) {
            if (summary.phase == made.phase && summary.device) {
                made.in_graph_busy_ns = summary.device->in_graph_busy_per_step_ns;
            }
        }
    } else if (launches_.graphs[static_cast<std::size_t>(made.phase)]) {
        made.in_graph_busy_ns = absent("known for the steps of a phase together only");
    }
    std::map<std::string, std::uint64_t> kernels;
    std::set<std::uint64_t> seen;
    for (const GraphSummary& graph : report.graphs) {
        if (graph.phase != made.phase || !seen.insert(graph.key).second) {
            continue;
        }
        for (const auto& [kernel, count] : graph.unattributed) {
            kernels[kernel] += count;
        }
    }
    made.unattributed.assign(kernels.begin(), kernels.end());
    std::stable_sort(made.unattributed.begin(), made.unattributed.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
}

WallPhase WallReader::phase_of(const WallLanes::Sums& sums, Phase phase) const {
    WallPhase made;
    made.phase = phase;
    made.steps = sums.steps;
    made.tokens = sums.without_tokens == 0 ? sums.tokens : 0; // of a part of the steps they make no rate
    made.tokens_per_second = sums.steps == 0 ? absent("no counted step")
                                             : token_rate(sums.tokens, sums.steps, sums.without_tokens, sums.period,
                                                          report_.crossed_words(phase));
    made.period_ns = static_cast<double>(sums.period);
    for (std::size_t i = 0; i < lanes_.lanes().size(); ++i) {
        made.lanes.push_back(lane_of(lanes_.lanes()[i], sums.lanes[i], phase));
    }
    if (made.lanes.size() > 1 && sums.untimed != 0) {
        made.lanes[0].idle.for_device = made.lanes[0].idle.unknown = made.lanes[0].idle.off_cpu = absent(not_timed);
    }
    return made;
}

Error WallReader::no_such_step(const Report& report) const {
    if (!lanes_.step_ids()) {
        return {ErrorCode::not_found, no_step_};
    }
    if (lanes_.incomplete() != 0) {
        return {ErrorCode::unsupported, "the steps asked for hold more than 4 million intervals with their neighbours; "
                                        "record fewer scopes in a step, or ask plumb report"};
    }
    const auto is_asked_for = [this](const PhaseSummary& summary) {
        return summary.phase == *options_.phase;
    };
    if (options_.phase && std::none_of(report.phases.begin(), report.phases.end(), is_asked_for)) {
        return {ErrorCode::not_found, no_step_of(*options_.phase) + "; take another --phase, or leave it out"};
    }
    if (!options_.step) {
        return {ErrorCode::not_found, "no step of this recording counts here (all are warm-up or sampled); record a "
                                      "longer run, or name one with --step"};
    }
    const auto& [least, most] = *lanes_.step_ids();
    return {ErrorCode::not_found, "there is no complete step " + std::to_string(*options_.step) +
                                      " in this recording; its steps are " + std::to_string(least) + " to " +
                                      std::to_string(most)};
}

Result<WallReport> WallReader::take() {
    Report report = report_.take(number_);
    WallReport wall;
    wall.step = options_.step;
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed, Phase::none}) {
        const WallLanes::Sums& sums = lanes_.of(phase);
        const bool any =
            std::any_of(sums.lanes.begin(), sums.lanes.end(), [](const LaneSums& lane) { return lane.steps != 0; });
        if (!any) {
            continue;
        }
        WallPhase& made = wall.phases.emplace_back(phase_of(sums, phase));
        add_from_report(made, sums, report);
        made.off_cpu = std::move(off_cpu_[static_cast<std::size_t>(phase)]);
        judge(made);
    }
    if (wall.phases.empty()) {
        return no_such_step(report);
    }
    for (const WallLanes::OneStep& one : lanes_.take_slowest()) {
        WallStep& step = wall.slowest.emplace_back(WallStep{one.step.id, phase_of(one.sums, one.step.phase)});
        step.account.own_cost_ns = absent("counted for all steps together only");
        step.account.in_graph_busy_ns = absent("known for the steps of a phase together only");
        judge(step.account);
    }
    wall.off_cpu_intervals = std::move(intervals_);
    wall.own_cost = std::move(report.own_cost);
    wall.notes = std::move(report.notes);
    add_loss_note(lost_of(report.losses), wall.notes);
    for (std::string& sentence : lanes_.notes()) {
        wall.notes.push_back(std::move(sentence));
    }
    return wall;
}

Result<WallReport> build_wall(const recording::RecordedRun& run, const WallOptions& options) {
    ReportReader report(*run.facts);
    WallReader wall(*run.facts, options, report);
    if (Status read = read::read(run, {&wall, &report}); !read.ok()) {
        return read.error();
    }
    return wall.take();
}

} // namespace plumb::analysis

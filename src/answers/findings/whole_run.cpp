// SPDX-License-Identifier: Apache-2.0
// What steps differ in from each other, and what recording them cost: captured graphs, warm-up, own cost.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "answers/findings/detect.hpp"
#include "stats/median.hpp"
#include "stats/moments.hpp"

namespace plumb::findings {
namespace {

struct Padding {
    const ReplayRow* graph = nullptr;
    double span_ns = 0, rows = 0; // of one replay
    double per_step = 0;          // replays
    double at_most_ns = 0;        // per step
};

std::vector<Padding> padded_graphs(const FoundInPhase& found) {
    std::vector<Padding> all;
    for (const ReplayRow& graph : found.run.replays.graphs) {
        const Figure& span = graph.plain_span_ns.value ? graph.plain_span_ns : graph.device_ns;
        for (const GraphSummary& summary : found.run.report.graphs) {
            if (summary.key == graph.key && summary.phase == found.phase && span.value && graph.padding_wasted.value &&
                graph.replays_of_rows != 0) {
                all.push_back({&graph, *span.value,
                               static_cast<double>(graph.rows_padded) / static_cast<double>(graph.replays_of_rows),
                               summary.replays_per_step,
                               *graph.padding_wasted.value * *span.value * summary.replays_per_step});
                break;
            }
        }
    }
    return all;
}

/// What one row more takes, as graphs of other sizes tell; absent: there is one size only.
std::optional<double> cost_of_row(const std::vector<Padding>& graphs) {
    const auto [least, most] = std::minmax_element(graphs.begin(), graphs.end(),
                                                   [](const Padding& a, const Padding& b) { return a.rows < b.rows; });
    if (graphs.empty() || !(most->rows > least->rows)) {
        return std::nullopt;
    }
    return std::max(0.0, (most->span_ns - least->span_ns) / (most->rows - least->rows));
}

void find_padding(FoundInPhase& found) {
    std::vector<Padding> graphs = padded_graphs(found);
    if (graphs.empty()) {
        if (!found.run.replays.graphs.empty()) {
            found.cannot(FindingKind::padding, "no graph has both a known span and rows that were counted");
        }
        return;
    }
    const std::optional<double> row_ns = cost_of_row(graphs);
    Finding finding;
    finding.kind = FindingKind::padding;
    const Padding* worst = &graphs.front();
    for (const Padding& one : graphs) {
        const double wasted_rows = *one.graph->padding_wasted.value * one.rows;
        finding.at_most_ns += one.at_most_ns;
        finding.likely_ns += row_ns ? std::min(one.at_most_ns, wasted_rows * *row_ns * one.per_step) : one.at_most_ns;
        worst = one.at_most_ns > worst->at_most_ns ? &one : worst;
    }
    finding.subject = "graph " + std::to_string(worst->graph->key);
    const double wasted = *worst->graph->padding_wasted.value;
    finding.claim = percent(wasted) + " of the rows that " + finding.subject + " computes are padding.";
    finding.evidence.push_back(
        {"plumb replays", finding.subject + ", rows that were padding", {100 * wasted, {}}, "%"});
    finding.evidence.push_back({"plumb replays", finding.subject + ", one replay", {worst->span_ns / 1e3, {}}, "us"});
    if (row_ns) {
        finding.evidence.push_back(
            {"plumb replays", "one row more, by graphs of other sizes", {*row_ns / 1e3, {}}, "us"});
    }
    finding.refuted_by = "a graph captured for the rows that there are, whose replay takes as long";
    found.add(std::move(finding), row_ns ? Sureness::likely : Sureness::possible,
              row_ns ? "what a row takes is compared between graphs of two sizes"
                     : "how much of a replay depends on its rows is not known: there is one size only",
              found.wall.steps);
}

void find_eager_steps(FoundInPhase& found) {
    double eager_ns = 0, replayed_ns = 0, fastest = std::numeric_limits<double>::max();
    std::uint64_t eager = 0, replayed = 0;
    for (const StepWatch::Step& step : found.run.steps) {
        if (step.phase != found.phase || !step.counted) {
            continue;
        }
        (step.replayed ? replayed_ns : eager_ns) += step.period_ns;
        ++(step.replayed ? replayed : eager);
        fastest = step.replayed ? std::min(fastest, step.period_ns) : fastest;
    }
    if (replayed == 0 || eager == 0) {
        return;
    }
    const auto counted = static_cast<double>(eager + replayed);
    const double mean_eager = eager_ns / static_cast<double>(eager), mean = replayed_ns / static_cast<double>(replayed);
    Finding finding;
    finding.kind = FindingKind::eager_steps;
    finding.likely_ns = (mean_eager - mean) * static_cast<double>(eager) / counted;
    finding.at_most_ns = (eager_ns - fastest * static_cast<double>(eager)) / counted;
    finding.claim = std::to_string(eager) + " of " + std::to_string(eager + replayed) +
                    " steps ran without a graph and took " + page::fixed(mean_eager / mean, 2) + " times as long.";
    finding.evidence.push_back({"plumb replays", "a step without a graph, mean", {mean_eager / 1e3, {}}, "us"});
    finding.evidence.push_back({"plumb replays", "a step with one, mean", {mean / 1e3, {}}, "us"});
    for (const ReplayRow& graph : found.run.replays.graphs) {
        for (const auto& [reason, count] : graph.eager_steps) {
            finding.evidence.push_back({"plumb replays",
                                        "graph " + std::to_string(graph.key) + ", eager steps: " + reason,
                                        {static_cast<double>(count), {}},
                                        "steps"});
        }
    }
    finding.refuted_by = "steps without a graph that had more to do, such as rows or shapes that no graph fits";
    found.add(std::move(finding), Sureness::likely, "steps that differ in this may differ in other things",
              std::min(eager, replayed), many_steps / 3);
}

using StepPointers = std::vector<const StepWatch::Step*>;

/// Those of as many tokens as most of the later half of the counted ones.
StepPointers steps_of_like_tokens(const FoundInPhase& found) {
    StepPointers counted, like;
    for (const StepWatch::Step& step : found.run.steps) {
        if (step.phase == found.phase && step.counted) {
            counted.push_back(&step);
        }
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> later; // by tokens
    const StepWatch::Step* usual = nullptr;
    std::size_t most = 0;
    for (std::size_t i = counted.size() / 2; i < counted.size(); ++i) {
        const std::size_t steps = ++later[{counted[i]->prefill_tokens, counted[i]->decode_tokens}];
        usual = steps > most ? counted[i] : usual;
        most = std::max(most, steps);
    }
    for (const StepWatch::Step& step : found.run.steps) {
        if (step.phase == found.phase && usual != nullptr && step.like(*usual)) {
            like.push_back(&step);
        }
    }
    return like;
}

} // namespace

void find_graph_waste(FoundInPhase& found) {
    find_padding(found);
    find_eager_steps(found);
}

void find_slow_warm_up(FoundInPhase& found) {
    constexpr std::size_t least_steps = 16;
    constexpr double slower = 1.03;              // than the median of the later steps, or than 95 % of them
    constexpr std::size_t calm = 3;              // steps in a row that are not, and it is over
    constexpr double least_steps_lost = 1.5;     // as many later steps must it cost in all
    std::vector<double> periods, counted, whole; // of the counted ones, with time off the CPU
    std::size_t set_aside = 0;
    // Without devices a stall of the host is a finding of its own; with them the host waits for them off the CPU.
    const bool no_device = found.wall.bound == WallBound::no_device;
    for (const StepWatch::Step* step : steps_of_like_tokens(found)) {
        set_aside = step->warmup ? periods.size() + 1 : set_aside;
        periods.push_back(step->period_ns - (no_device ? std::min(step->off_cpu_ns, step->period_ns) : 0));
        if (step->counted) {
            counted.push_back(periods.back());
            whole.push_back(step->period_ns);
        }
    }
    if (counted.size() < least_steps) {
        found.cannot(FindingKind::slow_warm_up, "fewer than 16 steps of as many tokens were counted");
        return;
    }
    const std::string of_tokens =
        static_cast<double>(periods.size()) < found.all_steps() ? ", of those of as many tokens," : "";
    const double fastest = *std::min_element(counted.begin(), counted.end());
    std::vector<double> later(counted.begin() + static_cast<std::ptrdiff_t>(counted.size() / 2), counted.end());
    std::sort(later.begin(), later.end());
    stats::Moments usual;
    for (const double period : later) {
        usual.add(static_cast<std::uint64_t>(period));
    }
    const double median = stats::median(later), limit = std::max(slower * median, later[later.size() * 95 / 100]);
    std::size_t end = set_aside, in_a_row = 0;
    while (end < periods.size() / 2 && in_a_row < calm) {
        in_a_row = periods[end++] > limit ? 0 : in_a_row + 1;
    }
    double lost = 0, lost_at_most = 0, slowest = 0;
    std::size_t slow_steps = 0, first = end; // what is named ends with the last slow one
    double lost_by_first = 0;
    for (std::size_t i = 0; i < end; ++i) {
        lost += periods[i] - usual.mean();
        lost_at_most += std::max(0.0, periods[i] - fastest);
        slowest = std::max(slowest, periods[i]);
        if (periods[i] > limit) {
            ++slow_steps;
            first = i + 1;
            lost_by_first = lost;
        }
    }
    lost_by_first = slow_steps == 0 ? lost : lost_by_first;
    // A machine that others use slows down for many steps at a time: no later stretch as long may lose as much.
    double stretch = 0, worst_later = 0;
    for (std::size_t i = end; i < periods.size(); ++i) {
        stretch += periods[i] - usual.mean() - (i >= 2 * end ? periods[i - end] - usual.mean() : 0);
        worst_later = std::max(worst_later, stretch);
    }
    if (lost <= worst_later || lost < least_steps_lost * median ||
        lost < 3 * std::sqrt(usual.variance() * static_cast<double>(end))) {
        return;
    }
    const double whole_median =
        stats::median(std::vector<double>(whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2), whole.end()));
    Finding finding;
    finding.kind = FindingKind::slow_warm_up;
    finding.likely_ns = lost_by_first / found.all_steps();
    finding.at_most_ns = lost_at_most / found.all_steps();
    finding.claim = (first == 1 ? "The first step" + of_tokens + " loses "
                                : "The first " + std::to_string(first) + " steps" + of_tokens + " lose ") +
                    page::fixed(lost_by_first / 1e6, 1) + " ms against the later ones, as long as " +
                    page::fixed(lost_by_first / whole_median, 1) + " of those.";
    const std::string on_cpu = no_device ? ", without time off the CPU" : "";
    finding.evidence.push_back({"plumb steps", "median of the later half" + on_cpu, {median / 1e3, {}}, "us"});
    finding.evidence.push_back({"plumb steps", "the slowest of the first" + on_cpu, {slowest / 1e3, {}}, "us"});
    finding.evidence.push_back(
        {"plumb steps", "of the first, slower than the later ones", {static_cast<double>(slow_steps), {}}, "steps"});
    finding.refuted_by = "a second run in the same process, or behind a warm-up of its own, that begins as slowly";
    found.add(std::move(finding), Sureness::sure,
              no_device ? "periods of single steps, without time off the CPU" : "periods of single steps",
              counted.size());
}

void find_own_cost(FoundInPhase& found) {
    if (!found.wall.own_cost_ns.value) {
        found.cannot(FindingKind::own_cost, found.wall.own_cost_ns.reason);
        return;
    }
    const Figure& share = found.run.report.own_cost.wall_share;
    const double scopes = *found.wall.own_cost_ns.value;
    Finding finding;
    finding.kind = FindingKind::own_cost;
    finding.likely_ns = scopes;
    finding.at_most_ns = share.value ? std::max(scopes, *share.value * found.period_ns()) : found.period_ns();
    finding.claim = "Recording itself takes " + us(scopes) + " per step.";
    finding.evidence.push_back(us_per_step("plumb wall", "own cost", scopes));
    finding.evidence.push_back({"plumb report", "one scope", found.run.report.own_cost.scope_ns, "ns"});
    finding.evidence.push_back({"plumb report", "of the wall clock, with the thread that writes",
                                share.value ? Figure{100 * *share.value, {}} : share, "%"});
    finding.refuted_by = "a run with PLUMB=off whose step is as long";
    found.add(std::move(finding), Sureness::likely, "the price of a scope was measured when the run began",
              found.wall.steps);
}

} // namespace plumb::findings

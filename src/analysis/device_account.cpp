// SPDX-License-Identifier: Apache-2.0
#include "analysis/device_account.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "analysis/imported_words.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

constexpr std::size_t most_graphs_noted = 8;
constexpr std::size_t most_names_noted = 8;

Figure known(double value, const char* otherwise) {
    return std::isfinite(value) ? stats::measured(value) : stats::absent(otherwise);
}

Figure in_graph_busy(const GraphTable& graphs, Phase phase, std::uint64_t steps) {
    double sum = 0;
    std::uint64_t unknown = 0;
    for (std::uint32_t i = 0; i < graphs.size(); ++i) {
        const std::uint64_t replays = graphs.replays(i, phase);
        if (replays == 0) {
            continue;
        }
        const recording::GraphInfo* info = graphs.info_of(i);
        if (info == nullptr || !std::isfinite(info->plain_span_ns)) {
            ++unknown;
        } else {
            sum += static_cast<double>(replays) * info->plain_span_ns;
        }
    }
    if (unknown != 0) {
        return stats::absent("the span of a plain replay was not measured for " + std::to_string(unknown) + " graphs");
    }
    return stats::measured(sum / static_cast<double>(steps));
}

std::string key_text(std::uint64_t key) { return "graph " + std::to_string(key); }

std::string fixed_text(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// "a ×4, b, and 3 more"
std::string listed(const std::vector<std::pair<std::string, std::uint64_t>>& counts) {
    std::string text;
    for (std::size_t i = 0; i < counts.size() && i < most_names_noted; ++i) {
        text += (i == 0 ? "" : ", ") + counts[i].first +
                (counts[i].second == 1 ? "" : " \xC3\x97" + std::to_string(counts[i].second));
    }
    if (counts.size() > most_names_noted) {
        text += ", and " + std::to_string(counts.size() - most_names_noted) + " more";
    }
    return text;
}

class Notes {
  public:
    Notes(const Report& report, const GraphTable& graphs, const resolve::NameTable& names)
        : report_(report), graphs_(graphs), names_(names) {}

    std::vector<std::string> take() {
        for (const PhaseSummary& phase : report_.phases) {
            sampling(phase);
            apart(phase);
            never_sampled(phase.phase);
            untimed(phase.phase);
        }
        closures();
        former();
        unattributed();
        flags();
        return std::move(sentences_);
    }

  private:
    void say(std::string sentence) { sentences_.push_back(std::move(sentence)); }

    void sampling(const PhaseSummary& phase) {
        const std::string name = phase_word(phase.phase);
        if (phase.all_sampled) {
            say(name +
                ": every step was sampled (device scopes timed, an instrumented or a first replay), so none is left "
                "out: its step figures hold the cost of sampling.");
        } else if (phase.sampled_steps != 0) {
            say(name + ": " + std::to_string(phase.sampled_steps) + " of " +
                std::to_string(phase.sampled_steps + phase.steps) +
                " steps were sampled (device scopes timed, an instrumented or a first replay) and are left out of step "
                "statistics and the wall account.");
        }
    }

    void apart(const PhaseSummary& phase) {
        const bool sampled_rows = std::any_of(report_.bricks.begin(), report_.bricks.end(), [&](const Row& row) {
            return row.key.phase == phase.phase && row.basis != RowBasis::steps;
        });
        if (phase.steps == 0 || (!sampled_rows && graphs_.replays(phase.phase) == graphs_.linked(phase.phase)) ||
            phase.all_sampled) {
            return;
        }
        say(std::string(phase_word(phase.phase)) +
            ": device work that is timed in some steps or replays only is not in the wall account: its busy, idle and "
            "coverage are those of the host threads and of the queues timed in every step.");
    }

    void never_sampled(Phase phase) {
        std::vector<std::pair<std::string, std::uint64_t>> without;
        for (const GraphSummary& graph : report_.graphs) {
            if (graph.phase == phase && graph.sites_timed == 0 && graph.replays != 0) {
                without.emplace_back(std::to_string(graph.key), graph.replays);
            }
        }
        if (!without.empty()) {
            say(std::string(phase_word(phase)) + ": no sample of these graphs, so their replays are in no row (key " +
                "\xC3\x97 replays): " + listed(without) + ".");
        }
    }

    void untimed(Phase phase) {
        std::vector<std::pair<std::string, std::uint64_t>> without;
        for (const auto& [name, sites] : graphs_.untimed(phase)) {
            without.emplace_back(names_.text(name), sites);
        }
        const bool any = std::any_of(report_.graphs.begin(), report_.graphs.end(), [phase](const GraphSummary& graph) {
            return graph.phase == phase && graph.sites_timed != 0;
        });
        if (any && !without.empty()) {
            say(std::string(phase_word(phase)) +
                ": in captured graphs, but never timed there (sites): " + listed(without) + ".");
        }
        partly_timed(phase);
    }

    void partly_timed(Phase phase) {
        std::string text;
        for (const Row& row : report_.bricks) {
            if (row.key.phase == phase && row.basis == RowBasis::replays && row.sites_timed < row.sites) {
                text += (text.empty() ? "" : ", ") + row.key.name + " " + std::to_string(row.sites_timed) + " of " +
                        std::to_string(row.sites);
            }
        }
        if (!text.empty()) {
            say(std::string(phase_word(phase)) +
                ": sites timed in captured graphs, where not all were; sums are of those "
                "alone: " +
                text + ".");
        }
    }

    void closures() {
        std::set<std::uint64_t> told;
        for (const GraphSummary& graph : report_.graphs) {
            if (graph.sites == 0 || !told.insert(graph.key).second) {
                continue;
            }
            if (told.size() > most_graphs_noted) {
                continue;
            }
            std::string text = key_text(graph.key) + ": closure ";
            text += graph.closure.value ? fixed_text("%+.2f %% calibrated", 100 * *graph.closure.value)
                                        : "n/a calibrated (" + graph.closure.reason + ")";
            text +=
                graph.closure_raw.value ? fixed_text(", %+.2f %% raw", 100 * *graph.closure_raw.value) : ", n/a raw";
            text += "; " + std::to_string(graph.sites_timed) + " of " + std::to_string(graph.sites) + " sites timed";
            if (graph.plain_span_ns.value) {
                text += ", a plain replay spans " + fixed_text("%.3f us", *graph.plain_span_ns.value / 1e3);
            }
            say(text + ".");
        }
        if (told.size() > most_graphs_noted) {
            say(std::to_string(told.size() - most_graphs_noted) +
                " more graphs: plumb replays lists the closure of each.");
        }
    }

    void former() {
        for (std::string& sentence : left_out_notes(graphs_)) {
            say(std::move(sentence));
        }
    }

    void unattributed() {
        std::map<std::string, std::uint64_t> kernels;
        std::set<std::uint64_t> told;
        for (const GraphSummary& graph : report_.graphs) {
            if (!told.insert(graph.key).second) {
                continue;
            }
            for (const auto& [kernel, count] : graph.unattributed) {
                kernels[kernel] += count;
            }
        }
        std::vector<std::pair<std::string, std::uint64_t>> list(kernels.begin(), kernels.end());
        std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
        if (!list.empty()) {
            say("Nodes of captured graphs that lie in no brick: " + listed(list) + ".");
        }
    }

    void flags() {
        std::string waits;
        std::string floors;
        std::string overlaps;
        std::string overlaps_of_traces;
        std::string cut;
        const auto add = [](std::string& text, const Row& row, std::uint64_t count) {
            if (count != 0) {
                text += (text.empty() ? "" : ", ") + row.key.name + " " + std::to_string(count) + " of " +
                        std::to_string(row.time.count);
            }
        };
        for (const Row& row : report_.bricks) {
            add(waits, row, row.launch_wait);
            add(floors, row, row.below_floor);
            add(is_imported(row.source) ? overlaps_of_traces : overlaps, row, row.may_overlap);
            add(cut, row, row.cut_by_neighbour);
        }
        if (!waits.empty()) {
            say("Includes launch wait (the queue was idle when the scope began, so waiting for its launch is inside): " +
                waits + ".");
        }
        if (!floors.empty()) {
            say("Below the floor (shorter than the source can resolve): " + floors + ".");
        }
        if (!overlaps.empty()) {
            say("May overlap (the queue runs out of order, where a command may start long before the device works on it): the "
                "union of these is busy time, their sum is not: " +
                overlaps + ".");
        }
        if (!overlaps_of_traces.empty()) {
            say("Overlap (in the trace an operation begins before the one before it on its stream ends): the union of these is "
                "busy time, their sum is not: " +
                overlaps_of_traces + ".");
        }
        if (!cut.empty()) {
            say("Cut by a neighbour (no barrier stood between them, so both ran side by side, and the later one counts from "
                "where the earlier ended; it may be shorter than its work took): " +
                cut + ".");
        }
    }

    const Report& report_;
    const GraphTable& graphs_;
    const resolve::NameTable& names_;
    std::vector<std::string> sentences_;
};

} // namespace

std::optional<DeviceAccount> device_account(const PhaseStatistics& statistics, const GraphTable& graphs, Phase phase) {
    const bool launched = graphs.launched_in(phase);
    const WallSums& device = statistics.device();
    if (!launched && device.busy == 0) {
        return std::nullopt;
    }
    DeviceAccount account;
    account.steps = statistics.device_steps();
    const auto steps = static_cast<double>(account.steps);
    if (device.busy == 0) {
        account.busy_per_step_ns = stats::absent("no scope of a device queue was timed in steps of this phase");
        account.idle_per_step_ns = account.busy_per_step_ns;
        account.stretch_per_step_ns = account.busy_per_step_ns;
        account.coverage_at_least = account.busy_per_step_ns;
    } else {
        account.busy_per_step_ns = stats::measured(static_cast<double>(device.busy) / steps);
        account.idle_per_step_ns =
            launched ? stats::absent("captured graphs ran in these steps too, and their own idle time cannot be known")
                     : stats::measured(static_cast<double>(device.idle()) / steps);
        const Figure in_graphs =
            stats::absent("captured graphs ran in these steps too, between the scopes of the queues");
        account.stretch_per_step_ns =
            launched ? in_graphs : stats::measured(static_cast<double>(device.stretch) / steps);
        account.coverage_at_least =
            launched ? in_graphs
                     : stats::measured(static_cast<double>(device.united) / static_cast<double>(device.stretch));
    }
    account.replays = graphs.replays(phase);
    if (account.replays != 0 && account.replays == graphs.linked(phase)) {
        account.in_graph_busy_per_step_ns = stats::absent(in_rows_of_queues);
        account.in_graph_idle_per_step_ns = account.in_graph_busy_per_step_ns;
    } else if (!launched || statistics.steps() == 0) {
        account.in_graph_busy_per_step_ns =
            stats::absent(launched ? "no counted step of this phase" : "no captured graph was replayed");
        account.in_graph_idle_per_step_ns = account.in_graph_busy_per_step_ns;
    } else {
        account.in_graph_busy_per_step_ns = in_graph_busy(graphs, phase, statistics.steps());
        account.in_graph_idle_per_step_ns =
            stats::absent("spans between stamps hold the gaps between kernels: only kernel records could tell");
    }
    return account;
}

std::vector<GraphSummary> graph_summaries(const GraphTable& graphs, const RowTable& rows, Phase phase,
                                          std::uint64_t steps) {
    std::vector<GraphSummary> list;
    for (std::uint32_t i = 0; i < graphs.size(); ++i) {
        GraphSummary summary;
        summary.phase = phase;
        summary.key = graphs.key_of(i);
        summary.replays = graphs.replays(i, phase);
        summary.sampled_replays = graphs.sampled_replays(i, phase);
        if (summary.replays + summary.sampled_replays == 0) {
            continue;
        }
        const std::uint32_t source = graphs.source_of(i, phase);
        summary.source = source == GraphTable::none ? "" : rows.source(source).name;
        summary.replays_per_step = steps == 0 ? 0 : static_cast<double>(summary.replays) / static_cast<double>(steps);
        const GraphTable::Rate rate = graphs.per_replay(i, phase);
        summary.sites = rate.sites;
        summary.sites_timed = rate.sites_timed;
        summary.sites_ns =
            rate.sites_timed == 0 ? stats::absent("no replay was sampled") : stats::measured(rate.sum_per_step_ns);
        summary.raw_sites_ns = rate.raw_ns;
        const recording::GraphInfo* info = graphs.info_of(i);
        const recording::GraphInfo none;
        const recording::GraphInfo& row = info != nullptr ? *info : none;
        summary.plain_span_ns = known(row.plain_span_ns, "no two plain replays followed each other");
        summary.closure_raw = known(row.closure_raw, "not all of it was sampled yet");
        summary.closure = known(row.closure, "the cost of a stamp was not calibrated");
        summary.unattributed = row.unattributed;
        list.push_back(std::move(summary));
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const GraphSummary& a, const GraphSummary& b) { return a.replays > b.replays; });
    return list;
}

std::vector<std::string> left_out_notes(const GraphTable& graphs) {
    std::vector<std::string> notes;
    for (const auto& [key, samples] : graphs.left_out()) {
        if (notes.size() == most_graphs_noted) {
            notes.push_back(std::to_string(graphs.left_out().size() - most_graphs_noted) +
                            " more graphs were captured anew and changed: samples of their older captures are left "
                            "out.");
            break;
        }
        notes.push_back(key_text(key) + " was captured anew and changed: " + std::to_string(samples) +
                        " samples of its older captures are left out; its sites are those of the last one.");
    }
    if (graphs.refused() != 0) {
        notes.push_back("Launches or samples beyond " + std::to_string(GraphTable::max_graphs) +
                        " captured graphs and " + std::to_string(GraphTable::max_groups) +
                        " sites in them are left out: " + std::to_string(graphs.refused()) + ".");
    }
    return notes;
}

std::vector<std::string> device_notes(const Report& report, const GraphTable& graphs, const resolve::NameTable& names) {
    return Notes(report, graphs, names).take();
}

} // namespace plumb::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/captured_nodes.hpp"
#include "base/layout.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

std::uint64_t packed(std::uint16_t name, std::optional<std::uint32_t> layer, bool lap) {
    const std::uint64_t place = layer ? std::uint64_t{*layer} + 1 : 0;
    return (std::uint64_t{name} << 34) | (place << 1) | (lap ? 1u : 0u);
}

GraphTable::Group group_of(const resolve::Sample& sample) {
    return {sample.name, sample.layer, sample.kind == resolve::SampleKind::lap, sample.leaf};
}

std::uint64_t packed(const GraphTable::Group& group) { return packed(group.name, group.layer, group.lap); }

std::uint64_t timed_key(std::uint64_t group, Phase phase, unsigned source) {
    return (group << 8) | (static_cast<std::uint64_t>(phase) << 6) | source;
}

/// The row describes the graph that was captured last. Captured once, there is no other.
bool is_current(std::uint32_t track, const recording::GraphInfo* info) {
    return info == nullptr || info->track == track || (info->track == 0 && info->captures <= 1);
}

} // namespace

GraphTable::GraphTable(const recording::RunFacts& facts) {
    for (const recording::GraphInfo& info : facts.graphs) {
        const std::uint32_t number = graph_of(info.key);
        if (number == none) {
            continue;
        }
        graphs_[number].info = &info;
        for (const recording::GraphSite& site : info.sites) {
            const Group group{site.name, layer_of(site), site.lap, site.leaf};
            if (Sites* sites = sites_of(graphs_[number], packed(group), group)) {
                ++sites->count;
            }
        }
    }
    for (const recording::TrackInfo& track : facts.tracks) {
        if (track.kind != recording::TrackKind::captured_graph) {
            continue;
        }
        const std::uint32_t number = graph_of(track.graph_key);
        if (number == none) {
            continue;
        }
        const bool current = is_current(track.id, graphs_[number].info);
        by_track_.emplace(track.id, current ? number : former);
        if (!current) {
            former_tracks_.emplace(track.id, track.graph_key);
        }
    }
}

std::uint32_t GraphTable::graph_of(std::uint64_t key) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
        return found->second;
    }
    if (graphs_.size() >= max_graphs) {
        return none;
    }
    graphs_.emplace_back().key = key;
    const auto number = static_cast<std::uint32_t>(graphs_.size() - 1);
    by_key_.emplace(key, number);
    return number;
}

GraphTable::Sites* GraphTable::sites_of(Graph& graph, std::uint64_t group, const Group& what) {
    const auto found = graph.sites.find(group);
    if (found != graph.sites.end()) {
        return &found->second;
    }
    if (groups_ >= max_groups) {
        ++refused_;
        return nullptr;
    }
    ++groups_;
    graph.by_name[what.name].push_back(group);
    Sites& sites = graph.sites[group];
    sites.group = what;
    return &sites;
}

std::uint32_t GraphTable::of_track(std::uint32_t track) const {
    const auto found = by_track_.find(track);
    return found == by_track_.end() ? none : found->second;
}

void GraphTable::left_out(std::uint32_t track) {
    if (const auto found = former_tracks_.find(track); found != former_tracks_.end()) {
        ++left_out_[found->second];
    }
}

void GraphTable::launched(const resolve::Submission& launch) {
    if (!launch.graph || launch.warmup) {
        return;
    }
    const auto phase = static_cast<std::size_t>(launch.phase);
    launched_[phase] = launched_[phase] || launch.hides_idle();
    if (launch.linked()) { // what is inside is in the rows of its queues
        linked_[phase] += launch.left_out ? 0 : 1;
        return;
    }
    const std::uint32_t number = graph_of(launch.key);
    if (number == none) {
        ++refused_;
        return;
    }
    graphs_[number].replays[phase] += launch.left_out ? 0 : 1;
    graphs_[number].sampled[phase] += (launch.flags & launch_instrumented) != 0 ? 1 : 0;
}

void GraphTable::add(std::uint32_t number, unsigned source, const resolve::Sample& sample) {
    Graph& graph = graphs_[number];
    const Group what = group_of(sample);
    const std::uint64_t group = packed(what);
    const std::uint64_t key = timed_key(group, sample.phase, source);
    auto found = graph.timed.find(key);
    if (found == graph.timed.end()) {
        if (sites_of(graph, group, what) == nullptr) {
            return;
        }
        found = graph.timed.emplace(key, Timed{}).first;
        auto& sources = graph.sources[static_cast<std::size_t>(sample.phase)];
        sources = static_cast<std::uint16_t>(sources | (1u << source));
    }
    ++found->second.count;
    found->second.total_ns += static_cast<double>(sample.duration_ns);
}

bool GraphTable::is_leaf(std::uint32_t number, const resolve::Sample& sample) const {
    const auto found = graphs_[number].sites.find(packed(group_of(sample)));
    return found == graphs_[number].sites.end() ? sample.leaf : found->second.group.leaf;
}

std::uint32_t GraphTable::source_of(std::uint32_t graph, Phase phase) const {
    const unsigned sources = graphs_[graph].sources[static_cast<std::size_t>(phase)];
    return sources == 0 ? none : static_cast<std::uint32_t>(std::countr_zero(sources));
}

// A twin may change its kind while the program runs; then each source answers for its part of the samples.
double GraphTable::share(const Graph& graph, std::uint64_t group, Phase phase, std::uint64_t count) {
    const unsigned sources = graph.sources[static_cast<std::size_t>(phase)];
    if (std::popcount(sources) <= 1) {
        return 1;
    }
    std::uint64_t all = 0;
    for (unsigned source = 0; source < 16; ++source) {
        if (const auto found = graph.timed.find(timed_key(group, phase, source)); found != graph.timed.end()) {
            all += found->second.count;
        }
    }
    return static_cast<double>(count) / static_cast<double>(all);
}

void GraphTable::add_rate(const Graph& graph, std::uint64_t group, const Wanted& wanted, double per_step, Sum& sum) {
    const Sites& sites = graph.sites.at(group);
    const auto timed = graph.timed.find(timed_key(group, wanted.phase, wanted.source));
    auto count = static_cast<double>(sites.count);
    if (sites.count == 0) { // no description: as many as each sampled replay holds on average
        const std::uint64_t sampled = graph.sampled[static_cast<std::size_t>(wanted.phase)];
        if (timed == graph.timed.end() || sampled == 0) {
            return;
        }
        count = static_cast<double>(timed->second.count) / static_cast<double>(sampled);
    }
    const auto whole = static_cast<std::uint64_t>(std::ceil(count));
    sum.rate.sites += whole;
    if (timed == graph.timed.end()) {
        sum.rate.calls_per_step += per_step * count;
        return;
    }
    per_step *= share(graph, group, wanted.phase, timed->second.count);
    sum.rate.calls_per_step += per_step * count;
    sum.rate.sites_timed += whole;
    const double mean = timed->second.total_ns / static_cast<double>(timed->second.count);
    sum.rate.sum_per_step_ns += per_step * count * mean;
    const double cost = graph.info != nullptr ? graph.info->site_cost_ns : recording::GraphInfo::unknown;
    sum.cost_known = sum.cost_known && std::isfinite(cost) && sites.group.leaf;
    sum.raw += per_step * count * (mean + cost);
}

void GraphTable::add_graph(const Graph& graph, const Wanted& wanted, double per_step, Sum& sum) {
    if (!wanted.name) {
        for (const auto& [group, sites] : graph.sites) {
            if (sites.group.lap == wanted.lap && wanted.group(sites.group)) {
                add_rate(graph, group, wanted, per_step, sum);
            }
        }
        return;
    }
    if (wanted.layer) {
        const std::uint64_t group = packed(*wanted.name, wanted.layer, wanted.lap);
        if (graph.sites.contains(group)) {
            add_rate(graph, group, wanted, per_step, sum);
        }
        return;
    }
    const auto found = graph.by_name.find(*wanted.name);
    if (found == graph.by_name.end()) {
        return;
    }
    for (const std::uint64_t group : found->second) {
        if (graph.sites.at(group).group.lap == wanted.lap) {
            add_rate(graph, group, wanted, per_step, sum);
        }
    }
}

GraphTable::Rate GraphTable::finish(const Sum& sum) {
    Rate rate = sum.rate;
    if (rate.sites_timed == 0) {
        rate.raw_ns = stats::absent("no replay was sampled");
    } else {
        rate.raw_ns = sum.cost_known ? stats::measured(sum.raw)
                                     : stats::absent("the cost of the stamps inside was not calibrated");
    }
    return rate;
}

GraphTable::Rate GraphTable::per_replay(std::uint32_t number, Phase phase) const {
    const Graph& graph = graphs_[number];
    Sum sum;
    std::uint64_t sites_in_all = 0;
    for (const auto& [group, sites] : graph.sites) {
        if (!sites.group.leaf) {
            continue;
        }
        sites_in_all += sites.count;
        for (unsigned source = 0; source < 16; ++source) {
            if (graph.timed.contains(timed_key(group, phase, source))) {
                Wanted wanted;
                wanted.phase = phase;
                wanted.source = source;
                add_rate(graph, group, wanted, 1, sum);
            }
        }
    }
    // A site that two sources timed is one site.
    sum.rate.sites =
        std::max(sites_in_all,
                 std::uint64_t{std::popcount(graph.sources[static_cast<std::size_t>(phase)]) > 1 ? 0 : sum.rate.sites});
    sum.rate.sites_timed = std::min(sum.rate.sites_timed, sum.rate.sites);
    return finish(sum);
}

GraphTable::Rate GraphTable::rate(const Wanted& wanted, std::uint64_t steps) const {
    Sum sum;
    const auto phase = static_cast<std::size_t>(wanted.phase);
    const auto add = [&](const Graph& graph) {
        const double replays = static_cast<double>(graph.replays[phase]);
        // What nobody timed belongs to the rows of the source that timed the rest of its graph.
        if ((graph.sources[phase] & (1u << wanted.source)) != 0) {
            add_graph(graph, wanted, steps == 0 ? 0 : replays / static_cast<double>(steps), sum);
        }
    };
    if (wanted.graph != none) {
        add(graphs_[wanted.graph]);
    } else {
        for (const Graph& graph : graphs_) {
            add(graph);
        }
    }
    return finish(sum);
}

std::uint64_t GraphTable::replays(Phase phase) const {
    std::uint64_t sum = linked(phase);
    for (const Graph& graph : graphs_) {
        sum += graph.replays[static_cast<std::size_t>(phase)];
    }
    return sum;
}

std::map<std::uint16_t, std::uint64_t> GraphTable::untimed(Phase phase) const {
    std::map<std::uint16_t, std::uint64_t> without;
    std::map<std::uint16_t, bool> with;
    for (const Graph& graph : graphs_) {
        if (graph.replays[static_cast<std::size_t>(phase)] == 0) {
            continue;
        }
        for (const auto& [group, sites] : graph.sites) {
            bool timed = false;
            for (unsigned source = 0; source < 16 && !timed; ++source) {
                timed = graph.timed.contains(timed_key(group, phase, source));
            }
            if (timed) {
                with[sites.group.name] = true;
            } else {
                without[sites.group.name] += sites.count;
            }
        }
    }
    std::erase_if(without, [&with](const auto& entry) { return with.contains(entry.first); });
    return without;
}

} // namespace plumb::analysis

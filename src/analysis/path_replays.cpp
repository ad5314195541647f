// SPDX-License-Identifier: Apache-2.0
// Replays of captured graphs: what a graph consists of was noted once, when it was captured. Of a replay that was sampled its
// scopes have a time, which their nodes share; a node that is alone in its scope has it. Of another replay nothing has a
// time: its kernels are there with their bricks and layers, and weigh nothing.
#include <algorithm>
#include <string>
#include <tuple>

#include "analysis/path_graph.hpp"
#include "base/layout.hpp"

namespace plumb::analysis {
namespace {

constexpr std::size_t most_replays = 65536; // of one step, that are more than a launch
constexpr std::size_t most_nodes = std::size_t{1} << 20;
constexpr std::size_t most_edges = std::size_t{1} << 22;
constexpr const char* outside = "outside any brick";

using Group = std::tuple<std::uint16_t, std::optional<std::uint32_t>, bool>; // name, layer, lap

Group group_of(const recording::GraphSite& site) { return {site.name, layer_of(site), site.lap}; }

Group group_of(const resolve::Sample& sample) {
    return {sample.name, sample.layer, sample.kind == resolve::SampleKind::lap};
}

} // namespace

const CapturedNodes* PathGraph::nodes_of(std::uint64_t key) {
    const auto row = rows_of_graphs_.find(key);
    if (row == rows_of_graphs_.end() || row->second->content == nullptr || replaced_.contains(key)) {
        return nullptr;
    }
    return &contents_.try_emplace(key, *row->second).first->second;
}

/// REQUIRES: intervals are nested.
void PathGraph::collect_replays() {
    std::unordered_map<const resolve::Submission*, Interval*> timed;
    for (auto& [id, track] : tracks_) {
        for (Interval& interval : track.intervals) {
            if (interval.submission != nullptr && interval.submission->graph) {
                timed.emplace(interval.submission, &interval);
            }
        }
    }
    std::size_t nodes = 0, edges = 0, beyond = 0;
    for (const resolve::Submission& submission : step_.submissions) {
        if (!submission.graph) {
            continue;
        }
        ++launches_of_graphs_[submission.key];
        ++graphs_launched_;
        if (replays_.size() >= most_replays) {
            ++beyond;
            continue;
        }
        Replay& replay = replays_.emplace_back();
        replay.submission = &submission;
        if (const auto found = timed.find(&submission); found != timed.end()) {
            replay.launch = found->second;
        }
        if (replay.launch != nullptr) {
            replay.launch->replay = replays_.size() - 1;
        }
        replay.nodes = nodes_of(submission.key);
        if (replay.nodes == nullptr) {
            continue;
        }
        nodes += replay.nodes->size() + replay.nodes->info().sites.size();
        edges += replay.nodes->edges().size();
        if (nodes > most_nodes || edges > most_edges) {
            ++beyond;
            replay.nodes = nullptr;
        }
    }
    if (beyond != 0) {
        notes_.push_back(std::to_string(beyond) +
                         " replays of captured graphs are shown without what they consist of: there are too many.");
    }
    count_captured();
    note_captures();
}

/// By brick and layer, for each launch.
void PathGraph::count_captured() {
    for (const auto& [key, launches] : launches_of_graphs_) {
        if (const CapturedNodes* nodes = nodes_of(key); nodes != nullptr) {
            for (std::size_t i = 0; i < nodes->size(); ++i) {
                if (!nodes->is_kernel(i)) {
                    continue;
                }
                const std::uint32_t at = nodes->site(i);
                const recording::GraphSite* site = at == CapturedNodes::none ? nullptr : &nodes->info().sites[at];
                captured_kernels_[{site == nullptr ? std::nullopt : layer_of(*site),
                                   site == nullptr ? outside : names_.text(site->name)}] += launches;
            }
            continue;
        }
        const auto row = rows_of_graphs_.find(key);
        if (row == rows_of_graphs_.end() || replaced_.contains(key)) {
            continue;
        }
        for (const recording::GraphSite& site : row->second->sites) {
            if (site.leaf) {
                captured_nodes_[{layer_of(site), names_.text(site.name)}] += launches * site.nodes;
            }
        }
    }
}

void PathGraph::note_captures() {
    std::set<std::uint64_t> told;
    for (const Replay& replay : replays_) {
        const bool sampled = (replay.submission->flags & launch_instrumented) != 0; // its track tells them apart
        if (replay.nodes == nullptr || sampled || replay.nodes->info().captures <= 1 ||
            !told.insert(replay.submission->key).second) {
            continue;
        }
        notes_.push_back("Graph " + std::to_string(replay.submission->key) + " was captured " +
                         std::to_string(replay.nodes->info().captures) +
                         " times: its nodes are those of the last capture.");
    }
}

/// Scopes of a graph's track to the replays that these launches began: as many leaves each.
void PathGraph::take_scopes(TrackData& track, const std::vector<Interval*>& launches) {
    const auto leaves = static_cast<std::size_t>(std::count_if(track.intervals.begin(), track.intervals.end(),
                                                               [](const Interval& interval) { return interval.leaf; }));
    const std::size_t each = leaves % launches.size() == 0 ? leaves / launches.size() : leaves;
    std::size_t seen = 0;
    for (Interval& interval : track.intervals) { // what contains others comes before them
        const std::size_t number = each == 0 ? 0 : std::min(seen / each, launches.size() - 1);
        seen += interval.leaf ? 1 : 0;
        if (launches[number]->replay == none) {
            continue;
        }
        Replay& replay = replays_[launches[number]->replay];
        replay.track = &track;
        replay.scopes.push_back(&interval);
        if (interval.leaf) {
            replay.leaves.push_back(&interval);
        }
    }
}

/// The n-th scope of a name in a layer is its n-th site, if there are as many of both.
void PathGraph::match_sites(Replay& replay) {
    if (replay.nodes == nullptr) {
        return;
    }
    const std::vector<recording::GraphSite>& sites = replay.nodes->info().sites;
    replay.of_site.assign(sites.size(), nullptr);
    std::map<Group, std::vector<std::uint32_t>> by_group;
    for (std::uint32_t i = 0; i < sites.size(); ++i) {
        by_group[group_of(sites[i])].push_back(i);
    }
    std::map<Group, std::vector<Interval*>> timed;
    for (Interval* scope : replay.scopes) {
        timed[group_of(*scope->sample)].push_back(scope);
    }
    std::size_t matched = 0;
    for (const auto& [group, scopes] : timed) {
        const auto found = by_group.find(group);
        if (found == by_group.end() || found->second.size() != scopes.size()) {
            continue;
        }
        for (std::size_t i = 0; i < scopes.size(); ++i) {
            replay.of_site[found->second[i]] = scopes[i];
        }
        matched += scopes.size();
    }
    replay.by_edges = replay_order_ == ReplayOrder::edges && replay.nodes->whole() && !replay.leaves.empty() &&
                      matched == replay.scopes.size();
    for (Interval* leaf : replay.leaves) {
        leaf->by_edges = replay.by_edges;
    }
}

bool PathGraph::ordered_by_time() const {
    return std::none_of(replays_.begin(), replays_.end(),
                        [](const Replay& replay) { return replay.nodes != nullptr && replay.by_edges; });
}

/// Kernels, copies and the rest of a replay, below their scopes. Returns their numbers.
std::vector<NodeId> PathGraph::add_captured(const Replay& replay) {
    const CapturedNodes& nodes = *replay.nodes;
    const std::int64_t begin = !replay.leaves.empty()     ? replay.leaves.front()->begin_ns
                               : replay.launch != nullptr ? replay.launch->end_ns
                                                          : step_.step.begin_ns;
    std::vector<NodeId> ids(nodes.size(), no_node), bricks(nodes.info().sites.size(), no_node);
    const std::uint32_t number =
        replay.track != nullptr ? replay.track->number : track_of(replay.submission->queue).number;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::uint32_t site = nodes.site(i);
        const Interval* scope = site == CapturedNodes::none || replay.of_site.empty() ? nullptr : replay.of_site[site];
        GraphNode made;
        made.parent = root_;
        made.begin_ns = begin;
        bool alone = false;
        if (site != CapturedNodes::none) {
            const recording::GraphSite& info = nodes.info().sites[site];
            made.layer = layer_of(info);
            alone = scope != nullptr && scope->leaf && info.leaf && nodes.working(site) == 1;
            if (bricks[site] == no_node) {
                bricks[site] = scope != nullptr ? scope->node : add_told_brick(replay, site, begin);
                if (scope != nullptr && scope->leaf && !alone) {
                    add_own_time(*scope);
                }
            }
            made.parent = bricks[site];
        }
        if (scope != nullptr) {
            made.begin_ns = scope->begin_ns;
        }
        made.timed = alone && nodes.works(i);
        made.duration_ns = made.timed ? scope->end_ns - scope->begin_ns : 0;
        made.track = number;
        made.device = true;
        if (const std::uint32_t inside = nodes.content().nodes[i].parent_plus_one; inside != 0) {
            made.parent = ids[inside - 1];
        }
        ids[i] = add_captured_node(replay, i, made, made.timed ? scope->sample : nullptr);
    }
    return ids;
}

/// `alone_in`: the scope whose time, and work, is its own.
NodeId PathGraph::add_captured_node(const Replay& replay, std::size_t node, GraphNode made,
                                    const resolve::Sample* alone_in) {
    const recording::CapturedKind& kind = replay.nodes->kind(node);
    made.name = builder_.name(kind.name);
    made.kind = kind.type == recording::CapturedKind::kernel   ? NodeKind::kernel
                : kind.type == recording::CapturedKind::memcpy ? NodeKind::transfer
                                                               : NodeKind::task;
    if (made.kind != NodeKind::kernel || !kind.shaped) {
        return builder_.add(made);
    }
    LaunchShape shape;
    std::copy(kind.grid, kind.grid + 3, shape.grid);
    std::copy(kind.block, kind.block + 3, shape.block);
    shape.shared_bytes = kind.shared_bytes;
    if (alone_in != nullptr) {
        shape.bytes = alone_in->bytes;
        shape.flops = alone_in->flops;
    }
    return builder_.add_kernel(made, shape);
}

/// What the nodes of a scope share, below its node.
void PathGraph::add_own_time(const Interval& interval) {
    GraphNode own;
    own.kind = NodeKind::brick;
    own.name = builder_.name(names_.text(interval.sample->name));
    own.begin_ns = interval.begin_ns;
    own.duration_ns = interval.end_ns - interval.begin_ns;
    own.parent = interval.node;
    own.device = true;
    own.layer = interval.sample->layer;
    own.track = track_of(interval.sample->track).number;
    builder_.add(own);
}

/// Of a scope that was not timed in this replay.
NodeId PathGraph::add_told_brick(const Replay& replay, std::uint32_t site, std::int64_t begin) {
    const recording::GraphSite& info = replay.nodes->info().sites[site];
    GraphNode brick;
    brick.kind = NodeKind::brick;
    brick.name = builder_.name(names_.text(info.name));
    brick.layer = layer_of(info);
    brick.begin_ns = begin;
    brick.timed = false;
    brick.device = true;
    brick.track = replay.track != nullptr ? replay.track->number : track_of(replay.submission->queue).number;
    brick.parent = layer_node(brick.track, replay.submission->step, brick.layer, begin);
    return builder_.add(brick);
}

} // namespace plumb::analysis

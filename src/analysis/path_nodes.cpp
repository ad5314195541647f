// SPDX-License-Identifier: Apache-2.0
// Kernels, transfers and tasks that were recorded one by one. Those with a time of their own are intervals like scopes.
// The others were only told: they lie in the scope that was open then, or in the device scope that was being submitted. One
// that is alone there has its time; how several share it is not known, so they weigh nothing and stand beside it.
#include <algorithm>

#include "analysis/path_graph.hpp"

namespace plumb::analysis {
namespace {

using resolve::RecordedKind;
using resolve::RecordedNode;

constexpr Brick copies[] = {Brick::copy_h2d, Brick::copy_d2h, Brick::copy_d2d};

LaunchShape launch_shape(const RecordedNode& recorded) {
    LaunchShape shape;
    const Extent extents[] = {recorded.grid, recorded.block};
    for (std::size_t i = 0; i < 2; ++i) {
        auto& to = i == 0 ? shape.grid : shape.block;
        to[0] = extents[i].x;
        to[1] = extents[i].y;
        to[2] = extents[i].z;
    }
    shape.shared_bytes = recorded.shared_bytes;
    shape.code_hash = recorded.code_hash;
    shape.bytes = recorded.bytes;
    shape.flops = recorded.flops;
    return shape;
}

} // namespace

void PathGraph::collect_nodes() {
    std::size_t incomplete = 0;
    for (const RecordedNode& recorded : step_.nodes) {
        incomplete += recorded.has_parts ? 0 : 1;
        TrackData& track = track_of(recorded.key.track);
        if (!recorded.timed) {
            track.told.push_back(&recorded);
            continue;
        }
        Interval interval;
        interval.begin_ns = recorded.begin_ns;
        interval.end_ns = recorded.begin_ns + recorded.duration_ns;
        interval.recorded = &recorded;
        track.intervals.push_back(interval);
    }
    if (incomplete != 0) {
        notes_.push_back(std::to_string(incomplete) +
                         " kernels, transfers and tasks have lost their shapes: the recording is damaged there.");
    }
}

/// The innermost scope or submission of the track at that moment; null: none.
PathGraph::Interval* PathGraph::around(TrackData& track, std::int64_t moment) {
    Intervals& all = track.intervals;
    const auto after = std::upper_bound(all.begin(), all.end(), moment,
                                        [](std::int64_t at, const Interval& x) { return at < x.begin_ns; });
    std::size_t at = after == all.begin() ? none : static_cast<std::size_t>(after - all.begin()) - 1;
    while (at != none && (all[at].end_ns < moment || all[at].recorded != nullptr)) {
        at = all[at].outer;
    }
    return at == none ? nullptr : &all[at];
}

/// Finds the place of what was only told. REQUIRES: intervals are nested, launches matched.
void PathGraph::place_told() {
    for (auto& [id, track] : tracks_) {
        for (const RecordedNode* recorded : track.told) {
            Interval* place = around(track, recorded->begin_ns);
            const bool is_kernel = recorded->kind == RecordedKind::kernel;
            if (is_kernel) {
                count_kernel(track, *recorded, place);
            }
            if (place != nullptr && place->submission != nullptr) {
                place->launches_told += is_kernel ? 1 : 0;
                if (place->on_device == nullptr && place->outer != none) {
                    place = &track.intervals[place->outer];
                } else {
                    place = place->on_device;
                }
            }
            if (place == nullptr || place->submission != nullptr) {
                loose_.emplace_back(&track, recorded);
            } else {
                place->held.push_back(recorded);
            }
        }
        for (const Interval& interval : track.intervals) {
            if (interval.recorded == nullptr || interval.recorded->kind != RecordedKind::kernel) {
                continue;
            }
            const std::size_t place = interval.submitted != none ? interval.submitted : interval.outer;
            if (interval.submitted != none) {
                ++track.intervals[place].launches_told;
            }
            count_kernel(track, *interval.recorded, place == none ? nullptr : &track.intervals[place]);
        }
    }
}

/// To the brick that is open around it, or whose device scope it was launched for.
void PathGraph::count_kernel(TrackData& track, const RecordedNode& recorded, const Interval* place) {
    while (place != nullptr && place->submission == nullptr &&
           (place->sample == nullptr || place->sample->kind == resolve::SampleKind::layer)) {
        place = place->outer == none ? nullptr : &track.intervals[place->outer];
    }
    std::string brick = "outside any brick";
    if (place != nullptr && place->submission != nullptr && !place->submission->graph) {
        brick = names_.text(place->submission->name);
    } else if (place != nullptr && place->sample != nullptr) {
        brick = names_.text(place->sample->name);
    }
    ++kernels_[{recorded.layer, std::move(brick)}];
}

NodeId PathGraph::add_recorded(const TrackData& track, const RecordedNode& recorded, GraphNode node) {
    node.layer = recorded.layer;
    node.track = track.number;
    NodeId added = no_node;
    if (recorded.kind == RecordedKind::transfer) {
        node.name = builder_.name(names_.text(Name(copies[static_cast<std::size_t>(recorded.direction)]).id));
        added =
            builder_.add_transfer(node, {recorded.source, recorded.target, recorded.transferred, recorded.direction});
    } else if (recorded.kind == RecordedKind::task) {
        node.name = builder_.name(recorded.name == 0 ? "task" : names_.text(recorded.name));
        added = builder_.add_task(node, {recorded.polls, recorded.yields});
    } else {
        node.name = builder_.name(names_.text(recorded.name));
        node.kind = NodeKind::kernel;
        added = recorded.has_parts ? builder_.add_kernel(node, launch_shape(recorded)) : builder_.add(node);
    }
    recorded_.emplace(recorded.key, added);
    return added;
}

/// What has no place of its own. A task has the time of its polls, wherever they lay.
void PathGraph::add_told(const TrackData& track, const RecordedNode& recorded, NodeId parent) {
    GraphNode node;
    node.begin_ns = recorded.begin_ns;
    node.parent = parent;
    node.device = track.device;
    node.timed = recorded.kind == RecordedKind::task && recorded.has_parts;
    node.duration_ns = node.timed ? static_cast<std::int64_t>(recorded.polled_ns) : 0;
    add_recorded(track, recorded, node);
}

/// What the scope holds, below its node. REQUIRES: `around_node` is that of a leaf.
void PathGraph::add_held(const TrackData& track, const Interval& interval, NodeId around_node) {
    const auto takes_time = [](const RecordedNode* recorded) {
        return recorded->kind != RecordedKind::task;
    };
    const bool layer = interval.sample->kind == resolve::SampleKind::layer;
    const bool alone = !layer && std::count_if(interval.held.begin(), interval.held.end(), takes_time) == 1;
    GraphNode own;
    own.begin_ns = interval.begin_ns;
    own.duration_ns = interval.end_ns - interval.begin_ns;
    own.parent = around_node;
    own.device = track.device;
    if (!alone) {
        own.kind = layer ? NodeKind::task : NodeKind::brick;
        own.layer = interval.sample->layer;
        own.track = track.number;
        own.name = builder_.name(layer ? unattributed : names_.text(interval.sample->name));
        builder_.add(own);
    }
    for (const RecordedNode* recorded : interval.held) {
        if (alone && takes_time(recorded)) {
            add_recorded(track, *recorded, own);
        } else {
            add_told(track, *recorded, around_node);
        }
    }
}

void PathGraph::add_loose() {
    for (const auto& [track, recorded] : loose_) {
        const auto layer = recorded->layer ? layers_.find({recorded->step, *recorded->layer}) : layers_.end();
        add_told(*track, *recorded, layer == layers_.end() ? step_node(recorded->step) : layer->second);
    }
}

void PathGraph::add_dependencies() {
    std::size_t outside = 0;
    for (const resolve::NodeDependency& edge : step_.dependencies) {
        const auto from = recorded_.find(edge.earlier), to = recorded_.find(edge.later);
        if (from == recorded_.end() || to == recorded_.end()) {
            ++outside;
        } else {
            builder_.depend(from->second, to->second);
        }
    }
    if (outside != 0) {
        notes_.push_back(std::to_string(outside) + " dependencies lead out of this step, or to what was lost.");
    }
}

} // namespace plumb::analysis

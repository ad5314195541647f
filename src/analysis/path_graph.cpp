// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "analysis/roofline.hpp"
#include "base/layout.hpp"

namespace plumb::analysis {
namespace {

using resolve::SampleKind;

std::uint64_t step_of_scope(const resolve::Sample* sample) {
    return sample != nullptr ? sample->step : resolve::no_step;
}

std::optional<std::uint32_t> layer_of_scope(const resolve::Sample* sample) {
    return sample != nullptr ? sample->layer : std::nullopt;
}

TransferShape transfer_shape(const resolve::Sample& sample) {
    TransferShape shape;
    if (std::isfinite(sample.bytes) && sample.bytes >= 1 && sample.bytes < 1e18) {
        shape.bytes = static_cast<std::uint64_t>(sample.bytes);
    }
    shape.direction = sample.name == Name(Brick::copy_h2d).id   ? TransferDirection::host_to_device
                      : sample.name == Name(Brick::copy_d2h).id ? TransferDirection::device_to_host
                                                                : TransferDirection::device_to_device;
    return shape;
}

} // namespace

PathGraph::PathGraph(const recording::RunFacts& facts, const PathStep& step, ReplayOrder order)
    : facts_(facts), step_(step), replay_order_(order), names_(facts.names), graphs_(facts) {
    for (const recording::GraphInfo& info : facts.graphs) {
        rows_of_graphs_.emplace(info.key, &info);
    }
}

Result<ExecGraph> PathGraph::build() {
    collect();
    collect_nodes();
    add_step();
    for (auto& [id, track] : tracks_) {
        const bool of_graph = track.graph != GraphTable::none;
        nest(track.intervals, of_graph);
    }
    collect_replays();
    match_launches();
    place_told();
    measure_device_layers();
    find_waits();
    for (auto& [id, track] : tracks_) {
        if (!track.device) {
            add_host_intervals(track);
        }
    }
    for (auto& [id, track] : tracks_) {
        if (track.device) {
            add_device_intervals(track);
        }
    }
    add_replays();
    find_device_end();
    for (auto& [id, track] : tracks_) {
        add_spans(track);
        if (id == main_track_) {
            add_unattributed(track);
        }
    }
    add_loose();
    add_dependencies();
    for (const auto& [submission, device] : launches_) {
        builder_.depend(submission->launched, device->node);
    }
    order_tracks();
    note_waits();
    note_threads();
    return builder_.build();
}

PathGraph::TrackData& PathGraph::track_of(std::uint32_t id) {
    const auto [found, fresh] = tracks_.try_emplace(id);
    TrackData& track = found->second;
    if (!fresh) {
        return track;
    }
    track.id = id;
    track.number = static_cast<std::uint32_t>(track_names_.size());
    track_names_.push_back("track " + std::to_string(id));
    origins_.emplace_back();
    for (const recording::TrackInfo& info : facts_.tracks) {
        if (info.id != id) {
            continue;
        }
        track.device = info.kind != recording::TrackKind::host_thread;
        track.graph_key = info.graph_key;
        origins_.back() = {info.source, place_of_track(facts_.metadata, info)};
        if (!info.name.empty()) {
            track_names_.back() = info.name;
        }
    }
    track.graph = graphs_.of_track(id);
    return track;
}

PathGraph::Interval PathGraph::interval_of(std::int64_t begin, std::int64_t duration, const resolve::Sample* sample,
                                           const resolve::Submission* submission) {
    Interval made;
    made.begin_ns = begin;
    made.end_ns = begin + duration;
    made.sample = sample;
    made.submission = submission;
    return made;
}

void PathGraph::collect() {
    std::size_t replays_left_out = 0;
    main_track_ = std::numeric_limits<std::uint32_t>::max();
    for (const resolve::Sample& sample : step_.samples) {
        if (sample.kind == SampleKind::step && sample.step == step_.step.id) {
            main_track_ = sample.track;
            track_of(sample.track);
            continue;
        }
        TrackData& track = track_of(sample.track);
        if (track.graph == GraphTable::former) {
            ++replays_left_out;
            replaced_.insert(track.graph_key);
        } else if (sample.kind == SampleKind::span) {
            track.spans.push_back(&sample);
        } else {
            track.intervals.push_back(interval_of(sample.begin_ns, sample.duration_ns, &sample, nullptr));
        }
    }
    std::size_t untimed = 0;
    for (const resolve::Submission& submission : step_.submissions) {
        if (submission.timed && submission.duration_ns >= 0) {
            track_of(submission.track)
                .intervals.push_back(interval_of(submission.begin_ns, submission.duration_ns, nullptr, &submission));
        } else {
            ++untimed;
        }
    }
    if (untimed != 0) {
        notes_.push_back(std::to_string(untimed) + " launches have no time of their own and are left out.");
    }
    const auto queues = std::count_if(tracks_.begin(), tracks_.end(), [](const auto& entry) {
        return entry.second.device && entry.second.graph == GraphTable::none;
    });
    if (queues > 1) {
        notes_.push_back("Work ran on " + std::to_string(queues) +
                         " queues. Where one waited for another is not recorded, so slack may be less than it says.");
    }
    if (replays_left_out != 0) {
        notes_.push_back(std::to_string(replays_left_out) +
                         " scopes belong to graphs that others have replaced under their keys and are left out.");
    }
}

/// Finds the innermost interval around each. What overlaps without nesting stands side by side. `by_flag`: only what is known
/// to contain others does; branches of a graph may lie inside each other by chance.
void PathGraph::nest(Intervals& intervals, bool by_flag) {
    std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
        const auto rank = [](const Interval& x) {
            if (x.sample != nullptr) {
                return x.sample->kind == SampleKind::step ? 0 : x.sample->kind == SampleKind::layer ? 1 : 2;
            }
            return x.submission != nullptr ? 3 : 4;
        };
        return std::tuple(a.begin_ns, -a.end_ns, rank(a)) < std::tuple(b.begin_ns, -b.end_ns, rank(b));
    });
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
        Interval& inner = intervals[i];
        while (!open.empty() && intervals[open.back()].end_ns < inner.end_ns) {
            open.pop_back();
        }
        // One of no length at the very end of another comes after it.
        while (!open.empty() && intervals[open.back()].end_ns == inner.begin_ns &&
               intervals[open.back()].begin_ns < inner.begin_ns) {
            open.pop_back();
        }
        if (!open.empty()) {
            // A launch that was timed on the host does not make a submission any less what the device waits for.
            const Interval& outer = intervals[open.back()];
            const bool beside = inner.recorded != nullptr && outer.submission != nullptr;
            inner.outer = beside ? outer.outer : open.back();
            inner.submitted = beside ? open.back() : none;
            intervals[open.back()].leaf = outer.leaf && beside;
        }
        if (!by_flag || (inner.sample != nullptr && !inner.sample->leaf)) {
            open.push_back(i);
        }
    }
}

void PathGraph::add_step() {
    GraphNode node;
    node.name = builder_.name("step " + std::to_string(step_.step.id));
    node.kind = NodeKind::step;
    node.begin_ns = step_.step.begin_ns;
    node.duration_ns = std::max<std::int64_t>(step_.step.end_ns - step_.step.begin_ns, 0);
    if (const auto main = tracks_.find(main_track_); main != tracks_.end()) {
        node.track = main->second.number;
    }
    root_ = builder_.add(node);
    first_ns_ = step_.step.begin_ns;
    last_ns_ = std::max(step_.step.end_ns, first_ns_);
    for (const auto& [id, track] : tracks_) {
        for (const Interval& interval : track.intervals) {
            first_ns_ = std::min(first_ns_, interval.begin_ns);
            last_ns_ = std::max(last_ns_, interval.end_ns);
        }
        for (const resolve::Sample* span : track.spans) {
            first_ns_ = std::min(first_ns_, span->begin_ns);
            last_ns_ = std::max(last_ns_, span->begin_ns + span->duration_ns);
        }
    }
}

NodeId PathGraph::add_task(const TrackData& track, const char* name, std::int64_t begin, std::int64_t end,
                           NodeId parent) {
    GraphNode node;
    node.name = builder_.name(name);
    node.track = track.number;
    node.begin_ns = begin;
    node.duration_ns = end - begin;
    node.parent = parent;
    return builder_.add(node);
}

NodeId PathGraph::add_node(const TrackData& track, const Interval& interval, NodeId parent) {
    if (interval.submission != nullptr) {
        const resolve::Submission& made = *interval.submission;
        const std::string name =
            made.graph ? "launch graph " + std::to_string(made.key) : "submit " + names_.text(made.name);
        return add_task(track, name.c_str(), interval.begin_ns, interval.end_ns, parent);
    }
    GraphNode node;
    node.track = track.number;
    node.device = track.device;
    node.begin_ns = interval.begin_ns;
    node.duration_ns = interval.end_ns - interval.begin_ns;
    node.parent = parent;
    if (interval.recorded != nullptr) {
        return add_recorded(track, *interval.recorded, node);
    }
    const resolve::Sample& sample = *interval.sample;
    if (sample.kind == SampleKind::step) {
        node.kind = NodeKind::step;
        node.name = builder_.name("step " + std::to_string(sample.step));
        return builder_.add(node);
    }
    node.layer = layer_of_scope(&sample);
    if (sample.kind == SampleKind::layer) {
        node.kind = NodeKind::layer;
        node.name = builder_.name("layer " + std::to_string(*sample.layer));
        return builder_.add(node);
    }
    node.name = builder_.name(names_.text(sample.name));
    if (names_.category(sample.name) == Category::transfer && interval.leaf && interval.held.empty()) {
        return builder_.add_transfer(node, transfer_shape(sample));
    }
    node.kind = sample.kind == SampleKind::span ? NodeKind::task : NodeKind::brick;
    return builder_.add(node);
}

void PathGraph::add_host_intervals(TrackData& track) {
    for (Interval& interval : track.intervals) {
        const NodeId parent = interval.outer == none ? root_ : track.intervals[interval.outer].node;
        if (interval.leaf) {
            add_leaf_parts(track, interval, parent);
        } else {
            interval.node = interval.launched = add_node(track, interval, parent);
            add_what_it_holds(track, interval);
        }
        if (interval.sample == nullptr || interval.leaf) {
            continue;
        }
        if (interval.sample->kind == SampleKind::layer) {
            layers_.emplace(LayerOfStep(interval.sample->step, *interval.sample->layer), interval.node);
        } else if (interval.sample->kind == SampleKind::step) {
            steps_within_.emplace(interval.sample->step, interval.node);
        }
    }
}

void PathGraph::add_what_it_holds(const TrackData& track, const Interval& interval) {
    if (interval.held.empty()) {
        return;
    }
    if (interval.leaf) {
        add_held(track, interval, interval.node);
    } else { // what it contains has its time
        for (const resolve::RecordedNode* recorded : interval.held) {
            add_told(track, *recorded, interval.node);
        }
    }
}

std::uint64_t PathGraph::launches() const {
    std::uint64_t count = 0;
    for (const auto& [place, kernels] : kernels_) {
        count += kernels;
    }
    std::uint64_t timed = 0;
    for (const auto& [id, track] : tracks_) {
        for (const Interval& interval : track.intervals) {
            if (interval.submission == nullptr) {
                continue;
            }
            ++timed;
            count += interval.launches_told == 0 ? 1 : 0;
        }
    }
    return count + (step_.submissions.size() - timed); // those without a time hold nothing
}

void PathGraph::measure_device_layers() {
    for (const auto& [id, track] : tracks_) {
        for (const Interval& interval : track.intervals) {
            const std::optional<std::uint32_t> layer = layer_of_scope(interval.sample);
            if (!track.device || !layer) {
                continue;
            }
            auto& [begin, end] =
                device_layers_
                    .try_emplace(LayerOfStep(interval.sample->step, *layer), interval.begin_ns, interval.end_ns)
                    .first->second;
            begin = std::min(begin, interval.begin_ns);
            end = std::max(end, interval.end_ns);
        }
    }
}

/// Where nothing of the layer was timed it has no time, and `begin` is about where it lies.
NodeId PathGraph::layer_node(std::uint32_t number, std::uint64_t step, std::optional<std::uint32_t> layer,
                             std::int64_t begin) {
    if (!layer) {
        return step_node(step);
    }
    const LayerOfStep place(step, *layer);
    if (const auto found = layers_.find(place); found != layers_.end()) {
        return found->second;
    }
    GraphNode node;
    node.kind = NodeKind::layer;
    node.name = builder_.name("layer " + std::to_string(*layer));
    node.layer = layer;
    node.track = number;
    node.device = true;
    const auto timed = device_layers_.find(place);
    node.timed = timed != device_layers_.end();
    node.begin_ns = node.timed ? timed->second.first : begin;
    node.duration_ns = node.timed ? timed->second.second - timed->second.first : 0;
    node.parent = step_node(step);
    const NodeId id = builder_.add(node);
    layers_.emplace(place, id);
    return id;
}

NodeId PathGraph::step_node(std::uint64_t step) const {
    const auto within = steps_within_.find(step);
    return within == steps_within_.end() ? root_ : within->second;
}

void PathGraph::add_device_intervals(TrackData& track) {
    const auto queue = queue_of_graph_.find(track.id);
    std::vector<Item>& order = queue == queue_of_graph_.end() ? track.order : tracks_.at(queue->second).order;
    for (Interval& interval : track.intervals) {
        const NodeId parent = interval.outer == none ? layer_node(track.number, step_of_scope(interval.sample),
                                                                  layer_of_scope(interval.sample), interval.begin_ns)
                                                     : track.intervals[interval.outer].node;
        interval.node = add_node(track, interval, parent);
        add_what_it_holds(track, interval);
        if (interval.leaf && interval.sample != nullptr) {
            ++device_scopes_[{layer_of_scope(interval.sample), names_.text(interval.sample->name)}];
        }
        if (interval.leaf && !interval.by_edges) {
            order.push_back({interval.begin_ns, interval.end_ns, interval.node});
        }
    }
}

void PathGraph::add_spans(TrackData& track) {
    for (const resolve::Sample* span : track.spans) {
        Interval interval;
        interval.begin_ns = span->begin_ns;
        interval.end_ns = span->begin_ns + span->duration_ns;
        interval.sample = span;
        track.order.push_back({interval.begin_ns, interval.end_ns, add_node(track, interval, root_)});
    }
}

void PathGraph::find_device_end() {
    for (const auto& [id, track] : tracks_) {
        for (const Interval& interval : track.intervals) {
            if (interval.submission != nullptr) {
                last_submission_ns_ = std::max(last_submission_ns_, interval.end_ns);
            }
            if (track.device && interval.leaf && interval.end_ns >= device_end_ns_) {
                device_end_ns_ = interval.end_ns;
                last_on_device_ = interval.node;
            }
        }
    }
}

/// The time of the step's own thread that lies in no scope is work too. A layer that has device scopes only has all of it.
void PathGraph::add_unattributed(TrackData& track) {
    const Intervals& intervals = track.intervals;
    const auto outer_of = [&](std::size_t at, std::int64_t begin, std::int64_t end) {
        while (at != none && (intervals[at].begin_ns > begin || intervals[at].end_ns < end)) {
            at = intervals[at].outer;
        }
        return at == none ? root_ : intervals[at].node;
    };
    std::int64_t now = step_.step.begin_ns;
    std::size_t last = none;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
        if (!intervals[i].leaf) {
            continue;
        }
        if (intervals[i].begin_ns > now) {
            add_gap(track, now, intervals[i].begin_ns, outer_of(intervals[i].outer, now, intervals[i].begin_ns));
        }
        now = std::max(now, intervals[i].end_ns);
        last = i;
    }
    if (now < step_.step.host_end_ns) {
        add_gap(track, now, step_.step.host_end_ns,
                outer_of(last == none ? none : intervals[last].outer, now, step_.step.host_end_ns));
    }
}

void PathGraph::add_gap(TrackData& track, std::int64_t begin, std::int64_t end, NodeId parent) {
    for (const analysis::Interval& part : without_waits(track, begin, end)) {
        if (part.end > part.begin) {
            add_gap_part(track, part.begin, part.end, parent);
        }
    }
}

void PathGraph::add_gap_part(TrackData& track, std::int64_t begin, std::int64_t end, NodeId parent) {
    if (last_on_device_ == no_node || begin < last_submission_ns_ || begin >= device_end_ns_) {
        track.order.push_back({begin, end, add_task(track, unattributed, begin, end, parent)});
        return;
    }
    const std::int64_t ready = std::min(end, device_end_ns_);
    waited_ns_ += ready - begin;
    if (ready < end) {
        track.order.push_back({ready, end, add_task(track, unattributed, ready, end, parent)});
    }
}

void PathGraph::order_tracks() {
    for (auto& [id, track] : tracks_) {
        std::stable_sort(track.order.begin(), track.order.end(), [](const Item& a, const Item& b) {
            return std::tie(a.begin_ns, a.end_ns) < std::tie(b.begin_ns, b.end_ns);
        });
        ProgramOrder order(builder_, root_);
        for (const Item& item : track.order) {
            order.add(item);
        }
        if (id == main_track_ && waited_ns_ > 0) {
            go_on_after(track, device_end_ns_, last_on_device_);
        }
        for (const Wait& wait : track.waits) {
            const Interval& ended = *wait.ended;
            go_on_after(track, wait.time.end, ended.launched != no_node ? ended.launched : ended.node);
        }
    }
    for (const auto& [id, track] : tracks_) {
        if (!track.device && id != main_track_ && tracks_.contains(main_track_)) {
            begin_after_step_thread(track);
        }
    }
}

} // namespace plumb::analysis

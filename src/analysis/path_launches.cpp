// SPDX-License-Identifier: Apache-2.0
// Which submission began which scope on a device.
#include <algorithm>
#include <limits>

#include "analysis/path_graph.hpp"
#include "base/layout.hpp"

namespace plumb::analysis {

void PathGraph::match_launches() {
    link_scopes();
    match_graphs();
}

void PathGraph::link_scopes() {
    std::unordered_map<std::uint64_t, Interval*> submissions; // by number
    for (auto& [id, track] : tracks_) {
        for (Interval& interval : track.intervals) {
            if (interval.submission != nullptr && interval.submission->number != 0) {
                submissions.emplace(interval.submission->number, &interval);
            }
        }
    }
    bool inferred = false;
    for (auto& [id, track] : tracks_) {
        std::map<std::uint64_t, std::int64_t> first_ends; // of replays on this queue, by number of their launch
        for (Interval& interval : track.intervals) {
            if (interval.sample == nullptr || !interval.leaf || interval.sample->launch == resolve::no_launch) {
                continue;
            }
            const resolve::Launch& launch = step_.launches[interval.sample->launch];
            const auto found = submissions.find(launch.number);
            if (found == submissions.end() || !found->second->leaf) {
                continue;
            }
            if (launch.replay) {
                if (names_.category(interval.sample->name) != Category::transfer) {
                    ++captured_kernels_[{interval.sample->layer, names_.text(interval.sample->name)}];
                }
                // Those behind its first one wait for what was before them.
                std::int64_t& first_end = first_ends.try_emplace(launch.number, interval.end_ns).first->second;
                if (interval.begin_ns >= first_end) {
                    continue;
                }
                first_end = std::min(first_end, interval.end_ns);
            }
            link(*found->second, interval);
            inferred = inferred || launch.inferred;
        }
    }
    if (inferred) {
        notes_.emplace_back(resolve::inferred_launches_note);
    }
}

/// Replays of one graph follow each other: with k launches the first k-th of its scopes is the first replay.
void PathGraph::match_graphs() {
    std::map<std::uint64_t, std::vector<Interval*>> launches; // instrumented, by key
    std::uint64_t unseen = 0;
    for (auto& [id, track] : tracks_) {
        for (Interval& interval : track.intervals) {
            if (interval.submission == nullptr || !interval.submission->graph || interval.submission->linked()) {
                continue;
            }
            if ((interval.submission->flags & launch_instrumented) != 0) {
                launches[interval.submission->key].push_back(&interval);
            } else {
                ++unseen;
            }
        }
    }
    if (unseen != 0) {
        notes_.push_back(std::to_string(unseen) +
                         " replays of captured graphs in this step were not sampled: nothing inside them has a time.");
    }
    std::vector<TrackData*> of_graphs;
    for (auto& [id, track] : tracks_) {
        if (track.device && track.graph != GraphTable::none && track.graph != GraphTable::former) {
            of_graphs.push_back(&track);
        }
    }
    for (TrackData* track : of_graphs) {
        const auto found = launches.find(graphs_.key_of(track->graph));
        if (found == launches.end()) {
            continue;
        }
        const std::vector<Interval*>& begun = found->second;
        const std::uint32_t queue = begun.front()->submission->queue;
        if (std::all_of(begun.begin(), begun.end(), [&](const Interval* x) { return x->submission->queue == queue; })) {
            TrackData& queue_track = track_of(queue);
            queue_track.device = true;
            queue_of_graph_.emplace(track->id, queue);
        }
        take_scopes(*track, begun);
    }
    for (Replay& replay : replays_) {
        if (replay.launch == nullptr) {
            continue;
        }
        // Branches that begin before anything has ended wait for nothing but the launch.
        std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
        for (Interval* leaf : replay.leaves) {
            if (leaf->begin_ns >= first_end) {
                break;
            }
            first_end = std::min(first_end, leaf->end_ns);
            link(*replay.launch, *leaf);
        }
        match_sites(replay);
    }
}

void PathGraph::link(Interval& submission, Interval& device) {
    if (submission.leaf && !submission.submission->graph) {
        submission.on_device = &device;
    }
    if (device.begin_ns <= submission.begin_ns || !submission.leaf) {
        return; // within the error of the clocks' fit: what came first is not known
    }
    if (device.begin_ns < submission.end_ns && (submission.split_ns == 0 || device.begin_ns < submission.split_ns)) {
        submission.split_ns = device.begin_ns;
    }
    launches_.emplace_back(&submission, &device);
}

} // namespace plumb::analysis

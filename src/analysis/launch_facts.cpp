// SPDX-License-Identifier: Apache-2.0
#include "analysis/launch_facts.hpp"

#include <algorithm>
#include <limits>

namespace plumb::analysis {
namespace {

constexpr std::size_t most_latencies = 65536; // of one queue
constexpr std::size_t most_queues = 1024;
constexpr std::size_t most_feeds = 65536;

} // namespace

void LaunchLook::ran(const resolve::ResolvedBatch& batch, const resolve::Sample& sample) {
    std::int64_t& last = last_end_.try_emplace(sample.track, std::numeric_limits<std::int64_t>::min()).first->second;
    const std::int64_t before = last;
    if (!sample.leaf) {
        return;
    }
    last = std::max(last, sample.begin_ns + sample.duration_ns);
    if (sample.launch == resolve::no_launch) {
        return;
    }
    const resolve::Launch& launch = batch.launches[sample.launch];
    // Only of commands that had nothing to wait for but their launch.
    if (before > launch.end_ns) {
        return;
    }
    auto& latencies = latencies_[launch.inferred ? 1 : 0];
    if (latencies.size() >= most_queues && latencies.find(sample.track) == latencies.end()) {
        return;
    }
    auto& list = latencies[sample.track];
    if (list.size() < most_latencies) {
        list.push_back(std::max<std::int64_t>(0, sample.begin_ns - launch.end_ns));
    }
}

void LaunchLook::look(const resolve::ResolvedBatch& batch) {
    for (const resolve::Submission& submission : batch.submissions) {
        if (feeds_.size() < most_feeds) {
            feeds_.emplace(submission.track, submission.queue);
        }
        if (submission.graph && submission.step != resolve::no_step) {
            steps_with_graphs_.add(submission.step);
        } else if (submission.graph) {
            graph_outside_steps_ = true;
        }
    }
    if (batch.track->info.kind != recording::TrackKind::device_queue) {
        return;
    }
    for (const resolve::Sample& sample : batch.samples) {
        ran(batch, sample);
    }
}

LaunchFacts LaunchLook::finish(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
    LaunchFacts facts;
    facts.feeds = std::move(feeds_);
    facts.graphs[static_cast<std::size_t>(Phase::none)] = graph_outside_steps_;
    for (const std::uint64_t id : steps_with_graphs_.sorted()) {
        const std::size_t found = steps.find(id);
        const Phase phase = found == resolve::step_not_found ? Phase::none : steps[found].phase;
        facts.graphs[static_cast<std::size_t>(phase)] = true;
    }
    for (auto& [queue, list] : latencies_[tracks.tells_launches() ? 0 : 1]) {
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
        std::nth_element(list.begin(), middle, list.end());
        facts.latency_ns[queue] = *middle;
    }
    return facts;
}

} // namespace plumb::analysis

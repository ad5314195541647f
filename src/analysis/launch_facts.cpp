// SPDX-License-Identifier: Apache-2.0
#include "analysis/launch_facts.hpp"

#include <algorithm>
#include <utility>

namespace plumb::analysis {
namespace {

constexpr std::size_t most_latencies = 65536; // of one queue
constexpr std::size_t most_queues = 1024;
constexpr std::size_t most_feeds = 65536;

} // namespace

void LaunchLook::ran(const resolve::ResolvedBatch& batch, const resolve::Sample& sample) {
    Last& last = last_[sample.track];
    const std::int64_t before = last.end_ns;
    if (!sample.leaf) {
        return;
    }
    last.end_ns = std::max(last.end_ns, sample.begin_ns + sample.duration_ns);
    if (sample.launch == resolve::no_launch) {
        return;
    }
    const resolve::Launch& launch = batch.launches[sample.launch];
    if (launch.replay && std::exchange(last.replay, launch.number) == launch.number) {
        return; // it waited for the one before it
    }
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
        if (submission.hides_idle()) {
            Replays& replays = hidden_[submission.linked() ? 1 : 0];
            if (submission.step != resolve::no_step) {
                replays.steps.add(submission.step);
            } else {
                replays.outside_steps = true;
            }
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
    std::array<bool, 4> ran[2] = {};
    for (const std::size_t linked : {std::size_t{0}, std::size_t{1}}) {
        ran[linked][static_cast<std::size_t>(Phase::none)] = hidden_[linked].outside_steps;
        for (const std::uint64_t id : hidden_[linked].steps.sorted()) {
            const std::size_t found = steps.find(id);
            const Phase phase = found == resolve::step_not_found ? Phase::none : steps[found].phase;
            ran[linked][static_cast<std::size_t>(phase)] = true;
        }
    }
    for (std::size_t phase = 0; phase < facts.graphs.size(); ++phase) {
        facts.graphs[phase] = ran[0][phase] || ran[1][phase];
        facts.gapless[phase] = !ran[0][phase] && ran[1][phase];
    }
    for (auto& [queue, list] : latencies_[tracks.tells_launches() ? 0 : 1]) {
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
        std::nth_element(list.begin(), middle, list.end());
        facts.latency_ns[queue] = *middle;
    }
    return facts;
}

} // namespace plumb::analysis

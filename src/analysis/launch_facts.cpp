// SPDX-License-Identifier: Apache-2.0
#include "analysis/launch_facts.hpp"

#include <algorithm>
#include <vector>

#include "analysis/launch_matcher.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {
namespace {

constexpr std::size_t most_latencies = 65536; // of one queue
constexpr std::size_t most_queues = 1024;
constexpr std::size_t most_feeds = 65536;

} // namespace

Result<LaunchFacts> launch_facts(resolve::RecordSource& source) {
    LaunchFacts facts;
    const bool any_queue = std::any_of(source.tracks().begin(), source.tracks().end(), [](const auto& track) {
        return track.kind != recording::TrackKind::host_thread;
    });
    if (!any_queue) {
        return facts;
    }
    std::map<std::uint32_t, std::vector<std::int64_t>> latencies;
    LaunchMatcher matcher([&](const Launched& command) {
        // Only of commands that had nothing to wait for but their launch.
        if (!command.leaf || command.before > command.launch_end) {
            return;
        }
        if (latencies.size() >= most_queues && latencies.find(command.queue) == latencies.end()) {
            return;
        }
        auto& list = latencies[command.queue];
        if (list.size() < most_latencies) {
            list.push_back(std::max<std::int64_t>(0, command.begin - command.launch_end));
        }
    });
    resolve::ResolveOptions options;
    options.warmup_steps = source.metadata().warmup_steps;
    const Status resolved = resolve::resolve_samples(source, options, [&](const resolve::ResolvedBatch& batch) {
        for (const resolve::Submission& submission : batch.submissions) {
            if (facts.feeds.size() < most_feeds) {
                facts.feeds.emplace(submission.track, submission.queue);
            }
            if (submission.graph) {
                facts.graphs[static_cast<std::size_t>(submission.phase)] = true;
            }
            matcher.launched(submission);
        }
        if (batch.track->info.kind != recording::TrackKind::device_queue) {
            return;
        }
        for (const resolve::Sample& sample : batch.samples) {
            matcher.ran(sample);
        }
    });
    if (!resolved.ok()) {
        return resolved.error();
    }
    for (auto& [queue, list] : latencies) {
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
        std::nth_element(list.begin(), middle, list.end());
        facts.latency_ns[queue] = *middle;
    }
    return facts;
}

} // namespace plumb::analysis

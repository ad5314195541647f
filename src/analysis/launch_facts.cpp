// SPDX-License-Identifier: Apache-2.0
#include "analysis/launch_facts.hpp"

#include <algorithm>
#include <limits>
#include <vector>

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
    std::map<std::uint32_t, std::int64_t> last_end; // by queue
    const auto ran = [&](const resolve::ResolvedBatch& batch, const resolve::Sample& sample) {
        std::int64_t& last = last_end.try_emplace(sample.track, std::numeric_limits<std::int64_t>::min()).first->second;
        const std::int64_t before = last;
        if (!sample.leaf) {
            return;
        }
        last = std::max(last, sample.begin_ns + sample.duration_ns);
        if (sample.launch == resolve::no_launch) {
            return;
        }
        const std::int64_t launch_end = batch.launches[sample.launch].end_ns;
        // Only of commands that had nothing to wait for but their launch.
        if (before > launch_end) {
            return;
        }
        if (latencies.size() >= most_queues && latencies.find(sample.track) == latencies.end()) {
            return;
        }
        auto& list = latencies[sample.track];
        if (list.size() < most_latencies) {
            list.push_back(std::max<std::int64_t>(0, sample.begin_ns - launch_end));
        }
    };
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
        }
        if (batch.track->info.kind != recording::TrackKind::device_queue) {
            return;
        }
        for (const resolve::Sample& sample : batch.samples) {
            ran(batch, sample);
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

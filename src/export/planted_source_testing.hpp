// SPDX-License-Identifier: Apache-2.0
// A recording made by hand for the tests of the exporters. Owned by a test; one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "export/sample_feed.hpp"

namespace plumb::exporting {

class PlantedSource {
  public:
    recording::Metadata run;
    std::vector<recording::TrackInfo> all_tracks;
    std::vector<recording::NameInfo> all_names;
    std::vector<std::string> all_notes;
    std::vector<std::pair<std::string, std::string>> all_descriptions;
    std::vector<resolve::Sample> samples;
    std::vector<resolve::Submission> submissions; // delivered before the samples
    std::vector<resolve::Launch> launches;
    std::vector<recording::GraphInfo> all_graphs;
    std::vector<recording::KernelInfo> all_kernels;
    std::vector<resolve::RecordedNode> nodes; // delivered before the samples too
    std::vector<resolve::NodeDependency> dependencies;
    std::vector<recording::TensorCheck> all_checks;
    std::vector<resolve::RequestEvent> requests; // delivered before the samples too
    std::vector<resolve::ResolvedStep> all_steps;
    std::int64_t origin = 1'000'000'000;
    Status end; // what reading them ends with

    PlantedSource() {
        run.pid = 4711;
        run.host = "box";
        run.sync_mode = "deferred";
        recording::TrackInfo track;
        track.id = 1;
        track.os_thread = 99;
        track.name = "main";
        track.source = "cpu_tsc";
        all_tracks.push_back(track);
    }

    resolve::Sample& add(resolve::SampleKind kind, std::uint16_t name, std::int64_t begin_ns,
                         std::int64_t duration_ns) {
        resolve::Sample sample;
        sample.kind = kind;
        sample.name = name;
        sample.track = 1;
        sample.begin_ns = origin + begin_ns;
        sample.duration_ns = sample.self_ns = duration_ns;
        samples.push_back(sample);
        return samples.back();
    }

    void add_track(std::uint32_t id, recording::TrackKind kind, const std::string& name, std::uint64_t graph = 0) {
        recording::TrackInfo track;
        track.id = id;
        track.kind = kind;
        track.name = name;
        track.source = kind == recording::TrackKind::captured_graph ? "cuda_graph_event" : "cuda_event";
        track.graph_key = graph;
        all_tracks.push_back(track);
    }
    resolve::Sample& add_device(std::uint32_t track, std::uint16_t name, std::uint64_t step, std::int64_t begin_ns,
                                std::int64_t duration_ns) {
        resolve::Sample& sample = add(resolve::SampleKind::scope, name, begin_ns, duration_ns);
        sample.track = track;
        return place(sample, step, std::nullopt);
    }
    resolve::Submission& submit(std::uint32_t queue, std::uint64_t step, std::int64_t begin_ns,
                                std::int64_t duration_ns) {
        resolve::Submission& made = submissions.emplace_back();
        made.track = 1;
        made.queue = queue;
        made.timed = true;
        made.step = step;
        made.phase = Phase::decode;
        made.begin_ns = origin + begin_ns;
        made.duration_ns = duration_ns;
        made.number = submissions.size();
        return made;
    }
    /// The last sample was begun by the submission of that number.
    void began_by(std::uint64_t number, bool inferred = false) {
        const resolve::Submission& made = submissions.at(number - 1);
        samples.back().launch = static_cast<std::uint32_t>(launches.size());
        launches.push_back({number, made.track, inferred, made.begin_ns, made.begin_ns + made.duration_ns});
    }

    /// One by one: a kernel with a time of its own beside one that overlaps it, a told one, a transfer and a task.
    void add_nodes() {
        const auto node = [this](resolve::RecordedKind kind, std::uint16_t name, std::int64_t begin,
                                 std::int64_t length) {
            resolve::RecordedNode& made = nodes.emplace_back();
            made.kind = kind;
            made.name = name;
            made.step = 7;
            made.phase = Phase::decode;
            made.key = {1, nodes.size()};
            made.begin_ns = origin + begin;
            made.timed = length >= 0;
            made.duration_ns = std::max<std::int64_t>(length, 0);
            made.has_parts = true;
            return &made;
        };
        using resolve::RecordedKind;
        all_names.push_back({300, Category::other, "gemm<\"a\", b>"});
        resolve::RecordedNode* gemm = node(RecordedKind::kernel, 300, 1'000, 500);
        gemm->layer = 3;
        gemm->code_hash = 0xabc;
        gemm->grid = {64, 2};
        gemm->block = {256};
        gemm->shared_bytes = 4096;
        gemm->flops = 1e6;
        node(RecordedKind::kernel, 300, 1'200, 500)->has_parts = false;
        node(RecordedKind::kernel, 300, 2'000, -1)->left_out = true;
        resolve::RecordedNode* copy = node(RecordedKind::transfer, 0, 3'000, 40);
        copy->direction = TransferDirection::device_to_host;
        copy->source = 10; // the target is not known
        copy->transferred = 8192;
        resolve::RecordedNode* task = node(RecordedKind::task, 0, 4'000, -1);
        task->polls = 5;
        task->yields = 2;
        task->polled_ns = 900;
    }

    /// Steps of `layers` layers of two bricks each, in the order in which a resolver delivers them: children first.
    void add_steps(std::uint64_t steps, std::uint32_t layers) {
        std::int64_t now = 7;
        for (std::uint64_t step = 0; step < steps; ++step) {
            const std::int64_t step_begin = now;
            for (std::uint32_t layer = 0; layer < layers; ++layer) {
                const std::int64_t layer_begin = now;
                for (const Brick brick : {Brick::rms_norm, Brick::attention}) {
                    place(add(resolve::SampleKind::scope, Name(brick).id, now, 1001), step, layer);
                    now += 1234;
                }
                place(add(resolve::SampleKind::layer, 0, layer_begin, now - layer_begin), step, layer).leaf = false;
            }
            resolve::Sample& whole = add(resolve::SampleKind::step, 0, step_begin, now - step_begin);
            place(whole, step, std::nullopt).leaf = false;
            now += 10;
        }
    }

    /// REQUIRES: the source outlives it.
    operator SampleFeed() const { // NOLINT(google-explicit-constructor): tests hand a source to an exporter
        const auto facts = std::make_shared<recording::RunFacts>();
        facts->metadata = run;
        facts->tracks = all_tracks;
        facts->names = all_names;
        facts->graphs = all_graphs;
        facts->kernels = all_kernels;
        facts->notes = all_notes;
        facts->descriptions = all_descriptions;
        facts->clock_pairs = {{0, 0, origin, 0, 0}};
        return {facts, [this](const SampleTaker& take) { return give_samples(take); },
                [this](const auto& take) { return give_checks(take); },
                [this](const StepTaker& take) {
                    return give_steps(take);
                }};
    }

  private:
    Status give_samples(const SampleTaker& take) const {
        constexpr std::size_t at_once = 64;
        resolve::ResolvedBatch batch;
        batch.submissions = submissions;
        batch.nodes = nodes;
        batch.dependencies = dependencies;
        batch.requests = requests;
        if (!submissions.empty() || !nodes.empty() || !dependencies.empty() || !requests.empty()) {
            (void)take(batch);
        }
        batch = {};
        batch.launches = launches;
        for (std::size_t at = 0; at < samples.size(); at += at_once) {
            batch.samples = std::span(samples).subspan(at, std::min(at_once, samples.size() - at));
            if (!take(batch)) {
                break;
            }
        }
        return end;
    }
    Status give_checks(const std::function<bool(recording::TensorCheck&&)>& take) const {
        for (const recording::TensorCheck& check : all_checks) {
            if (!take(recording::TensorCheck(check))) {
                break;
            }
        }
        return end;
    }
    Status give_steps(const StepTaker& take) const {
        for (const resolve::ResolvedStep& step : all_steps) {
            if (!take(step, 1)) {
                break;
            }
        }
        return end;
    }
    static resolve::Sample& place(resolve::Sample& sample, std::uint64_t step, std::optional<std::uint32_t> layer) {
        sample.step = step;
        sample.layer = layer;
        sample.phase = Phase::decode;
        return sample;
    }
};

} // namespace plumb::exporting

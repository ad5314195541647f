// SPDX-License-Identifier: Apache-2.0
// Writes a recording of a decode loop of captured graphs, as a run on a GPU leaves it, with every duration known:
// make_graph_recording FILE [lost]. With `lost`, graph 64 lost kernels between its two captures.
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

#include "plumb/bricks.hpp"
#include "recording/writer.hpp"

namespace {

using namespace plumb;
using namespace plumb::recording;

constexpr std::uint64_t us = 1'000, start = 1'000'000'000, step_length = 1'000 * us, device_ahead = 12'345'678;
constexpr std::uint32_t host = 1, queue = 0x80000001, graph_track = 0x80000002;
constexpr std::uint64_t steps = 64, every = 8;

struct Streams {
    std::vector<Record> host, queue, graph;
};

void device_scope(std::vector<Record>& records, Brick brick, std::uint64_t step, std::uint16_t layer_plus_one,
                  std::uint64_t begin, std::uint64_t duration) {
    records.push_back({step + 1, pack(RecordKind::context, layer_plus_one)});
    records.push_back({begin + device_ahead, pack(RecordKind::scope, Name(brick).id, duration)});
    records.push_back({0, pack(RecordKind::context_end)});
}

/// A replay of 700 us, then sampling on the stream itself.
void add_step(Streams& streams, std::uint64_t step) {
    const std::uint64_t t = start + step * step_length;
    const bool sampled = step % every == every - 1;
    streams.host.push_back({t, pack(RecordKind::step_begin, static_cast<std::uint16_t>(Phase::decode), step)});
    streams.host.push_back({1, pack(RecordKind::step_value, static_cast<std::uint16_t>(StepValue::decode_tokens))});
    streams.host.push_back({t + 5 * us, pack(RecordKind::device_submit, 0, 10 * us)});
    const std::uint16_t flags = step == 0 ? launch_first : sampled ? launch_instrumented : std::uint16_t{0};
    streams.host.push_back({64, pack(RecordKind::graph_launch, flags, queue)});
    if (sampled) {
        streams.host.push_back({t + 20 * us, pack(RecordKind::device_submit, 0, 4 * us)});
        streams.host.push_back({step + 1, pack(RecordKind::device_scope, Name(Brick::sampling).id, queue)});
        std::uint64_t now = t + 30 * us;
        for (std::uint16_t layer = 1; layer <= 2; ++layer) {
            device_scope(streams.graph, Brick::rms_norm, step, layer, now, 50 * us);
            device_scope(streams.graph, Brick::attention, step, layer, now + 50 * us, 300 * us);
            now += 350 * us;
        }
        device_scope(streams.queue, Brick::sampling, step, 0, now, 40 * us);
    }
    streams.host.push_back(
        {t, pack(RecordKind::step_end, static_cast<std::uint16_t>(Phase::decode), step_length - 10 * us)});
}

/// In each of two layers a kernel of rms_norm, two of attention, then an all-reduce in no scope: one after the other.
std::shared_ptr<const GraphContent> content() {
    GraphContent made;
    made.kinds = {{CapturedKind::kernel, "rms_kernel", true, {8, 1, 1}, {256, 1, 1}, 0},
                  {CapturedKind::kernel, "score_kernel", true, {64, 2, 1}, {128, 1, 1}, 4096},
                  {CapturedKind::kernel, "mix_kernel", true, {64, 1, 1}, {128, 1, 1}, 0},
                  {CapturedKind::kernel, "nccl_all_reduce"}};
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
        const std::uint32_t site = 2 * layer + 1;
        for (const CapturedNode& node : {CapturedNode{0, site, 0}, CapturedNode{1, site + 1, 0},
                                         CapturedNode{2, site + 1, 0}, CapturedNode{3, 0, 0}}) {
            if (!made.nodes.empty()) {
                const auto last = static_cast<std::uint32_t>(made.nodes.size() - 1);
                made.edges.emplace_back(last, last + 1);
            }
            made.nodes.push_back(node);
        }
    }
    return std::make_shared<const GraphContent>(std::move(made));
}

GraphInfo graph_row(bool lost) {
    GraphInfo row;
    row.key = 64;
    row.track = graph_track;
    row.captures = 2;
    row.instantiations = 1;
    row.updates = 1;
    row.replays = steps;
    row.instrumented = steps / every;
    row.nodes = {{"kernel", lost ? 6u : 8u}};
    row.unattributed = {{"nccl_all_reduce", 2}};
    row.node_checks = 1;
    if (lost) {
        row.node_changes = {{"rope_kernel", 2, 0}};
    }
    for (std::uint16_t layer = 1; layer <= 2; ++layer) {
        row.sites.push_back({Name(Brick::rms_norm).id, layer, 0, 1, true, false});
        row.sites.push_back({Name(Brick::attention).id, layer, 0, 2, true, false});
    }
    row.content = content();
    row.capture_ns = 2e6;
    row.instantiate_ns = 3e6;
    row.launch_ns = steps * 10e3;
    row.twin = "event";
    row.every = every;
    row.site_cost_ns = 1'000;
    row.plain_span_ns = 696e3;
    row.closure_raw = 4.0 / 696;
    row.closure = 0;
    return row;
}

Status write(Writer& writer, bool lost) {
    Streams streams;
    for (std::uint64_t step = 0; step < steps; ++step) {
        add_step(streams, step);
    }
    GraphInfo idle;
    idle.key = 128;
    idle.captures = 1;
    idle.capture_ns = 4e6;
    const TrackInfo tracks[] = {{host, TrackKind::host_thread, 0, 7, "main", "cpu_tsc"},
                                {queue, TrackKind::device_queue, 1, 0, "stream", "cuda_event", every},
                                {graph_track, TrackKind::captured_graph, 1, 0, "graph 64", "cuda_graph_event", 1, 64}};
    Status status;
    const auto then = [&status](Status next) {
        status = status.ok() ? next : status;
    };
    for (const TrackInfo& track : tracks) {
        then(writer.add_track(track));
    }
    for (const std::uint64_t at : {start, start + 1'000'000'000}) {
        then(writer.add_clock_pair({0, at, static_cast<std::int64_t>(at), 0, 0}));
        then(writer.add_clock_pair({1, at + device_ahead, static_cast<std::int64_t>(at), 0, 0}));
    }
    then(writer.add_graph(graph_row(lost)));
    then(writer.add_graph(idle));
    then(writer.append({host, 0, streams.host.data(), streams.host.size()}));
    then(writer.append({queue, 0, streams.queue.data(), streams.queue.size()}));
    then(writer.append({graph_track, 0, streams.graph.data(), streams.graph.size()}));
    then(writer.close());
    return status;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: make_graph_recording FILE [lost]\n");
        return 2;
    }
    Metadata metadata;
    metadata.pid = static_cast<std::uint32_t>(getpid());
    metadata.sync_mode = "deferred";
    metadata.ring_reason = "made by hand";
    metadata.clocks = {{0, "tsc"}, {1, "cuda:0"}};
    WriterOptions options;
    options.path = argv[1];
    auto writer = Writer::create(options, metadata);
    const Status status =
        writer.ok() ? write(**writer, argc > 2 && std::strcmp(argv[2], "lost") == 0) : Status(writer.error());
    if (!status) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
    }
    return status ? 0 : 1;
}

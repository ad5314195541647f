// SPDX-License-Identifier: Apache-2.0
// Writes a recording of a decode loop of captured graphs, as a run on a GPU leaves it, with every duration known:
// make_graph_recording FILE [lost|eager]. With `lost`, graph 64 lost kernels between its two captures; with `eager`, there are no graphs
// and every scope of the device is timed.
#include <cstdio>
#include <memory>
#include <string_view>
#include <unistd.h>

#include "planted/tape.hpp"
#include "plumb/bricks.hpp"

namespace {

using namespace plumb;
using namespace plumb::recording;

constexpr std::int64_t us = 1'000, step_length = 1'000 * us;
constexpr std::uint32_t host = 1, queue = 0x80000001, graph_track = 0x80000002;
constexpr std::int64_t begin_realtime_ns = 1'750'000'000'000'000'000;
constexpr std::uint64_t steps = 64, every = 8;

/// A replay of 700 us, then sampling on the stream itself.
void add_step(planted::Tape& tape, std::uint64_t step) {
    const std::int64_t t = static_cast<std::int64_t>(step) * step_length;
    const bool sampled = step % every == every - 1;
    tape.step_begin(host, step, Phase::decode, t);
    tape.step_value(host, StepValue::decode_tokens, 1);
    const std::uint16_t flags = step == 0 ? launch_first : sampled ? launch_instrumented : std::uint16_t{0};
    tape.launch(host, 64, flags, queue, t + 5 * us, t + 15 * us);
    if (sampled) {
        const auto submission = tape.submit_scope(host, Brick::sampling, queue, t + 20 * us, t + 24 * us);
        std::int64_t now = t + 30 * us;
        for (int layer = 0; layer < 2; ++layer) {
            tape.device_scope(graph_track, Brick::rms_norm, step, layer, now, now + 50 * us);
            tape.device_scope(graph_track, Brick::attention, step, layer, now + 50 * us, now + 350 * us);
            now += 350 * us;
        }
        tape.cause(queue, submission);
        tape.device_scope(queue, Brick::sampling, step, -1, now, now + 40 * us);
    }
    tape.step_end(host, Phase::decode, t, t + step_length - 10 * us);
}

/// Launched 20 us into the step, and again when the host found time for it; each runs 5 us after its launch.
void add_eager_step(planted::Tape& tape, std::uint64_t step) {
    const std::int64_t t = static_cast<std::int64_t>(step) * step_length;
    tape.cpu_time(host, t, t);
    tape.step_begin(host, step, Phase::decode, t);
    tape.step_value(host, StepValue::decode_tokens, 1);
    const auto run = [&](Brick brick, std::int64_t launched, std::int64_t lasting) {
        const auto submission = tape.submit_scope(host, brick, queue, launched, launched + 10 * us);
        tape.cause(queue, submission);
        tape.device_scope(queue, brick, step, -1, launched + 15 * us, launched + 15 * us + lasting);
    };
    run(Brick::attention, t + 20 * us, 400 * us);
    tape.scope(host, Brick::sampling, t + 440 * us, t + 500 * us);
    run(Brick::lm_head, t + 520 * us, (300 + static_cast<std::int64_t>(step % 7)) * us);
    tape.step_end(host, Phase::decode, t, t + step_length - 10 * us);
    tape.cpu_time(host, t + step_length - 10 * us, t + step_length - 10 * us);
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

planted::Tape begun() {
    planted::Tape tape;
    tape.metadata_.pid = static_cast<std::uint32_t>(getpid());
    tape.metadata_.warmup_steps = Metadata().warmup_steps;
    tape.metadata_.sync_mode = "deferred";
    tape.metadata_.ring_reason = "made by hand";
    tape.track(host);
    return tape;
}

void set_realtime(planted::Tape& tape) {
    for (ClockPair& pair : tape.clock_pairs_) {
        pair.realtime_ns = begin_realtime_ns + pair.monotonic_ns;
    }
}

planted::Tape recorded_eager() {
    planted::Tape tape = begun();
    tape.device_track({queue, TrackKind::device_queue, 1, 0, "stream", "cuda_event", 1});
    set_realtime(tape);
    for (std::uint64_t step = 0; step < 3 * steps; ++step) {
        add_eager_step(tape, step);
    }
    return tape;
}

planted::Tape recorded(bool lost) {
    planted::Tape tape = begun();
    tape.device_track({queue, TrackKind::device_queue, 1, 0, "stream", "cuda_event", every});
    tape.device_track({graph_track, TrackKind::captured_graph, 1, 0, "graph 64", "cuda_graph_event", 1, 64});
    set_realtime(tape);
    GraphInfo idle;
    idle.key = 128;
    idle.captures = 1;
    idle.capture_ns = 4e6;
    tape.graphs_ = {graph_row(lost), idle};
    for (std::uint64_t step = 0; step < steps; ++step) {
        add_step(tape, step);
    }
    return tape;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: make_graph_recording FILE [lost|eager]\n");
        return 2;
    }
    const std::string_view kind = argc > 2 ? argv[2] : "";
    const Status status = (kind == "eager" ? recorded_eager() : recorded(kind == "lost")).save(argv[1]);
    if (!status) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
    }
    return status ? 0 : 1;
}

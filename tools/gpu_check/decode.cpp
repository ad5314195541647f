// SPDX-License-Identifier: Apache-2.0
// What profiling a decode step costs, and how much of it is explained. Two processes take turns, block by block, on off off on:
// one with the profiler at its default rates, one that has none. Each is stopped in the other's turn, so that work which the
// profiler leaves to its own thread is paid in its own blocks. Then closure, coverage and rotation from the report.
#include <cmath>
#include <optional>

#include "child.hpp"
#include "decode_model.hpp"
#include "plumb/cuda.hpp"
#include "profiled_graph.hpp"

namespace gpu_check {
namespace {

constexpr std::uint64_t graph_key = 1;
constexpr int steps_before = 2; // of a block, not counted: caches and clocks after the other's turn

std::size_t steps_of(const Options& options) { return options.tiny ? 8 : 32; }
const Shape& shape_of(const Options& options, unsigned index) {
    return options.tiny ? tiny_shapes[index] : shapes[index];
}

/// Wall times of one kind of step, and the means of its blocks.
struct Side {
    std::vector<double> steps, blocks;
};

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    return sum / static_cast<double>(values.size());
}

void run_block(Partner& partner, char what, std::size_t steps, Side& side) {
    const std::vector<double> block = partner.ask(what, steps);
    expect(!block.empty(), "a process of the decode step has ended before its time");
    side.steps.insert(side.steps.end(), block.begin(), block.end());
    side.blocks.push_back(mean_of(block));
}

struct Pair {
    Partner on, off;
    std::size_t steps;

    void take_turns(char what, double seconds, Side& with, Side& without) {
        const std::int64_t end = host_ns() + static_cast<std::int64_t>(seconds * 1e9);
        for (int turn = 0; host_ns() < end || turn % 2 == 1; ++turn) {
            if (turn % 2 == 0) {
                run_block(on, what, steps, with);
                run_block(off, what, steps, without);
            } else {
                run_block(off, what, steps, without);
                run_block(on, what, steps, with);
            }
        }
    }
};

void write_overhead(const ResultFile& results, const std::string& name, const Side& on, const Side& off,
                    const Json& at) {
    results.figure(name + ".step_on", spread_of(on.steps), "ns", at);
    results.figure(name + ".step_off", spread_of(off.steps), "ns", at);
    std::vector<double> slower;
    for (std::size_t i = 0; i < std::min(on.blocks.size(), off.blocks.size()); ++i) {
        slower.push_back((on.blocks[i] / off.blocks[i] - 1) * 100);
    }
    const double mean = mean_of(slower);
    double square = 0;
    for (const double value : slower) {
        square += (value - mean) * (value - mean);
    }
    const auto pairs = static_cast<double>(slower.size());
    results.figure(name + ".slower_mean", mean, "%", at);
    results.figure(name + ".slower_median", spread_of(slower).median, "%", at);
    if (slower.size() > 1) {
        results.figure(name + ".slower_standard_error", std::sqrt(square / (pairs - 1) / pairs), "%", at);
    }
}

void write_report(const ResultFile& results, const plumb::Report& report, const Json& at, double bytes) {
    for (const plumb::GraphSummary& graph : report.graphs) {
        results.figure("replay.sampled", static_cast<double>(graph.sampled_replays), "1", at);
        results.figure("replay.counted", static_cast<double>(graph.replays), "1", at);
        results.figure("replay.sites", static_cast<double>(graph.sites), "1", at);
        results.figure("replay.sites_timed", static_cast<double>(graph.sites_timed), "1", at);
        put(results, "replay.plain_span", graph.plain_span_ns, "ns", at);
        put(results, "replay.sites_sum_raw", graph.raw_sites_ns, "ns", at);
        put(results, "replay.sites_sum", graph.sites_ns, "ns", at);
        put(results, "replay.closure_raw", graph.closure_raw, "%", at, 100);
        put(results, "replay.closure", graph.closure, "%", at, 100);
        if (graph.plain_span_ns.value) {
            results.figure("replay.bandwidth", bytes / *graph.plain_span_ns.value, "GB/s", at);
        }
        std::uint64_t unattributed = 0;
        for (const auto& [kernel, nodes] : graph.unattributed) {
            unattributed += nodes;
        }
        results.figure("replay.nodes_in_no_scope", static_cast<double>(unattributed), "1", at);
        results.text("replay.source", graph.source);
    }
    if (report.graphs.empty()) {
        results.absent("replay.closure", "the report has no graph", at);
    }
    for (const plumb::Row& row : report.graph_bricks) {
        Json where = at;
        where["brick"] = row.key.name;
        put(results, "replay.brick", row.time.p50_ns, "ns", where);
    }
    for (const plumb::LossRow& loss : report.losses) {
        results.note(std::to_string(loss.count) + " lost: " + loss.reason);
    }
    for (const std::string& note : report.notes) {
        results.note(note);
    }
}

std::vector<double> block_of(std::size_t steps, const auto& step) {
    std::vector<double> took;
    for (int i = 0; i < steps_before; ++i) {
        step();
    }
    for (std::size_t i = 0; i < steps; ++i) {
        const std::int64_t before = host_ns();
        step();
        took.push_back(static_cast<double>(host_ns() - before));
    }
    return took;
}

void answer_with_profiler(Gpu& gpu, const ResultFile& results, const Options& options, const Shape& shape,
                          DecodeModel& model) {
    const Json at = {{"model", shape.name}};
    const std::unique_ptr<plumb::Profiler> profiler = profiler_of(options, "decode-" + std::to_string(shape.layers));
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    std::optional<ProfiledGraph> graph;
    graph.emplace(gpu, *profiler, graph_key, [&] { model.enqueue(profiler.get(), queue, gpu.stream); });
    results.figure("step.kernels", static_cast<double>(model.bricks().size()), "1", at);
    results.figure("step.bytes", model.bytes_per_step(), "bytes", at);
    results.figure("weights", model.weight_bytes(), "bytes", at);
    static_cast<void>(graph->launch_until_timed(5)); // the twin is built and calibrated before anything is compared
    const auto eager_step = [&] {
        PLUMB_STEP(*profiler, queue, plumb::Phase::decode, plumb::tokens(1));
        model.enqueue(profiler.get(), queue, gpu.stream);
        gpu.wait();
    };
    for (char what = 0; next_question(what);) {
        if (what == 'r') {
            answer(block_of(steps_of(options), [&] { graph->launch_and_wait(); }));
        } else if (what == 'e') {
            if (graph) { // the last replay
                write_report(results, report_of(*profiler), at, model.bytes_per_step());
                graph.reset();
            }
            answer(block_of(steps_of(options), eager_step));
        } else {
            expect(profiler->close().ok(), "the recording could not be closed");
            answer({1});
        }
    }
}

void answer_without(Gpu& gpu, const Options& options, DecodeModel& model) {
    OwnedGraph graph(gpu);
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    model.enqueue(nullptr, plumb::host, gpu.stream);
    gpu.must(gpu.d.stream_end_capture(gpu.stream, graph.out()), "cuStreamEndCapture");
    const OwnedExec exec = instantiate(gpu, graph);
    gpu.must(gpu.d.graph_upload(exec, gpu.stream), "cuGraphUpload");
    for (char what = 0; next_question(what);) {
        answer(block_of(steps_of(options), [&] {
            if (what == 'r') {
                gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
            } else {
                model.enqueue(nullptr, plumb::host, gpu.stream);
            }
            gpu.wait();
        }));
    }
}

std::vector<std::string> words_of(const ResultFile& results, const Options& options, const char* side, unsigned index) {
    std::vector<std::string> words = {"decode-side",  side,        std::to_string(index), "--out",
                                      results.path(), "--scratch", options.scratch};
    if (options.tiny) {
        words.emplace_back("--tiny");
    }
    return words;
}

} // namespace

void run_decode_side(const ResultFile& results, const Options& options, bool profiled, unsigned index) {
    Gpu gpu;
    const Shape& shape = shape_of(options, index);
    DecodeModel model(gpu, shape);
    if (profiled) {
        answer_with_profiler(gpu, results, options, shape, model);
    } else {
        answer_without(gpu, options, model);
    }
}

void run_decode(const ResultFile& results, const Options& options) {
    const double seconds = options.tiny ? 1 : 16;
    for (unsigned index = 0; index < (options.tiny ? std::size(tiny_shapes) : std::size(shapes)); ++index) {
        const Json at = {{"model", shape_of(options, index).name}};
        Pair pair{Partner(words_of(results, options, "on", index)), Partner(words_of(results, options, "off", index)),
                  steps_of(options)};
        Side warm_on, warm_off, on, off, eager_on, eager_off;
        pair.take_turns('r', seconds / 5, warm_on, warm_off); // builds the twin, calibrates
        pair.take_turns('r', seconds, on, off);
        write_overhead(results, "replayed", on, off, at);
        pair.take_turns('e', seconds / 3, eager_on, eager_off);
        write_overhead(results, "eager", eager_on, eager_off, at);
        expect(!pair.on.ask('x', 1).empty(), "the process with the profiler did not come to its end");
    }
}

} // namespace gpu_check

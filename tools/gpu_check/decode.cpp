// SPDX-License-Identifier: Apache-2.0
// What profiling a decode step costs, and how much of it is explained: steps with the profiler on and off in blocks that
// take turns (on off off on), replayed and eager, at the library's default rates. Then closure, coverage and rotation from
// the library's own report.
#include <cmath>

#include "decode_model.hpp"
#include "plumb/cuda.hpp"
#include "plumb/profiler.hpp"
#include "sections.hpp"

namespace gpu_check {
namespace {

constexpr std::uint64_t graph_key = 1;

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

template <class Step>
void run_block(Side& side, int steps, Step step) {
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
        const std::int64_t before = host_ns();
        step();
        side.steps.push_back(static_cast<double>(host_ns() - before));
        sum += side.steps.back();
    }
    side.blocks.push_back(sum / steps);
}

template <class On, class Off>
void take_turns(Side& on, Side& off, double seconds, int steps, On on_step, Off off_step) {
    const std::int64_t end = host_ns() + static_cast<std::int64_t>(seconds * 1e9);
    for (int turn = 0; host_ns() < end || turn % 2 == 1; ++turn) {
        if (turn % 2 == 0) {
            run_block(on, steps, on_step);
            run_block(off, steps, off_step);
        } else {
            run_block(off, steps, off_step);
            run_block(on, steps, on_step);
        }
    }
}

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

void put(const ResultFile& results, const std::string& name, const plumb::Figure& figure, const char* unit,
         const Json& at, double scale = 1) {
    if (figure.value) {
        results.figure(name, *figure.value * scale, unit, at);
    } else {
        results.absent(name, figure.reason, at);
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

void replayed(Gpu& gpu, const ResultFile& results, DecodeModel& model, plumb::Profiler& profiler, const Json& at,
              double seconds, int steps) {
    OwnedGraph graph(gpu);
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    model.enqueue(profiler, plumb::cuda(gpu.stream), gpu.stream);
    gpu.must(gpu.d.stream_end_capture(gpu.stream, graph.out()), "cuStreamEndCapture");
    plumb::Result<plumb::GraphProbe> probe = profiler.graph_captured(graph_key, graph);
    expect(probe.ok(), probe.ok() ? "" : "graph_captured: " + probe.error().message);
    const OwnedExec exec = instantiate(gpu, graph);
    gpu.must(gpu.d.graph_upload(exec, gpu.stream), "cuGraphUpload");
    results.figure("step.kernels", model.kernels(), "1", at);
    results.figure("step.bytes", model.bytes_per_step(), "bytes", at);
    results.figure("weights", model.weight_bytes(), "bytes", at);
    const auto off_step = [&] {
        gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
        gpu.wait();
    };
    const auto on_step = [&] {
        PLUMB_STEP(profiler, plumb::host, plumb::Phase::decode, plumb::tokens(1));
        const plumb::Status launched = probe->launch(exec, gpu.stream);
        expect(launched.ok(), launched.ok() ? "" : launched.error().message);
        gpu.wait();
    };
    Side warm_on, warm_off;
    take_turns(warm_on, warm_off, seconds / 5, steps, on_step, off_step); // builds the twin, calibrates
    Side on, off;
    take_turns(on, off, seconds, steps, on_step, off_step);
    write_overhead(results, "replayed", on, off, at);
    expect(profiler.flush().ok(), "the profiler could not be flushed");
    const plumb::Result<plumb::Report> report = profiler.snapshot();
    expect(report.ok(), report.ok() ? "" : report.error().message);
    write_report(results, *report, at, model.bytes_per_step());
    profiler.graph_evicted(graph_key);
    gpu.wait();
}

void eager(Gpu& gpu, const ResultFile& results, DecodeModel& model, plumb::Profiler& profiler, const Json& at,
           double seconds, int steps) {
    plumb::Profiler none{plumb::Config{}};
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    const auto step = [&](plumb::Profiler& by) {
        PLUMB_STEP(by, queue, plumb::Phase::decode, plumb::tokens(1));
        model.enqueue(by, queue, gpu.stream);
        gpu.wait();
    };
    Side on, off, warm;
    run_block(warm, steps, [&] { step(profiler); });
    take_turns(
        on, off, seconds, steps, [&] { step(profiler); }, [&] { step(none); });
    write_overhead(results, "eager", on, off, at);
}

plumb::Config config_of(const Options& options, const char* name) {
    plumb::Result<plumb::Config> config = plumb::Config::parse("on,out=" + options.scratch + "/" + name + ".plumb");
    expect(config.ok(), config.ok() ? "" : config.error().message);
    return *config;
}

} // namespace

void run_decode(const ResultFile& results, const Options& options) {
    constexpr Shape shapes[] = {
        {"0.5b, 24 layers", 24, 896, 128, 4864, 151'936, 2048},
        {"8b, 32 layers", 32, 4096, 1024, 14'336, 128'256, 2048},
    };
    constexpr Shape tiny_shape = {"tiny, 4 layers", 4, 64, 64, 128, 256, 64};
    Gpu gpu;
    const double seconds = options.tiny ? 1 : 18;
    const int steps = options.tiny ? 8 : 32;
    for (const Shape& shape : shapes) {
        const Shape& used = options.tiny ? tiny_shape : shape;
        const Json at = {{"model", used.name}};
        DecodeModel model(gpu, used);
        plumb::Profiler profiler(config_of(options, options.tiny ? "tiny" : (&shape == shapes ? "small" : "large")));
        expect(profiler.status().ok(), profiler.status().ok() ? "" : profiler.status().error().message);
        replayed(gpu, results, model, profiler, at, seconds, steps);
        eager(gpu, results, model, profiler, at, seconds / 3, steps);
        expect(profiler.close().ok(), "the recording could not be closed");
        if (options.tiny) {
            break;
        }
    }
}

} // namespace gpu_check

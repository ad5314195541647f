// SPDX-License-Identifier: Apache-2.0
// How long cuGraphLaunch keeps the engine's thread while the library builds twins on its own: first without a profiler, then
// over the first launches of graph after graph, then when all twins are there.
#include "plumb/cuda.hpp"
#include "profiled_graph.hpp"

namespace gpu_check {
namespace {

void write_launches(const ResultFile& results, const char* when, const std::vector<double>& launches) {
    const Json at = {{"when", when}};
    results.figure("launch.host", spread_of(launches), "ns", at);
    results.figure("launch.host_p99_9", quantile_of(launches, 0.999), "ns", at);
}

} // namespace

void run_stall(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const unsigned kernels = options.tiny ? 20 : 300, graphs = options.tiny ? 3 : 24;
    const int launches = options.tiny ? 30 : 200; // of each graph at least, and for so long:
    const std::int64_t least_ns = options.tiny ? 50'000'000 : 150'000'000;
    const auto enqueue = [&] {
        for (unsigned i = 0; i < kernels; ++i) {
            gpu.launch_empty(gpu.stream);
        }
    };
    std::vector<double> none, building, settled;
    {
        OwnedGraph graph(gpu);
        gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
        enqueue();
        gpu.must(gpu.d.stream_end_capture(gpu.stream, graph.out()), "cuStreamEndCapture");
        const OwnedExec exec = instantiate(gpu, graph);
        for (int i = 0; i < launches * static_cast<int>(graphs); ++i) {
            const std::int64_t before = host_ns();
            gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
            none.push_back(static_cast<double>(host_ns() - before));
            gpu.wait();
        }
    }
    const auto profiler = profiler_of(options, "stall", "graph.every=16");
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    std::vector<std::unique_ptr<ProfiledGraph>> profiled;
    const auto launch = [&](ProfiledGraph& graph, std::vector<double>& into) {
        const std::int64_t until = host_ns() + least_ns;
        for (int i = 0; i < launches || host_ns() < until; ++i) {
            into.push_back(graph.launch());
            gpu.wait();
        }
    };
    for (unsigned key = 1; key <= graphs; ++key) {
        profiled.push_back(std::make_unique<ProfiledGraph>(gpu, *profiler, key, [&] {
            for (unsigned i = 0; i < kernels; ++i) {
                PLUMB_BRICK(*profiler, queue, plumb::Brick::rms_norm);
                gpu.launch_empty(gpu.stream);
            }
        }));
        launch(*profiled.back(), building);
    }
    for (const auto& graph : profiled) {
        launch(*graph, settled);
    }
    write_launches(results, "no profiler", none);
    write_launches(results, "twins are built", building);
    write_launches(results, "twins are there", settled);
    std::uint64_t sampled = 0;
    for (const plumb::GraphSummary& summary : report_of(*profiler).graphs) {
        sampled += summary.sampled_replays;
    }
    results.figure("launch.sampled", static_cast<double>(sampled), "1");
    profiled.clear();
    expect(profiler->close().ok(), "the recording could not be closed");
}

} // namespace gpu_check

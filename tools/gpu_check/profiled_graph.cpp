// SPDX-License-Identifier: Apache-2.0
#include "profiled_graph.hpp"

namespace gpu_check {

std::unique_ptr<plumb::Profiler> profiler_of(const Options& options, const std::string& name,
                                             const std::string& settings) {
    plumb::Result<plumb::Config> config = plumb::Config::parse("on,out=" + options.scratch + "/" + name + ".plumb" +
                                                               (settings.empty() ? "" : "," + settings));
    expect(config.ok(), config.ok() ? "" : config.error().message);
    auto profiler = std::make_unique<plumb::Profiler>(*config);
    expect(profiler->status().ok(), profiler->status().ok() ? "" : profiler->status().error().message);
    return profiler;
}

plumb::Report report_of(plumb::Profiler& profiler) {
    expect(profiler.flush().ok(), "the profiler could not be flushed");
    plumb::Result<plumb::Report> report = profiler.snapshot();
    expect(report.ok(), report.ok() ? "" : report.error().message);
    return std::move(*report);
}

void put(const ResultFile& results, const std::string& name, const plumb::Figure& figure, const char* unit,
         const Json& at, double scale) {
    if (figure.value) {
        results.figure(name, *figure.value * scale, unit, at);
    } else {
        results.absent(name, figure.reason, at);
    }
}

ProfiledGraph::ProfiledGraph(Gpu& gpu, plumb::Profiler& profiler, std::uint64_t key,
                             const std::function<void()>& enqueue, const std::function<void(Graph)>& edit)
    : gpu_(gpu), profiler_(profiler), key_(key), graph_(gpu), exec_(gpu) {
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    enqueue();
    gpu.must(gpu.d.stream_end_capture(gpu.stream, graph_.out()), "cuStreamEndCapture");
    if (edit) {
        edit(graph_);
    }
    plumb::Result<plumb::GraphProbe> probe = profiler.graph_captured(key, graph_);
    expect(probe.ok(), probe.ok() ? "" : "graph_captured: " + probe.error().message);
    probe_ = *probe;
    exec_ = instantiate(gpu, graph_);
    gpu.must(gpu.d.graph_upload(exec_, gpu.stream), "cuGraphUpload");
    gpu.wait();
}

ProfiledGraph::~ProfiledGraph() {
    static_cast<void>(gpu_.d.stream_synchronize(gpu_.stream));
    profiler_.graph_evicted(key_);
}

double ProfiledGraph::launch() {
    PLUMB_STEP(profiler_, plumb::host, plumb::Phase::decode, plumb::tokens(1));
    const std::int64_t before = host_ns();
    const plumb::Status launched = probe_.launch(exec_, gpu_.stream);
    const auto took = static_cast<double>(host_ns() - before);
    expect(launched.ok(), launched.ok() ? "" : launched.error().message);
    return took;
}

std::uint64_t ProfiledGraph::launch_until_timed(double seconds) {
    std::uint64_t launches = 0;
    const std::int64_t end = host_ns() + static_cast<std::int64_t>(seconds * 1e9);
    for (bool timed = false; !timed && host_ns() < end;) {
        for (int i = 0; i < 50; ++i, ++launches) {
            launch_and_wait();
        }
        for (const plumb::GraphSummary& summary : report_of(profiler_).graphs) {
            timed = timed || (summary.key == key_ && summary.sites > 0 && summary.sites_timed == summary.sites);
        }
    }
    return launches;
}

void ProfiledGraph::launch_and_wait() {
    PLUMB_STEP(profiler_, plumb::host, plumb::Phase::decode, plumb::tokens(1));
    const plumb::Status launched = probe_.launch(exec_, gpu_.stream);
    expect(launched.ok(), launched.ok() ? "" : launched.error().message);
    gpu_.wait();
}

} // namespace gpu_check

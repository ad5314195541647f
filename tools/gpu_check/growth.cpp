// SPDX-License-Identifier: Apache-2.0
// What a graph costs as it grows: host time of capture, instantiation, upload (once against before each launch), launch
// and destruction, and device memory per executable.
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

double timed(const auto& body) {
    const std::int64_t before = host_ns();
    body();
    return static_cast<double>(host_ns() - before);
}

struct Costs {
    std::vector<double> capture, instantiate, upload_first, upload_again, launch_cold, launch_uploaded, launch_later,
        launch_with_upload, update, destroy;
};

OwnedGraph captured(Gpu& gpu, unsigned nodes) {
    OwnedGraph graph(gpu);
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    for (unsigned i = 0; i < nodes; ++i) {
        gpu.launch_empty(gpu.stream);
    }
    gpu.must(gpu.d.stream_end_capture(gpu.stream, graph.out()), "cuStreamEndCapture");
    return graph;
}

void measure_once(Gpu& gpu, unsigned nodes, Costs& costs) {
    OwnedGraph graph(gpu);
    costs.capture.push_back(timed([&] { graph = captured(gpu, nodes); }));
    OwnedExec cold(gpu), uploaded(gpu);
    costs.instantiate.push_back(timed([&] { cold = instantiate(gpu, graph); }));
    const auto launch = [&](GraphExec exec) {
        const double took = timed([&] { gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch"); });
        gpu.wait();
        return took;
    };
    const auto upload = [&](GraphExec exec) {
        return timed([&] {
            gpu.must(gpu.d.graph_upload(exec, gpu.stream), "cuGraphUpload");
            gpu.wait();
        });
    };
    costs.launch_cold.push_back(launch(cold));
    uploaded = instantiate(gpu, graph);
    costs.upload_first.push_back(upload(uploaded));
    costs.launch_uploaded.push_back(launch(uploaded));
    for (int i = 0; i < 5; ++i) {
        costs.launch_later.push_back(launch(uploaded));
    }
    for (int i = 0; i < 5; ++i) {
        costs.upload_again.push_back(upload(uploaded));
        costs.launch_with_upload.push_back(launch(uploaded));
    }
    ExecUpdateInfo info{};
    costs.update.push_back(timed([&] { gpu.must(gpu.d.exec_update(cold, graph, &info), "cuGraphExecUpdate"); }));
    costs.destroy.push_back(timed([&] { cold.reset(); }));
}

/// Device memory that many executables take, and what the library's rule of thumb is fitted on.
void memory(Gpu& gpu, const ResultFile& results, unsigned nodes, unsigned copies) {
    const OwnedGraph graph = captured(gpu, nodes);
    std::size_t before = 0, after = 0, total = 0;
    std::vector<OwnedExec> execs;
    gpu.must(gpu.d.mem_get_info(&before, &total), "cuMemGetInfo");
    for (unsigned i = 0; i < copies; ++i) {
        execs.push_back(instantiate(gpu, graph));
        gpu.must(gpu.d.graph_upload(execs.back(), gpu.stream), "cuGraphUpload");
    }
    gpu.wait();
    gpu.must(gpu.d.mem_get_info(&after, &total), "cuMemGetInfo");
    const Json at = {{"nodes", nodes}, {"copies", copies}};
    const double taken = static_cast<double>(before) - static_cast<double>(after);
    results.figure("exec.bytes", taken / copies, "bytes", at);
    results.figure("node.bytes", taken / copies / nodes, "bytes", at);
}

} // namespace

void run_growth(const ResultFile& results, const Options& options) {
    Gpu gpu;
    gpu.launch_empty(gpu.stream);
    gpu.wait();
    for (const unsigned nodes : {10U, 30U, 100U, 300U, 1000U, 3000U}) {
        if (options.tiny && nodes > 300) {
            break;
        }
        Costs costs;
        for (int i = 0; i < (options.tiny ? 2 : 9); ++i) {
            measure_once(gpu, nodes, costs);
        }
        const Json at = {{"nodes", nodes}};
        const std::pair<const char*, const std::vector<double>*> rows[] = {
            {"capture", &costs.capture},
            {"instantiate", &costs.instantiate},
            {"upload.first", &costs.upload_first},
            {"upload.again", &costs.upload_again},
            {"launch.not_uploaded", &costs.launch_cold},
            {"launch.uploaded", &costs.launch_uploaded},
            {"launch.later", &costs.launch_later},
            {"launch.after_upload_again", &costs.launch_with_upload},
            {"update", &costs.update},
            {"destroy", &costs.destroy},
        };
        for (const auto& [name, samples] : rows) {
            results.figure(name, spread_of(*samples), "ns", at);
        }
        memory(gpu, results, nodes, options.tiny ? 4 : 32);
    }
}

} // namespace gpu_check

// SPDX-License-Identifier: Apache-2.0
// Our times of the bricks of a decode step against the kernel times of the vendor's tracer, of the same graph: first replays
// with stamps and no tracer, then plain replays that it traces. Ours run from border to border, so the tracer's are taken from a
// kernel's start to the next one's. What it slows down outlives it: that part comes second, and the process ends.
#include <algorithm>
#include <map>

#include "cupti_libraries.hpp"
#include "decode_model.hpp"
#include "plumb/cuda.hpp"
#include "profiled_graph.hpp"

namespace gpu_check {
namespace {

constexpr double bound_percent = 2, bound_per_kernel_ns = 500; // whichever is larger

const char* name_of(plumb::Brick brick) {
    switch (brick) {
#define PLUMB_CHECK_BRICK(name, id, category, aliases) \
    case plumb::Brick::name:                           \
        return #name;
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_CHECK_BRICK)
#undef PLUMB_CHECK_BRICK
    default:
        return "";
    }
}

/// What the report says of one replay.
struct Ours {
    std::map<std::string, double> bricks;
    double sum = 0;
    plumb::Figure plain_span;
    std::map<std::string, std::uint64_t> in_no_scope; // nodes by kernel
};

Ours our_times(Gpu& gpu, const Options& options, DecodeModel& model, int replays) {
    const auto profiler = profiler_of(options, "coverage", "graph.every=2");
    Ours ours;
    {
        const plumb::Queue queue = plumb::cuda(gpu.stream);
        ProfiledGraph graph(gpu, *profiler, 1, [&] { model.enqueue(profiler.get(), queue, gpu.stream); });
        static_cast<void>(graph.launch_until_timed(10));
        for (int i = 0; i < replays; ++i) {
            graph.launch_and_wait();
        }
        const plumb::Report report = report_of(*profiler);
        expect(report.graphs.size() == 1 && report.graphs[0].sampled_replays > 0,
               report.graphs.empty() ? "the report has no graph" : "no replay was sampled: " + report.graphs[0].source);
        const double per_step = report.graphs[0].replays_per_step;
        for (const plumb::Row& row : report.graph_bricks) {
            ours.bricks[row.key.name] += row.sum_per_step_ns / per_step;
            ours.sum += row.sum_per_step_ns / per_step;
        }
        ours.plain_span = report.graphs[0].plain_span_ns;
        ours.in_no_scope = {report.graphs[0].unattributed.begin(), report.graphs[0].unattributed.end()};
    }
    expect(profiler->close().ok(), "the recording could not be closed");
    return ours;
}

/// Replays of which every kernel was seen, each in the order in which it ran.
std::vector<std::vector<TracedKernel>> whole_replays(const KernelTrace& trace, std::size_t kernels) {
    std::map<std::uint32_t, std::vector<TracedKernel>> launches;
    for (const TracedKernel& kernel : trace.kernels) {
        if (kernel.graph_node_id != 0) {
            launches[kernel.correlation].push_back(kernel);
        }
    }
    std::vector<std::vector<TracedKernel>> whole;
    for (auto& [correlation, launch] : launches) {
        if (launch.size() == kernels) {
            std::sort(launch.begin(), launch.end(),
                      [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
            whole.push_back(std::move(launch));
        }
    }
    return whole;
}

void compare(const ResultFile& results, const Ours& ours, const std::vector<plumb::Brick>& bricks,
             const std::vector<std::vector<TracedKernel>>& replays, const Json& at) {
    std::map<std::string, std::vector<double>> theirs;
    std::map<std::string, double> kernels_of;
    std::map<std::string, std::pair<double, double>> busy_of; // by kernel: time, records
    std::vector<double> spans;
    for (const plumb::Brick brick : bricks) {
        kernels_of[name_of(brick)] += 1;
    }
    for (const std::vector<TracedKernel>& replay : replays) {
        std::map<std::string, double> sums;
        for (std::size_t i = 0; i < replay.size(); ++i) {
            const std::uint64_t end = i + 1 < replay.size() ? replay[i + 1].begin_ns : replay[i].end_ns;
            sums[name_of(bricks[i])] += static_cast<double>(end - replay[i].begin_ns);
            busy_of[replay[i].name].first += static_cast<double>(replay[i].end_ns - replay[i].begin_ns);
            busy_of[replay[i].name].second += 1;
        }
        for (const auto& [name, sum] : sums) {
            theirs[name].push_back(sum);
        }
        spans.push_back(static_cast<double>(replay.back().end_ns - replay.front().begin_ns));
    }
    double busy = 0, outside_busy = 0;
    for (const auto& [kernel, time] : busy_of) {
        const auto found = ours.in_no_scope.find(kernel);
        busy += time.first / static_cast<double>(replays.size());
        outside_busy +=
            found != ours.in_no_scope.end() ? time.first / time.second * static_cast<double>(found->second) : 0;
    }
    double outside = 0;
    for (const auto& [name, sums] : theirs) {
        const Json where = {{"model", at["model"]}, {"brick", name}};
        const double their_time = spread_of(sums).median, kernels = kernels_of[name];
        results.figure("coverage.their_brick", spread_of(sums), "ns", where);
        if (name == name_of(bricks.back())) {
            results.absent("coverage.brick_off", "its last kernel has no next one", where);
            continue;
        }
        const auto our_time = ours.bricks.find(name);
        if (our_time == ours.bricks.end()) {
            results.absent("coverage.brick_off", "the report has no such brick", where);
            ++outside;
            continue;
        }
        const double off = our_time->second - their_time;
        results.figure("coverage.our_brick", our_time->second, "ns", where);
        results.figure("coverage.brick_off", off / their_time * 100, "%", where);
        results.figure("coverage.brick_off_per_kernel", off / kernels, "ns", where);
        outside += std::abs(off) > std::max(their_time * bound_percent / 100, kernels * bound_per_kernel_ns) ? 1 : 0;
    }
    const Spread span = spread_of(spans);
    results.figure("coverage.bricks", static_cast<double>(theirs.size()), "1", at);
    results.figure("coverage.bricks_outside", outside, "1", at);
    results.figure("coverage.kernel_time_in_scopes", (1 - outside_busy / busy) * 100, "%", at);
    results.figure("coverage.explained", ours.sum / span.median * 100, "%", at);
    results.figure("coverage.their_span", span, "ns", at);
    put(results, "coverage.our_span", ours.plain_span, "ns", at);
}

} // namespace

void run_coverage(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const int replays = options.tiny ? 60 : 400;
    std::vector<std::unique_ptr<DecodeModel>> models;
    std::vector<Ours> ours;
    std::vector<const Shape*> used;
    for (const Shape& shape : shapes) {
        used.push_back(options.tiny ? tiny_shapes : &shape);
        models.push_back(std::make_unique<DecodeModel>(gpu, *used.back()));
        ours.push_back(our_times(gpu, options, *models.back(), replays));
        if (options.tiny) {
            break;
        }
    }
    for (std::size_t i = 0; i < models.size(); ++i) {
        const Json at = {{"model", used[i]->name}};
        plumb::Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(cupti_options(options));
        if (!reader.ok()) {
            throw NotApplicable{reader.error().message};
        }
        OwnedGraph graph(gpu);
        gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
        models[i]->enqueue(nullptr, plumb::host, gpu.stream);
        gpu.must(gpu.d.stream_end_capture(gpu.stream, graph.out()), "cuStreamEndCapture");
        const OwnedExec exec = instantiate(gpu, graph);
        for (int replay = 0; replay < replays / 2; ++replay) {
            gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
            gpu.wait();
        }
        const plumb::Result<KernelTrace> trace = (*reader)->stop();
        expect(trace.ok(), trace.ok() ? "" : trace.error().message);
        const auto whole = whole_replays(*trace, models[i]->bricks().size());
        results.figure("coverage.replays", static_cast<double>(whole.size()), "1", at);
        if (whole.empty()) {
            results.absent("coverage.explained",
                           "the tracer saw no replay whole: " + std::to_string(trace->kernels.size()) + " kernels", at);
            continue;
        }
        compare(results, ours[i], models[i]->bricks(), whole, at);
    }
}

} // namespace gpu_check

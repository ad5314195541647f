// SPDX-License-Identifier: Apache-2.0
// The vendor's tracer, where it is found: last, and in a process of its own, because its slowdown outlives it. A chain of
// memory-bound kernels with an event after each: our time of a kernel is from event to event, the tracer's from a kernel's
// start to the next one's; both hold the gap and the event.
#include "cupti_libraries.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

namespace files = std::filesystem;

void add_libraries_in(const files::path& folder, std::vector<std::string>& found) {
    std::error_code ignored;
    for (const auto& file : files::directory_iterator(folder, ignored)) {
        if (file.path().filename().string().rfind("libcupti.so", 0) == 0) {
            found.push_back(file.path().string());
        }
    }
}

/// Toolkits first, then pip's package in whatever python3 there is.
std::vector<std::string> find_libraries() {
    std::vector<std::string> found;
    std::error_code ignored;
    std::vector<files::path> toolkits;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* folder = std::getenv(name)) {
            toolkits.emplace_back(folder);
        }
    }
    for (const auto& entry : files::directory_iterator("/usr/local", ignored)) {
        if (entry.path().filename().string().rfind("cuda", 0) == 0) {
            toolkits.push_back(entry.path());
        }
    }
    for (const files::path& toolkit : toolkits) {
        for (const char* inside : {"extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "lib"}) {
            add_libraries_in(toolkit / inside, found);
        }
    }
    std::FILE* python = popen("python3 -c 'import sys; print(\"\\n\".join(sys.path))' 2>/dev/null", "r");
    char line[4096];
    while (python != nullptr && std::fgets(line, sizeof line, python) != nullptr) {
        std::string folder = line;
        folder.erase(folder.find_last_not_of('\n') + 1);
        add_libraries_in(files::path(folder) / "nvidia/cuda_cupti/lib", found);
        add_libraries_in(files::path(folder) / "nvidia/cu13/lib", found);
    }
    if (python != nullptr) {
        pclose(python);
    }
    return found;
}

constexpr unsigned rows = 4096, units = 1024; // 64 MiB of weights a kernel: above any cache

/// Kernels with an event before the first and after each.
struct TracedChain {
    TracedChain(Gpu& gpu, unsigned kernel_count, DevicePointer memory, std::size_t memory_bytes)
        : gpu_(gpu), kernels(kernel_count), weights_(memory), bytes_(memory_bytes), graph(make_graph(gpu)), exec(gpu) {
        const GraphNode root = add_event(gpu, graph, nullptr, push());
        GraphNode last = root;
        for (unsigned i = 0; i < kernels; ++i) {
            last = add_event(gpu, graph, add_gemv(last, i), push());
        }
        exec = instantiate(gpu, graph);
    }
    std::vector<double> spans() const {
        std::vector<double> each;
        for (unsigned i = 0; i < kernels; ++i) {
            each.push_back(gpu_.elapsed_ns(events[i], events[i + 1]));
        }
        return each;
    }
    void enqueue_eager() {
        gpu_.launch_spin(gpu_.stream, 5000);
        gpu_.record(events[0], gpu_.stream);
        for (unsigned i = 0; i < kernels; ++i) {
            gpu_.launch(gpu_.stream, gpu_.kernel("check_gemv"), rows / 4, 128, weights_of(i), weights_, weights_, rows,
                        units);
            gpu_.record(events[i + 1], gpu_.stream);
        }
    }

  private:
    Event push() {
        events.push_back(make_event(gpu_));
        return events.back();
    }
    DevicePointer weights_of(unsigned i) const {
        const std::size_t each = std::size_t{rows} * units * 16;
        return weights_ + i * each % (bytes_ - each + 1) / 4096 * 4096;
    }
    GraphNode add_gemv(GraphNode after, unsigned i) {
        DevicePointer weights = weights_of(i), x = weights_, y = weights_;
        unsigned row_count = rows, unit_count = units;
        void* parameters[] = {&weights, &x, &y, &row_count, &unit_count};
        KernelNodeParams node{};
        node.func = gpu_.kernel("check_gemv");
        node.grid_x = rows / 4, node.grid_y = node.grid_z = 1;
        node.block_x = 128, node.block_y = node.block_z = 1;
        node.kernel_params = parameters;
        GraphNode made = nullptr;
        gpu_.must(gpu_.d.add_kernel(&made, graph, &after, 1, &node), "cuGraphAddKernelNode");
        return made;
    }

    Gpu& gpu_;

  public:
    unsigned kernels;

  private:
    DevicePointer weights_;
    std::size_t bytes_;

  public:
    std::vector<OwnedEvent> events;
    OwnedGraph graph;
    OwnedExec exec;
};

std::vector<double> replay_times(Gpu& gpu, GraphExec exec, int rounds) {
    std::vector<double> each;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t before = host_ns();
        gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
        gpu.wait();
        each.push_back(static_cast<double>(host_ns() - before));
    }
    return each;
}

/// The last `count` kernels of the chain, in the order in which they ran.
std::vector<TracedKernel> last_of_chain(const KernelTrace& trace, bool replayed, unsigned count) {
    std::vector<TracedKernel> kernels;
    for (const TracedKernel& kernel : trace.kernels) {
        if (kernel.name == "check_gemv" && (kernel.graph_node_id != 0) == replayed) {
            kernels.push_back(kernel);
        }
    }
    std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    kernels.erase(kernels.begin(), kernels.end() - std::min<std::ptrdiff_t>(count, std::ssize(kernels)));
    return kernels;
}

void compare(const ResultFile& results, const std::vector<double>& ours, const std::vector<TracedKernel>& theirs,
             const char* how) {
    const Json at = {{"how", how}};
    results.figure("cupti.kernels", static_cast<double>(theirs.size()), "1", at);
    if (theirs.size() != ours.size() || ours.size() < 2) {
        results.absent("cupti.difference",
                       "it saw " + std::to_string(theirs.size()) + " kernels of " + std::to_string(ours.size()), at);
        return;
    }
    std::vector<double> difference, percent, busy;
    for (std::size_t i = 0; i + 1 < theirs.size(); ++i) {
        const auto to_next = static_cast<double>(theirs[i + 1].begin_ns - theirs[i].begin_ns);
        difference.push_back(ours[i] - to_next);
        percent.push_back((ours[i] / to_next - 1) * 100);
        busy.push_back(static_cast<double>(theirs[i].end_ns - theirs[i].begin_ns));
    }
    results.figure("cupti.difference", spread_of(difference), "ns", at);
    results.figure("cupti.difference_percent", spread_of(percent), "%", at);
    results.figure("cupti.kernel_time", spread_of(busy), "ns", at);
    results.figure("cupti.our_time", spread_of(ours), "ns", at);
}

} // namespace

CuptiOptions cupti_options(const Options& options) {
    CuptiOptions wanted;
    wanted.libraries = options.cupti.empty() ? find_libraries() : std::vector<std::string>{options.cupti};
    return wanted;
}

void run_cupti(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const std::size_t bytes = std::size_t{options.tiny ? 128U : 1024U} << 20;
    const OwnedMemory memory = allocate(gpu, bytes);
    gpu.launch(gpu.stream, gpu.kernel("check_fill"), static_cast<unsigned>(gpu.multiprocessors) * 8, 256,
               static_cast<DevicePointer>(memory), std::uint64_t{bytes / 4}, 3U);
    gpu.wait();
    const unsigned kernels = options.tiny ? 8 : 48;
    const int rounds = options.tiny ? 5 : 200;
    TracedChain before(gpu, kernels, memory, bytes);
    static_cast<void>(replay_times(gpu, before.exec, rounds));
    const double untraced = spread_of(replay_times(gpu, before.exec, rounds)).median;

    plumb::Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(cupti_options(options));
    if (!reader.ok()) {
        throw NotApplicable{reader.error().message};
    }
    TracedChain chain(gpu, kernels, memory, bytes); // instantiated while it is traced
    chain.enqueue_eager();
    gpu.wait();
    const std::vector<double> eager = chain.spans();
    const double traced = spread_of(replay_times(gpu, chain.exec, rounds)).median;
    const std::vector<double> replayed = chain.spans();
    const plumb::Result<KernelTrace> trace = (*reader)->stop();
    expect(trace.ok(), trace.ok() ? "" : trace.error().message);
    const double after = spread_of(replay_times(gpu, before.exec, rounds)).median;

    results.text("cupti.library", trace->library);
    results.text("cupti.version", std::to_string(trace->version));
    results.figure("cupti.outside", static_cast<double>(trace->outside), "1");
    results.figure("cupti.slower_mean", (traced / untraced - 1) * 100, "%");
    results.figure("cupti.slower_after_stop", (after / untraced - 1) * 100, "%");
    results.figure("cupti.untimed", static_cast<double>(trace->untimed), "1");
    results.figure("cupti.backwards", static_cast<double>(trace->backwards), "1");
    results.figure("cupti.dropped", static_cast<double>(trace->dropped), "1");
    results.figure("cupti.origins", static_cast<double>(trace->origins.size()), "1");
    if (!trace->missing_origins.empty()) {
        results.note(trace->missing_origins);
    }
    compare(results, eager, last_of_chain(*trace, false, kernels), "eager");
    compare(results, replayed, last_of_chain(*trace, true, kernels), "replayed");
}

} // namespace gpu_check

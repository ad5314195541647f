// SPDX-License-Identifier: Apache-2.0
#include "truth.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <thread>

#include "child.hpp"
#include "sections.hpp"

namespace gpu_check {
namespace {

constexpr int start_anew = 10; // exit status: this process cannot assert any more, the next one goes on
constexpr double limit_of_one_s = 12;

struct Truth {
    const char* id;
    const char* source;
    void (*check)(Gpu& gpu);
};

constexpr Truth truths[] = {
#define PLUMB_GPU_TRUTH_ROW(id, source, sentence) {#id, source, truth_##id},
    PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_ROW)
#undef PLUMB_GPU_TRUTH_ROW
};
constexpr unsigned truth_count = sizeof truths / sizeof truths[0];

std::string said;

void write_verdict(const ResultFile& results, const Truth& truth, const char* verdict, const std::string& detail) {
    results.append(
        {{"record", "truth"}, {"id", truth.id}, {"source", truth.source}, {"verdict", verdict}, {"detail", detail}});
}

/// Beliefs about durations lose to a host that stops for milliseconds: what fails is asked again, and the line says so.
constexpr int times_asked = 3;

void assert_one(const ResultFile& results, const Truth& truth, Gpu& gpu) {
    if (truth.check == nullptr) {
        write_verdict(results, truth, "fails", "this program has no assertion for it");
        return;
    }
    std::string first_failure;
    for (int asked = 1;; ++asked) {
        said.clear();
        const std::string again = first_failure.empty() ? "" : " (asked again; at first: " + first_failure + ")";
        try {
            truth.check(gpu);
            write_verdict(results, truth, "passes", said + again);
            return;
        } catch (const NotApplicable& reason) {
            write_verdict(results, truth, "not applicable", reason.reason);
            return;
        } catch (const Failure& failure) {
            const std::string sentence = failure.sentence + (said.empty() ? "" : "; " + said);
            if (asked == times_asked || gpu.d.stream_synchronize(gpu.stream) != CuResult::success) {
                write_verdict(results, truth, "fails", sentence);
                return;
            }
            first_failure = sentence;
        }
    }
}

/// Asserted before anything calls cuInit.
void assert_before_init(const ResultFile& results, const Truth& truth) {
    const plumb::Result<Driver>& loaded = driver();
    int count = 0;
    const CuResult result = loaded ? loaded->device_get_count(&count) : CuResult::unknown;
    const bool holds = result == CuResult::not_initialized;
    write_verdict(results, truth, holds ? "passes" : "fails",
                  "cuDeviceGetCount before cuInit answered " + std::to_string(static_cast<int>(result)));
}

bool needs_fresh_process(const Truth& truth) { return std::string(truth.id) == "calls_need_init"; }

void tell_begun() {
    const char byte = '.';
    if (write(progress_fd, &byte, 1) != 1) {
        _exit(1); // nobody watches any more
    }
}

} // namespace

void say(std::string detail) { said = std::move(detail); }

int run_truths_from(const ResultFile& results, unsigned first) {
    if (first < truth_count && needs_fresh_process(truths[first])) {
        tell_begun();
        assert_before_init(results, truths[first]);
        return start_anew;
    }
    try {
        auto* gpu = new Gpu;            // never destroyed: its context may be lost by then
        gpu->launch_empty(gpu->stream); // whatever the driver loads late is loaded before anything is timed
        gpu->launch_spin(gpu->stream, 20);
        gpu->wait();
        for (unsigned i = first; i < truth_count; ++i) {
            if (needs_fresh_process(truths[i])) {
                return start_anew;
            }
            tell_begun();
            assert_one(results, truths[i], *gpu);
            const CuResult alive = gpu->d.stream_synchronize(gpu->stream);
            if (alive != CuResult::success) {
                return start_anew;
            }
        }
    } catch (const Failure& failure) {
        results.append({{"record", "problem"}, {"sentence", failure.sentence}});
        return 1;
    }
    return 0;
}

void run_truth(const ResultFile& results, const Options&) {
    unsigned first = 0;
    while (first < truth_count) {
        unsigned begun = 0;
        const Ended ended =
            run_child_with_progress({"truths", std::to_string(first), "--out", results.path()}, limit_of_one_s, begun);
        const bool recorded = ended.how == Ended::How::exited && (ended.code == 0 || ended.code == start_anew);
        expect(begun > 0 || (recorded && ended.code == start_anew),
               "the process that asserts could not start or could not use the device");
        first += begun;
        if (!recorded) {
            const std::string how =
                ended.how == Ended::How::timed_out
                    ? "it did not come to an end within " + std::to_string(int(limit_of_one_s)) + " s"
                    : "the process ended with " + std::to_string(ended.code);
            write_verdict(results, truths[first - 1], "fails", how);
        }
    }
}

void* find_entry(const char* symbol, int version) {
    using Find = CuResult(const char*, void**, int, unsigned long long, int*);
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    static auto* const find =
        library != nullptr ? reinterpret_cast<Find*>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
    void* address = nullptr;
    int status = 0;
    return find != nullptr && find(symbol, &address, version, 1, &status) == CuResult::success ? address : nullptr;
}

void in_thread(Gpu& gpu, const std::function<void()>& body) {
    std::string problem;
    std::thread([&] {
        const CurrentContext current(gpu.d, gpu.context);
        try {
            body();
        } catch (const Failure& failure) {
            problem = failure.sentence;
        }
    }).join();
    expect(problem.empty(), problem);
}

Capturing::Capturing(Gpu& gpu, Stream stream, CaptureMode mode) : gpu_(gpu), stream_(stream), graph_(gpu) {
    gpu.must(gpu.d.stream_begin_capture(stream, mode), "cuStreamBeginCapture");
}

Capturing::~Capturing() {
    if (open_) {
        static_cast<void>(end());
    }
}

CuResult Capturing::end() {
    open_ = false;
    return gpu_.d.stream_end_capture(stream_, graph_.out());
}

Graph Capturing::graph() {
    gpu_.must(end(), "cuStreamEndCapture");
    return graph_;
}

CaptureStatus Capturing::status() const {
    CaptureStatus status = CaptureStatus::none;
    gpu_.must(gpu_.d.stream_is_capturing(stream_, &status), "cuStreamIsCapturing");
    return status;
}

std::vector<GraphNode> Capturing::frontier(Graph* graph, unsigned long long* id) const {
    CaptureStatus status = CaptureStatus::none;
    unsigned long long own_id = 0;
    Graph own_graph = nullptr;
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    gpu_.must(gpu_.d.capture_info(stream_, &status, id != nullptr ? id : &own_id, graph != nullptr ? graph : &own_graph,
                                  &nodes, &edges, &count),
              "cuStreamGetCaptureInfo");
    return {nodes, nodes + count};
}

NodeType type_of(Gpu& gpu, GraphNode node) {
    NodeType type{};
    gpu.must(gpu.d.graph_node_get_type(node, &type), "cuGraphNodeGetType");
    return type;
}

GraphNode node_of_type(Gpu& gpu, Graph graph, NodeType type) {
    for (const GraphNode node : nodes_of(gpu, graph)) {
        if (type_of(gpu, node) == type) {
            return node;
        }
    }
    fail("the captured graph has no node of type " + std::to_string(static_cast<int>(type)));
}

std::size_t edge_count(Gpu& gpu, Graph graph) {
    std::size_t count = 0;
    gpu.must(gpu.d.edges_of(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges");
    return count;
}

void launch_graph(Gpu& gpu, GraphExec exec, Stream stream) {
    gpu.must(gpu.d.graph_launch(exec, stream), "cuGraphLaunch");
}

} // namespace gpu_check

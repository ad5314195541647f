// SPDX-License-Identifier: Apache-2.0
// Truths about stream capture.
#include <algorithm>

#include "truths/kernels.hpp"
#include "truths/truth.hpp"

namespace gpu_check {
namespace {

OwnedEvent recorded_event(Gpu& gpu) {
    OwnedEvent event = make_event(gpu);
    gpu.record(event, gpu.stream);
    gpu.wait();
    return event;
}

std::vector<GraphNode> sorted(std::vector<GraphNode> nodes) {
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

/// Forks `other` from `stream` by an event.
void fork(Gpu& gpu, Stream stream, Stream other, Event event) {
    gpu.record(event, stream);
    gpu.must(gpu.d.stream_wait_event(other, event, 0), "cuStreamWaitEvent");
}

CaptureStatus status_of(Gpu& gpu, Stream stream) {
    CaptureStatus status{};
    gpu.must(gpu.d.stream_is_capturing(stream, &status), "cuStreamIsCapturing");
    return status;
}

CuResult try_launch(Gpu& gpu, Stream stream) {
    return gpu.d.launch_kernel(gpu.kernel("check_empty"), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

constexpr EdgeData programmatic{edge_port_programmatic, 0, edge_type_programmatic, {}};

} // namespace

void truth_capture_scope_adds_no_node(Gpu& gpu) {
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    for (int i = 0; i < 10; ++i) {
        static_cast<void>(capturing.frontier());
    }
    gpu.launch_empty(gpu.stream);
    const std::size_t count = nodes_of(gpu, capturing.graph()).size();
    expect(count == 2, "two kernels became " + std::to_string(count) + " nodes");
}

void truth_frontier_is_what_the_next_node_waits_for(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedEvent forked = make_event(gpu), joined = make_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    expect(capturing.frontier().empty(), "a capture begins with a frontier");
    gpu.launch_empty(gpu.stream);
    fork(gpu, gpu.stream, other, forked);
    gpu.launch_empty(other);
    gpu.launch_empty(gpu.stream);
    fork(gpu, other, gpu.stream, joined);
    const auto expected = sorted(capturing.frontier());
    gpu.launch_empty(gpu.stream);
    const auto last = capturing.frontier();
    expect(expected.size() == 2, "the frontier after a join has " + std::to_string(expected.size()) + " nodes, not 2");
    expect(last.size() == 1, "the frontier after a launch is not that launch alone");
    expect(edges_of(gpu, capturing.graph()).before(last[0]) == expected,
           "the next node does not wait for the frontier");
}

void truth_frontier_array_goes_stale(Gpu&) {
    throw NotApplicable{"it cannot be asked without reading memory that may be gone"};
}

void truth_capture_ids_are_unique(Gpu& gpu) {
    unsigned long long ids[2] = {0, 0};
    for (unsigned long long& id : ids) {
        Capturing capturing(gpu, gpu.stream);
        static_cast<void>(capturing.frontier(nullptr, &id));
    }
    expect(ids[0] != 0, "a capture has no id");
    expect(ids[0] != ids[1], "two captures have the id " + std::to_string(ids[0]));
}

void truth_event_query_breaks_global_capture(Gpu& gpu) {
    const OwnedEvent event = recorded_event(gpu);
    Capturing capturing(gpu, gpu.stream, CaptureMode::global);
    CuResult query{};
    in_thread(gpu, [&] { query = gpu.d.event_query(event); });
    gpu.expect_result(query, CuResult::stream_capture_unsupported, "cuEventQuery of another thread");
    capturing.expect_invalidated("cuEventQuery of another thread");
}

void truth_thread_local_capture_ignores_other_threads(Gpu& gpu) {
    const OwnedEvent event = recorded_event(gpu);
    Capturing capturing(gpu, gpu.stream, CaptureMode::thread_local_mode);
    in_thread(gpu, [&] { gpu.must(gpu.d.event_query(event), "cuEventQuery of another thread"); });
    expect(capturing.status() == CaptureStatus::active, "the capture was invalidated");
    gpu.launch_empty(gpu.stream);
    static_cast<void>(capturing.graph());
}

void truth_relaxed_thread_breaks_no_capture(Gpu& gpu) {
    const OwnedEvent event = recorded_event(gpu);
    Capturing capturing(gpu, gpu.stream, CaptureMode::global);
    in_thread(gpu, [&] {
        CaptureMode mode = CaptureMode::relaxed;
        gpu.must(gpu.d.thread_exchange_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode");
        expect(mode == CaptureMode::global, "a thread does not begin in GLOBAL mode");
        gpu.must(gpu.d.event_query(event), "cuEventQuery of a relaxed thread");
        const OwnedMemory memory = allocate(gpu, 16);
    });
    expect(capturing.status() == CaptureStatus::active, "the capture was invalidated");
    gpu.launch_empty(gpu.stream);
    static_cast<void>(capturing.graph());
}

void truth_relaxed_thread_may_make_our_calls(Gpu& gpu) {
    const OwnedStream own = make_stream(gpu);
    const OwnedGraph graph = make_graph(gpu);
    add_empty_kernel(gpu, graph, nullptr);
    std::string refused;
    std::vector<std::string> breaking;
    const auto during_capture = [&](const char* call, const std::function<CuResult()>& body) {
        Capturing capturing(gpu, gpu.stream, CaptureMode::global);
        in_thread(gpu, [&] {
            const RelaxedCapture relaxed(gpu.d);
            if (const CuResult result = body(); result != CuResult::success) {
                refused += std::string(refused.empty() ? "" : ", ") + call + ": " + gpu.name_of(result);
            }
        });
        if (capturing.status() != CaptureStatus::active) {
            breaking.emplace_back(call);
        }
        static_cast<void>(capturing.end());
    };
    Module module = nullptr;
    void* pinned = nullptr;
    DevicePointer memory = 0;
    OwnedEvent begin(gpu), end(gpu);
    OwnedStream made(gpu);
    OwnedGraph clone(gpu);
    OwnedExec exec(gpu);
    float milliseconds = 0;
    during_capture("cuModuleLoadData", [&] { return gpu.d.module_load_data(&module, kernels_ptx().c_str()); });
    during_capture("cuMemHostAlloc", [&] { return gpu.d.mem_host_alloc(&pinned, 4096, memory_host_portable); });
    during_capture("cuMemAlloc", [&] { return gpu.d.mem_alloc(&memory, 4096); });
    during_capture("cuStreamCreate", [&] { return gpu.d.stream_create(made.out(), stream_non_blocking); });
    during_capture("cuEventCreate", [&] { return gpu.d.event_create(begin.out(), event_default); });
    static_cast<void>(gpu.d.event_create(end.out(), event_default));
    during_capture("cuEventRecord", [&] { return gpu.d.event_record(begin, own); });
    during_capture("cuEventRecord again", [&] { return gpu.d.event_record(end, own); });
    during_capture("cuStreamSynchronize", [&] { return gpu.d.stream_synchronize(own); });
    during_capture("cuEventQuery", [&] { return gpu.d.event_query(end); });
    during_capture("cuEventElapsedTime", [&] { return gpu.d.elapsed(&milliseconds, begin, end); });
    during_capture("cuMemcpyDtoHAsync", [&] { return gpu.d.memcpy_dtoh_async(pinned, memory, 64, own); });
    during_capture("cuGraphClone", [&] { return gpu.d.graph_clone(clone.out(), graph); });
    during_capture("cuGraphInstantiate", [&] { return gpu.d.graph_instantiate(exec.out(), clone, 0); });
    during_capture("cuGraphUpload", [&] { return gpu.d.graph_upload(exec, own); });
    during_capture("cuGraphLaunch", [&] { return gpu.d.graph_launch(exec, own); });
    during_capture("cuGraphExecDestroy", [&] { return gpu.d.graph_exec_destroy(exec.release()); });
    during_capture("cuGraphDestroy", [&] { return gpu.d.graph_destroy(clone.release()); });
    during_capture("cuMemFree", [&] { return gpu.d.mem_free(memory); });
    during_capture("cuMemFreeHost", [&] { return gpu.d.mem_free_host(pinned); });
    during_capture("cuModuleUnload", [&] { return gpu.d.module_unload(module); });
    std::string broken;
    for (const std::string& call : breaking) {
        broken += (broken.empty() ? "" : ", ") + call;
    }
    say(refused);
    expect(broken.empty(), "captures are invalidated by " + broken);
    expect(refused.empty(), "a relaxed thread was refused");
}

void truth_own_unsafe_call_breaks_own_capture(Gpu& gpu) {
    const OwnedEvent event = recorded_event(gpu);
    OwnedMemory memory(gpu);
    const auto query = [&] {
        return gpu.d.event_query(event);
    };
    const auto allocation = [&] {
        return gpu.d.mem_alloc(memory.out(), 16);
    };
    for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_mode}) {
        Capturing queried(gpu, gpu.stream, mode);
        gpu.expect_result(query(), CuResult::stream_capture_unsupported, "cuEventQuery in a capture not relaxed");
        queried.expect_invalidated("cuEventQuery of the capturing thread");
        Capturing allocated(gpu, gpu.stream, mode);
        gpu.expect_result(allocation(), CuResult::stream_capture_unsupported, "cuMemAlloc in a capture not relaxed");
        allocated.expect_invalidated("cuMemAlloc of the capturing thread");
    }
    Capturing relaxed(gpu, gpu.stream, CaptureMode::relaxed);
    gpu.must(query(), "cuEventQuery in a relaxed capture");
    gpu.must(allocation(), "cuMemAlloc in a relaxed capture");
    static_cast<void>(relaxed.graph());
}

void truth_query_of_captured_event_breaks_any_capture(Gpu& gpu) {
    const OwnedEvent event = make_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    gpu.record(event, gpu.stream);
    in_thread(gpu, [&] {
        const RelaxedCapture relaxed(gpu.d);
        gpu.expect_result(gpu.d.event_query(event), CuResult::captured_event, "cuEventQuery of a captured event");
    });
    capturing.expect_invalidated("cuEventQuery of a captured event");
    gpu.expect_result(gpu.d.event_query(event), CuResult::captured_event, "cuEventQuery after the capture");
    gpu.record(event, gpu.stream);
    gpu.wait();
    gpu.must(gpu.d.event_query(event), "cuEventQuery after the event was recorded anew");
}

void truth_synchronising_a_capturing_stream_breaks_it(Gpu& gpu) {
    auto* wait_for_all = entry<CuResult()>("cuCtxSynchronize", 2000);
    const auto breaks = [&](const char* what, const std::function<CuResult()>& call) {
        Capturing capturing(gpu, gpu.stream);
        gpu.expect_result(call(), CuResult::stream_capture_unsupported, what);
        capturing.expect_invalidated(what);
    };
    breaks("cuStreamSynchronize", [&] { return gpu.d.stream_synchronize(gpu.stream); });
    breaks("cuStreamQuery", [&] { return gpu.d.stream_query(gpu.stream); });
    breaks("cuCtxSynchronize", [&] { return wait_for_all(); });
}

void truth_invalidated_capture_leaves_the_stream_usable(Gpu& gpu) {
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    static_cast<void>(gpu.d.stream_synchronize(gpu.stream));
    gpu.expect_result(try_launch(gpu, gpu.stream), CuResult::stream_capture_invalidated,
                      "a launch into an invalidated capture");
    capturing.expect_invalidated("cuStreamSynchronize");
    expect(status_of(gpu, gpu.stream) == CaptureStatus::none, "the stream is still captured");
    gpu.launch_empty(gpu.stream);
    gpu.wait();
    Capturing again(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    static_cast<void>(again.graph());
}

void truth_capture_ends_in_its_thread(Gpu& gpu) {
    {
        Capturing capturing(gpu, gpu.stream, CaptureMode::thread_local_mode);
        CuResult end{};
        in_thread(gpu, [&] {
            Graph graph = nullptr;
            end = gpu.d.stream_end_capture(gpu.stream, &graph);
        });
        gpu.expect_result(end, CuResult::stream_capture_wrong_thread, "cuStreamEndCapture in another thread");
        static_cast<void>(capturing.graph()); // its own thread still ends it
    }
    Capturing relaxed(gpu, gpu.stream);
    in_thread(gpu, [&] {
        Graph graph = nullptr;
        gpu.must(gpu.d.stream_end_capture(gpu.stream, &graph), "the end of a relaxed capture in another thread");
        static_cast<void>(gpu.d.graph_destroy(graph));
    });
    relaxed.forget();
}

void truth_unjoined_stream_fails_the_capture(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedEvent event = make_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    fork(gpu, gpu.stream, other, event);
    gpu.launch_empty(other);
    gpu.expect_result(capturing.end(), CuResult::stream_capture_unjoined,
                      "cuStreamEndCapture with a stream not joined");
    gpu.launch_empty(other); // both streams work as before
    gpu.wait(other);
}

void truth_captured_fork_and_join_by_events(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedEvent forked = make_event(gpu), joined = make_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    fork(gpu, gpu.stream, other, forked);
    expect(status_of(gpu, other) == CaptureStatus::active, "the other stream is not captured");
    gpu.launch_empty(other);
    gpu.launch_empty(gpu.stream);
    fork(gpu, other, gpu.stream, joined);
    gpu.launch_empty(gpu.stream);
    const Graph graph = capturing.graph();
    const std::size_t nodes = nodes_of(gpu, graph).size(), edges = edges_of(gpu, graph).count();
    expect(nodes == 4, "four kernels became " + std::to_string(nodes) + " nodes");
    expect(edges == 4, "fork and join became " + std::to_string(edges) + " edges, not 4");
    expect(status_of(gpu, other) == CaptureStatus::none, "the other stream is still captured");
}

void truth_waiting_for_an_outside_event_breaks_the_capture(Gpu& gpu) {
    const OwnedEvent event = recorded_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    const CuResult wait = gpu.d.stream_wait_event(gpu.stream, event, 0);
    gpu.expect_result(wait, CuResult::stream_capture_isolation, "cuStreamWaitEvent for an outside event");
    capturing.expect_invalidated("waiting for an outside event");
}

void truth_merging_two_captures_breaks_both(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedEvent event = make_event(gpu);
    Capturing first(gpu, gpu.stream), second(gpu, other);
    gpu.launch_empty(gpu.stream);
    gpu.record(event, gpu.stream);
    const CuResult wait = gpu.d.stream_wait_event(other, event, 0);
    gpu.expect_result(wait, CuResult::stream_capture_merge, "cuStreamWaitEvent across two captures");
    second.expect_invalidated("merging");
    first.expect_invalidated("merging");
}

void truth_legacy_stream_is_implicit(Gpu& gpu) {
    const OwnedStream blocking = make_stream(gpu, 0);
    CaptureStatus status{};
    {
        Capturing capturing(gpu, blocking);
        gpu.launch_empty(blocking);
        gpu.expect_result(gpu.d.stream_is_capturing(nullptr, &status), CuResult::stream_capture_implicit,
                          "cuStreamIsCapturing of the legacy stream");
        expect(capturing.status() == CaptureStatus::active, "asking for the legacy stream broke the capture");
        gpu.expect_result(try_launch(gpu, nullptr), CuResult::stream_capture_implicit,
                          "a launch into the legacy stream");
        capturing.expect_invalidated("a launch into the legacy stream");
    }
    Capturing capturing(gpu, gpu.stream);
    gpu.must(gpu.d.stream_is_capturing(nullptr, &status), "cuStreamIsCapturing while a non-blocking stream captures");
    gpu.launch_empty(nullptr);
    static_cast<void>(capturing.graph());
}

void truth_legacy_stream_cannot_capture(Gpu& gpu) {
    const CuResult begun = gpu.d.stream_begin_capture(nullptr, CaptureMode::relaxed);
    gpu.expect_result(begun, CuResult::stream_capture_unsupported, "cuStreamBeginCapture of the legacy stream");
}

void truth_plain_record_in_capture_is_unreadable(Gpu& gpu) {
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    Capturing capturing(gpu, gpu.stream);
    gpu.record(begin, gpu.stream);
    gpu.launch_empty(gpu.stream);
    gpu.record(end, gpu.stream);
    const Graph graph = capturing.graph();
    expect(nodes_of(gpu, graph).size() == 1, "plain records became nodes");
    const OwnedExec exec = instantiate(gpu, graph);
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    float ms = 0;
    const CuResult read = gpu.d.elapsed(&ms, begin, end);
    say(gpu.name_of(read));
    expect(read != CuResult::success, "events recorded plainly in a capture have an elapsed time");
}

void truth_nodes_may_be_added_during_capture(Gpu& gpu) {
    auto* update =
        entry<CuResult(Stream, GraphNode*, std::size_t, unsigned)>("cuStreamUpdateCaptureDependencies", 11030);
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    Graph graph = nullptr;
    const auto frontier = capturing.frontier(&graph);
    expect(frontier.size() == 1, "the frontier after one launch is not one node");
    GraphNode added = add_empty_kernel(gpu, graph, frontier[0]);
    gpu.must(update(gpu.stream, &added, 1, set_capture_dependencies), "cuStreamUpdateCaptureDependencies");
    gpu.launch_empty(gpu.stream);
    const auto last = capturing.frontier();
    const Graph whole = capturing.graph();
    const Edges edges = edges_of(gpu, whole);
    expect(nodes_of(gpu, whole).size() == 3, "the added node is not part of the graph");
    expect(edges.before(added) == frontier, "the added node does not wait for the frontier");
    expect(last.size() == 1 && edges.before(last[0]) == std::vector{added}, "the next node does not wait for it");
    expect(edges.count() == 2, "there are further edges");
}

void truth_nodes_cannot_be_destroyed_during_capture(Gpu& gpu) {
    auto* destroy = entry<CuResult(GraphNode)>("cuGraphDestroyNode", 10000);
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    const auto frontier = capturing.frontier();
    const CuResult destroyed = destroy(frontier.at(0));
    const CuResult ended = capturing.end();
    say("cuGraphDestroyNode answered " + gpu.name_of(destroyed) + ", then cuStreamEndCapture " + gpu.name_of(ended));
    expect(destroyed != CuResult::success, "a node of a capturing graph was destroyed");
    if (ended == CuResult::success) {
        gpu.must(destroy(frontier.at(0)), "cuGraphDestroyNode after the capture");
    }
}

void truth_programmatic_edge_makes_v2_info_lossy(Gpu& gpu) {
    auto* update = entry<CuResult(Stream, GraphNode*, const EdgeData*, std::size_t, unsigned)>(
        "cuStreamUpdateCaptureDependencies", 12030);
    if (gpu.d.stream_get_capture_info_v11030 == nullptr) {
        throw NotApplicable{"this driver has no capture information without edge data"};
    }
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    auto frontier = capturing.frontier();
    gpu.must(update(gpu.stream, frontier.data(), &programmatic, 1, set_capture_dependencies),
             "cuStreamUpdateCaptureDependencies");
    CaptureStatus status{};
    unsigned long long id = 0;
    Graph graph = nullptr;
    const GraphNode* nodes = nullptr;
    std::size_t count = 0;
    const CuResult asked = gpu.d.stream_get_capture_info_v11030(gpu.stream, &status, &id, &graph, &nodes, &count);
    gpu.expect_result(asked, CuResult::lossy_query, "cuStreamGetCaptureInfo without edge data");
    expect(capturing.frontier().size() == 1, "with edge data the frontier is not one node");
    gpu.launch_empty(gpu.stream);
    const Edges edges = edges_of(gpu, capturing.graph());
    expect(edges.count() == 1 && edges.data[0].type == edge_type_programmatic, "the next edge is not programmatic");
}

void truth_edges_without_data_are_lossy(Gpu& gpu) {
    if (gpu.d.graph_add_dependencies_v12030 == nullptr || gpu.d.graph_get_edges_v10000 == nullptr) {
        throw NotApplicable{"this driver knows no edge data"};
    }
    const OwnedGraph graph = make_graph(gpu);
    const GraphNode from = add_empty_kernel(gpu, graph, nullptr), to = add_empty_kernel(gpu, graph, nullptr);
    gpu.must(gpu.d.add_edges(graph, &from, &to, &programmatic, 1), "cuGraphAddDependencies with a programmatic edge");
    GraphNode one = nullptr, other = nullptr;
    std::size_t count = 1;
    const CuResult asked = gpu.d.graph_get_edges_v10000(graph, &one, &other, &count);
    gpu.expect_result(asked, CuResult::lossy_query, "cuGraphGetEdges without edge data");
    expect(edges_of(gpu, graph).data.at(0).from_port == edge_port_programmatic, "with edge data the port is another");
}

void truth_stream_ids_are_not_reused(Gpu& gpu) {
    if (gpu.d.stream_get_id == nullptr) {
        throw NotApplicable{"this driver has no cuStreamGetId"};
    }
    bool reused = false;
    for (int i = 0; i < 64 && !reused; ++i) {
        OwnedStream first = make_stream(gpu);
        unsigned long long id = 0, next_id = 0;
        gpu.must(gpu.d.stream_get_id(first, &id), "cuStreamGetId");
        const Stream handle = first;
        first.reset();
        const OwnedStream next = make_stream(gpu);
        gpu.must(gpu.d.stream_get_id(next, &next_id), "cuStreamGetId");
        reused = next == handle;
        expect(id != next_id, "two streams have the id " + std::to_string(id));
    }
    say(reused ? "the handle was given out anew" : "no handle was given out anew in 64 tries");
}

} // namespace gpu_check

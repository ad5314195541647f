// SPDX-License-Identifier: Apache-2.0
// Truths about replays of graphs.
#include <algorithm>

#include "truths/truth.hpp"

namespace gpu_check {
namespace {

/// event, spin, event
struct Timed {
    OwnedEvent begin, end;
    OwnedGraph graph;
    OwnedExec exec;
    GraphNode end_node;
};
Timed timed_spin(Gpu& gpu, unsigned microseconds) {
    Timed timed{make_event(gpu), make_event(gpu), make_graph(gpu), OwnedExec(gpu), nullptr};
    const GraphNode begin = add_event(gpu, timed.graph, nullptr, timed.begin);
    const GraphNode spin = add_spin(gpu, timed.graph, begin, microseconds);
    timed.end_node = add_event(gpu, timed.graph, spin, timed.end);
    timed.exec = instantiate(gpu, timed.graph);
    return timed;
}

double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double span_of_replay(Gpu& gpu, GraphExec exec, Event begin, Event end) {
    gpu.launch_spin(gpu.stream, 1000); // longer than the launch's call: no launch wait in the span
    gpu.record(begin, gpu.stream);
    launch_graph(gpu, exec, gpu.stream);
    gpu.record(end, gpu.stream);
    gpu.wait();
    return gpu.elapsed_ns(begin, end);
}

} // namespace

void truth_elapsed_between_event_nodes(Gpu& gpu) {
    const Timed timed = timed_spin(gpu, 100);
    launch_graph(gpu, timed.exec, gpu.stream);
    gpu.wait();
    const double span = gpu.elapsed_ns(timed.begin, timed.end);
    say("a kernel of 100 us reads " + std::to_string(span) + " ns");
    expect(span > 98e3 && span < 1e6, "the pair does not span the kernel");
}

void truth_event_overwritten_by_replay(Gpu& gpu) {
    const Timed timed = timed_spin(gpu, 100);
    const OwnedEvent base = make_event(gpu);
    gpu.record(base, gpu.stream);
    double before = 0;
    for (int i = 0; i < 3; ++i) {
        launch_graph(gpu, timed.exec, gpu.stream);
        gpu.wait();
        const double now = gpu.elapsed_ns(base, timed.end);
        expect(now > before, "a further replay left the event as it was");
        before = now;
    }
}

void truth_enqueued_replay_makes_events_not_ready(Gpu& gpu) {
    const Timed timed = timed_spin(gpu, 100);
    launch_graph(gpu, timed.exec, gpu.stream);
    gpu.wait();
    gpu.launch_spin(gpu.stream, 5000);
    launch_graph(gpu, timed.exec, gpu.stream);
    float ms = 0;
    const CuResult read = gpu.d.elapsed(&ms, timed.begin, timed.end);
    const CuResult query = gpu.d.event_query(timed.begin);
    gpu.wait();
    say(read == CuResult::success ? "it gave the old time: " + std::to_string(ms * 1e3F) + " us" : "");
    gpu.expect_result(read, CuResult::not_ready, "cuEventElapsedTime while a replay is enqueued");
    gpu.expect_result(query, CuResult::not_ready, "cuEventQuery while a replay is enqueued");
}

void truth_set_event_affects_future_launches(Gpu& gpu) {
    const Timed timed = timed_spin(gpu, 100);
    const OwnedEvent base = make_event(gpu), next = make_event(gpu);
    gpu.record(base, gpu.stream);
    gpu.launch_spin(gpu.stream, 5000);
    launch_graph(gpu, timed.exec, gpu.stream);
    gpu.must(gpu.d.graph_exec_event_record_node_set_event(timed.exec, timed.end_node, next),
             "cuGraphExecEventRecordNodeSetEvent");
    const CuResult new_query = gpu.d.event_query(next), old_query = gpu.d.event_query(timed.end);
    gpu.wait();
    gpu.must(new_query, "cuEventQuery of the new event while only the old one will be recorded");
    gpu.expect_result(old_query, CuResult::not_ready, "cuEventQuery of the old event");
    const double first = gpu.elapsed_ns(base, timed.end);
    float ms = 0;
    expect(gpu.d.elapsed(&ms, base, next) != CuResult::success, "the launch before the call recorded the new event");
    launch_graph(gpu, timed.exec, gpu.stream);
    gpu.wait();
    expect(gpu.elapsed_ns(base, timed.end) == first, "the launch after the call recorded the old event");
    expect(gpu.elapsed_ns(base, next) > first, "the launch after the call did not record the new event");
    Event of_node = nullptr;
    gpu.must(entry<CuResult(GraphNode, Event*)>("cuGraphEventRecordNodeGetEvent", 11010)(timed.end_node, &of_node),
             "cuGraphEventRecordNodeGetEvent");
    expect(of_node == timed.end, "the graph's own node has another event");
}

void truth_replays_of_one_exec_do_not_overlap(Gpu& gpu) {
    const OwnedStream other = make_stream(gpu);
    const OwnedGraph graph = make_graph(gpu);
    add_spin(gpu, graph, nullptr, 5000);
    const OwnedExec exec = instantiate(gpu, graph);
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    const std::int64_t before = gpu.time.now_ns();
    launch_graph(gpu, exec, gpu.stream);
    launch_graph(gpu, exec, other);
    gpu.wait();
    gpu.wait(other);
    const std::int64_t took = gpu.time.now_ns() - before;
    say("two replays of 5 ms in two streams took " + std::to_string(static_cast<double>(took) * 1e-6) + " ms");
    expect(took > 9'800'000, "two launches of one executable overlap");
}

void truth_exec_destroyed_in_flight_finishes(Gpu& gpu) {
    const OwnedMemory memory = allocate(gpu, 64);
    gpu.set32(memory, 0, 16);
    OwnedGraph graph = make_graph(gpu);
    const GraphNode spin = add_spin(gpu, graph, nullptr, 5000);
    DevicePointer at = memory;
    unsigned by = 3;
    void* parameters[] = {&at, &by};
    add_kernel(gpu, graph, spin, gpu.kernel("check_add"), parameters);
    OwnedExec exec = instantiate(gpu, graph);
    launch_graph(gpu, exec, gpu.stream);
    const CuResult destroyed = gpu.d.graph_exec_destroy(exec.release());
    gpu.wait();
    gpu.must(destroyed, "cuGraphExecDestroy in flight");
    expect(gpu.read<unsigned>(memory, 1)[0] == 3, "the launch of a destroyed executable did not finish");
}

void truth_branches_overlap(Gpu& gpu) {
    const OwnedGraph graph = make_graph(gpu);
    add_spin(gpu, graph, nullptr, 5000);
    add_spin(gpu, graph, nullptr, 5000);
    const OwnedExec exec = instantiate(gpu, graph);
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    static_cast<void>(span_of_replay(gpu, exec, begin, end));
    const double span = span_of_replay(gpu, exec, begin, end);
    say("two branches of 5 ms took " + std::to_string(span * 1e-6) + " ms");
    expect(span < 9e6, "two branches ran one after the other");
}

void truth_inline_event_node_costs_time(Gpu& gpu) {
    constexpr int kernels = 100;
    std::vector<OwnedEvent> events;
    const auto chain = [&](bool with_events) {
        OwnedGraph graph = make_graph(gpu);
        GraphNode last = nullptr;
        for (int i = 0; i < kernels; ++i) {
            last = add_spin(gpu, graph, last, 5);
            if (with_events) {
                events.push_back(make_event(gpu));
                last = add_event(gpu, graph, last, events.back());
            }
        }
        return graph;
    };
    const OwnedGraph plain = chain(false), inlined = chain(true);
    const OwnedExec plain_exec = instantiate(gpu, plain), inlined_exec = instantiate(gpu, inlined);
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    std::vector<double> without, with;
    for (int i = 0; i < 20; ++i) {
        without.push_back(span_of_replay(gpu, plain_exec, begin, end));
        with.push_back(span_of_replay(gpu, inlined_exec, begin, end));
    }
    const double each = (median_of(with) - median_of(without)) / kernels;
    say(std::to_string(each) + " ns per event node");
    expect(each > 10, "the replay did not get longer");
}

void truth_first_launch_uploads(Gpu& gpu) {
    constexpr int kernels = 1000;
    const OwnedGraph graph = make_graph(gpu);
    GraphNode last = nullptr;
    for (int i = 0; i < kernels; ++i) {
        last = add_empty_kernel(gpu, graph, last);
    }
    std::vector<double> cold, uploaded;
    for (int i = 0; i < 20; ++i) {
        const OwnedExec exec = instantiate(gpu, graph);
        if (i % 2 == 1) {
            gpu.must(gpu.d.graph_upload(exec, gpu.stream), "cuGraphUpload");
            gpu.wait();
        }
        const std::int64_t before = gpu.time.now_ns();
        launch_graph(gpu, exec, gpu.stream);
        (i % 2 == 1 ? uploaded : cold).push_back(static_cast<double>(gpu.time.now_ns() - before));
        gpu.wait();
    }
    // The least: a launch may be interrupted, on a machine that does much else more often than not.
    const double first = *std::min_element(cold.begin(), cold.end());
    const double after = *std::min_element(uploaded.begin(), uploaded.end());
    say("first launch of " + std::to_string(kernels) + " kernels: " + std::to_string(first) +
        " ns, uploaded before: " + std::to_string(after) + " ns");
    expect(first > after, "a first launch costs no more than one after an upload");
}

} // namespace gpu_check

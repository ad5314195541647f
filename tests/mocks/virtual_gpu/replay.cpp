// SPDX-License-Identifier: Apache-2.0
// Replays: when each node of an executable graph runs.
#include <algorithm>

#include "virtual_gpu/graph.hpp"
#include "virtual_gpu/timeline.hpp"

namespace plumb::vgpu {

namespace {

bool is_work(NodeType type) {
    return type == NodeType::kernel || type == NodeType::memcpy || type == NodeType::memset || type == NodeType::host ||
           type == NodeType::batch_mem_op;
}

std::int64_t upload(ExecObject& exec) {
    if (exec.uploaded) {
        return 0;
    }
    exec.uploaded = true;
    return static_cast<std::int64_t>(exec.nodes.size()) * gpu().config.upload_node_ns;
}

bool is_mark(const Work& work) { return work.type == NodeType::event_record || is_stamp(work); }

bool is_transfer(const Work& work) { return work.type == NodeType::memset || work.type == NodeType::memcpy; }

// What a node waits for beside, by the one before it.
std::int64_t apart(const Work& before, const Work& work) {
    const bool leaves = (is_mark(before) && is_transfer(work)) || (is_transfer(before) && is_mark(work));
    const bool breaks = is_mark(before) && is_work(work.type) && !is_stamp(work);
    return (leaves ? gpu().config.memset_apart_ns : 0) + (breaks ? gpu().config.stamp_before_work_ns : 0);
}

// A node starts when the last one that it waits for has ended, and a gap later if it is work. What an event or stamp node
// costs is theirs alone: the gap before the next piece of work stays what it was.
Span place(const ExecObject& exec, const ExecNode& node, const std::vector<Span>& spans, std::int64_t begin_ns) {
    const Config& config = gpu().config;
    const bool pays_gap = is_work(node.work.type) && !is_stamp(node.work) && node.enabled;
    std::int64_t ready = begin_ns;
    for (const auto& [before, edge] : node.after) {
        const Work& earlier = exec.nodes[before].work;
        std::int64_t end = spans[before].end_ns + (pays_gap ? config.graph_gap_ns : 0) + apart(earlier, node.work);
        if (edge.type == edge_type_programmatic) {
            end = std::max(spans[before].start_ns, spans[before].end_ns - config.programmatic_overlap_ns);
        }
        ready = std::max(ready, end);
    }
    if (node.work.type == NodeType::wait_event) {
        const auto event = gpu().events.find(node.work.event);
        if (event && !event->records.empty()) {
            ready = std::max(ready, event->records.back().done_ns);
        }
    }
    if (!node.enabled) {
        return {ready, ready + config.disabled_node_ns};
    }
    const std::int64_t duration = duration_of(node.work, true);
    return node.work.type == NodeType::kernel ? run_kernel(exec.device, node.work.kernel, ready, duration)
                                              : Span{ready, ready + duration};
}

// Blocks that a programmatic edge lets in early hold their places while they wait: a stamp kernel behind the same node, by
// a full edge, finds none until they have ended, and what follows it are stamps alone.
void hold_up_stamps(const ExecObject& exec, std::vector<Span>& spans) {
    std::vector<std::int64_t> held_until(spans.size(), 0); // by the programmatic successors of each node
    for (std::size_t i = 0; i < spans.size(); ++i) {
        for (const auto& [before, edge] : exec.nodes[i].after) {
            if (edge.type == edge_type_programmatic) {
                held_until[before] = std::max(held_until[before], spans[i].end_ns);
            }
        }
    }
    for (std::size_t i = 0; i < spans.size(); ++i) {
        if (!is_stamp(exec.nodes[i].work) || !exec.nodes[i].enabled) {
            continue;
        }
        std::int64_t start = spans[i].start_ns;
        for (const auto& [before, edge] : exec.nodes[i].after) {
            start = std::max({start, held_until[before], spans[before].end_ns});
        }
        spans[i] = {start, start + spans[i].end_ns - spans[i].start_ns};
    }
}

// A kernel runs where its module was loaded.
int device_of(const Work& work, int otherwise) {
    return work.type == NodeType::kernel ? work.kernel.function->device : otherwise;
}

void record_node_event(const ExecNode& node, const Operation& operation) {
    const auto event = gpu().events.find(node.work.event);
    if (!event) {
        ledger_error("cuGraphLaunch records an event that was destroyed before.");
        return;
    }
    record_event(*event, operation.submit_ns, operation.start_ns, true);
}

void run_node(const ExecObject& exec, const ExecNode& node, Operation operation, Span span) {
    operation.kind = kind_of(node.work);
    operation.name = name_of(node.work);
    operation.node = node.source;
    operation.node_id = node.id;
    const Operation launch = operation;
    note_geometry(node.work, operation);
    if ((exec.flags & instantiate_use_node_priority) == 0) {
        operation.priority = launch.priority;
    }
    operation.event = node.work.event;
    operation.device = device_of(node.work, operation.device);
    operation.start_ns = span.start_ns;
    operation.end_ns = span.end_ns;
    if (node.work.type == NodeType::event_record) {
        record_node_event(node, operation);
    }
    if (!is_work(node.work.type) && node.work.type != NodeType::event_record) {
        return;
    }
    ledger_operation(operation);
    if (node.work.type == NodeType::kernel && !gpu().functions.find(node.work.kernel.function->handle)) {
        ledger_error("cuGraphLaunch runs a kernel of an unloaded module.");
    }
    if (has_effect(node.work)) {
        schedule_effect(span.end_ns, [work = node.work, device = operation.device, span] {
            carry_out(work, device, span.start_ns, span.end_ns);
        });
    }
}

void run(Call& call, StreamObject& stream, ExecObject& exec) {
    const Config& config = gpu().config;
    const std::int64_t gap = stream.had_work ? config.gap_ns : 0;
    const std::int64_t start = std::max({host_now() + config.submit_ns, ready_ns(stream) + gap, exec.last_end_ns});
    std::vector<Span> spans;
    const std::int64_t begin =
        start + config.graph_start_ns + static_cast<std::int64_t>(exec.nodes.size()) * config.graph_start_node_ns;
    std::int64_t end = begin;
    for (const ExecNode& node : exec.nodes) {
        spans.push_back(place(exec, node, spans, begin));
    }
    if (config.programmatic_holds_slots) {
        hold_up_stamps(exec, spans);
    }
    for (const Span& span : spans) {
        end = std::max(end, span.end_ns);
    }
    Operation operation;
    operation.kind = OpKind::graph;
    operation.name = "graph";
    operation.device = stream.device;
    operation.stream_id = stream.id;
    operation.graph_id = exec.id;
    operation.replay = ++exec.replays;
    operation.priority = stream.priority;
    operation.submit_ns = call.began_ns();
    operation.start_ns = start;
    operation.end_ns = end;
    ledger_operation(operation);
    for (std::size_t i = 0; i < spans.size(); ++i) {
        if (exec.nodes[i].enabled) {
            run_node(exec, exec.nodes[i], operation, spans[i]);
        }
    }
    stream.had_work = true;
    exec.last_end_ns = end;
    occupy(stream, end);
    take_place(stream, end);
}

// Each node waits for the one before it alone.
bool is_line(const ExecObject& exec) {
    for (std::size_t i = 0; i < exec.nodes.size(); ++i) {
        const auto& after = exec.nodes[i].after;
        if (i == 0 ? !after.empty() : after.size() != 1 || after[0].first != i - 1) {
            return false;
        }
    }
    return true;
}

// A launch into a capture becomes a child graph node there.
CuResult capture_launch(Call& call, StreamObject& stream, const ExecObject& exec) {
    const auto source = exec.source.lock();
    if (!source) {
        return CuResult::invalid_value;
    }
    Work work;
    work.type = NodeType::graph;
    work.child = embed(*source);
    return call.done(capture_work(stream, std::move(work)));
}

} // namespace

extern "C" {

CuResult vgpu_graph_upload(GraphExec handle, Stream stream_handle) {
    PLUMB_VGPU_ENTER(graph_upload, {handle});
    const auto exec = call.exec(handle);
    const auto stream = exec ? call.working_stream(stream_handle) : nullptr;
    if (!stream) {
        return call.result();
    }
    if (stream->capture) {
        return call.break_capture(*stream->capture, CuResult::stream_capture_unsupported);
    }
    if (stream->device != exec->device) {
        return CuResult::invalid_value;
    }
    call.spend(upload(*exec));
    return call.done();
}

CuResult vgpu_graph_launch(GraphExec handle, Stream stream_handle) {
    PLUMB_VGPU_ENTER(graph_launch, {handle}, gpu().config.graph_launch_ns - gpu().config.call_ns);
    const auto exec = call.exec(handle);
    const auto stream = exec ? call.working_stream(stream_handle) : nullptr;
    if (!stream) {
        return call.result();
    }
    if (stream->capture) {
        return capture_launch(call, *stream, *exec);
    }
    if (stream->device != exec->device) {
        return CuResult::invalid_value;
    }
    const std::int64_t per_node =
        gpu().config.graph_launch_node_ns + (is_line(*exec) ? 0 : gpu().config.branch_launch_node_ns);
    call.spend(upload(*exec) + static_cast<std::int64_t>(exec->nodes.size()) * per_node);
    wait_for_place(call, *stream);
    run(call, *stream, *exec);
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/capture.hpp"

#include <algorithm>

namespace plumb::vgpu {

namespace {

void join(Frontier& frontier, const Frontier& more) {
    for (const FrontierNode& node : more) {
        const bool known = std::any_of(frontier.begin(), frontier.end(),
                                       [&node](const FrontierNode& have) { return have.node == node.node; });
        if (!known) {
            frontier.push_back(node);
        }
    }
}

void collect_ancestors(const NodeObject& node, std::set<const NodeObject*>& seen) {
    std::vector<const NodeObject*> open{&node};
    while (!open.empty()) {
        const NodeObject* next = open.back();
        open.pop_back();
        if (!seen.insert(next).second) {
            continue;
        }
        for (const Dependency& dependency : next->after) {
            open.push_back(dependency.from);
        }
    }
}

// Every other stream's last nodes must lie before the origin's frontier.
bool all_joined(const CaptureObject& capture) {
    std::set<const NodeObject*> before;
    for (const FrontierNode& node : capture.origin->frontier) {
        if (const auto object = find_node(node.node)) {
            collect_ancestors(*object, before);
        }
    }
    for (const auto& stream : capture.streams) {
        for (const FrontierNode& node : stream->frontier) {
            const auto object = find_node(node.node);
            if (object && before.count(object.get()) == 0) {
                return false;
            }
        }
    }
    return true;
}

CuResult info_of(Call& call, Stream handle, CaptureStatus* status, unsigned long long* id, Graph* graph,
                 const GraphNode** nodes, const EdgeData** edges, std::size_t* count) {
    const auto stream = call.stream(handle);
    if (!stream || status == nullptr) {
        return stream ? CuResult::invalid_value : call.result();
    }
    if (stream->legacy && implicit_capture(stream->context)) {
        return CuResult::stream_capture_implicit;
    }
    *status = CaptureStatus::none;
    if (!stream->capture) {
        return call.done();
    }
    const CaptureObject& capture = *stream->capture;
    *status = capture.invalid ? CaptureStatus::invalidated : CaptureStatus::active;
    if (capture.invalid) {
        return call.done();
    }
    if (id != nullptr) {
        *id = capture.id;
    }
    if (graph != nullptr) {
        *graph = capture.graph->handle;
    }
    if (count != nullptr) {
        *count = stream->frontier.size();
    }
    if (nodes == nullptr) {
        return edges == nullptr ? call.done() : CuResult::invalid_value;
    }
    auto handed = std::make_shared<StreamObject::Handed>();
    for (const FrontierNode& node : stream->frontier) {
        const EdgeData& edge = node.edge;
        if (edges == nullptr && (edge.from_port != 0 || edge.to_port != 0 || edge.type != 0)) {
            return CuResult::lossy_query;
        }
        handed->nodes.push_back(node.node);
        handed->edges.push_back(edge);
    }
    stream->handed.push_back(handed);
    *nodes = handed->nodes.data();
    if (edges != nullptr) {
        *edges = handed->edges.data();
    }
    return call.done();
}

CuResult update_dependencies(Call& call, Stream handle, const GraphNode* nodes, const EdgeData* edges,
                             std::size_t count, unsigned flags) {
    // Read before the stream is touched: the array may be the one that the driver gave out.
    Frontier given;
    for (std::size_t i = 0; i < count; ++i) {
        given.push_back({nodes[i], edges == nullptr ? EdgeData{} : edges[i]});
    }
    const auto stream = call.working_stream(handle);
    if (!stream) {
        return call.result();
    }
    if (!stream->capture) {
        return CuResult::illegal_state;
    }
    if (flags > set_capture_dependencies) {
        return CuResult::invalid_value;
    }
    for (const FrontierNode& node : given) {
        const auto object = call.node(node.node);
        if (!object) {
            return call.result();
        }
        if (object->graph != stream->capture->graph.get()) {
            return CuResult::invalid_value;
        }
    }
    if (flags == set_capture_dependencies) {
        stream->frontier.clear();
    }
    join(stream->frontier, given);
    return call.done();
}

// Whatever comes of it, the capture is over afterwards.
CuResult finish_capture(const std::shared_ptr<CaptureObject>& capture, Graph* graph, CuResult failure) {
    if (failure == CuResult::success) {
        capture->graph->capturing = false;
        *graph = capture->graph->handle;
    } else {
        *graph = nullptr;
        drop_graph(capture->graph);
    }
    leave_capture(capture);
    return failure;
}

} // namespace

std::shared_ptr<CaptureObject> implicit_capture(Context context) {
    for (const auto& capture : gpu().captures) {
        if (capture->invalid) {
            continue;
        }
        for (const auto& stream : capture->streams) {
            if (stream->context == context && stream->blocking()) {
                return capture;
            }
        }
    }
    return nullptr;
}

void invalidate(CaptureObject& capture, const char* symbol) {
    if (capture.invalid) {
        return;
    }
    capture.invalid = true;
    gpu().ledger.invalidations.push_back({capture.id, symbol, std::this_thread::get_id(), capture.owner});
}

std::vector<std::shared_ptr<CaptureObject>> forbidding_captures() {
    std::vector<std::shared_ptr<CaptureObject>> forbidding;
    const CaptureMode mode = this_thread_state().mode;
    if (mode == CaptureMode::relaxed) {
        return forbidding;
    }
    for (const auto& capture : gpu().captures) {
        if (capture->invalid || capture->mode == CaptureMode::relaxed) {
            continue;
        }
        const bool own = capture->owner == std::this_thread::get_id();
        if (own || (mode == CaptureMode::global && capture->mode == CaptureMode::global)) {
            forbidding.push_back(capture);
        }
    }
    return forbidding;
}

void leave_capture(const std::shared_ptr<CaptureObject>& capture) {
    for (const auto& stream : capture->streams) {
        stream->capture = nullptr;
        stream->frontier.clear();
    }
    std::erase(gpu().captures, capture);
}

CuResult capture_work(StreamObject& stream, Work work, bool programmatic) {
    Frontier after = stream.frontier;
    if (programmatic && work.type == NodeType::kernel) {
        for (FrontierNode& node : after) {
            const auto before = find_node(node.node);
            if (before && before->work.type == NodeType::kernel) {
                node.edge = {edge_port_programmatic, 0, edge_type_programmatic, {}};
            }
        }
    }
    work.kernel.priority = stream.priority;
    const auto node = add_node(*stream.capture->graph, std::move(work), after);
    stream.frontier = {{node->handle, {}}};
    return CuResult::success;
}

CuResult capture_wait(Call& call, const std::shared_ptr<StreamObject>& stream, EventObject& event, unsigned flags) {
    if (flags == event_record_external) {
        if (!stream->capture) {
            return CuResult::invalid_value;
        }
        Work work;
        work.type = NodeType::wait_event;
        work.event = event.handle;
        return call.done(capture_work(*stream, std::move(work)));
    }
    std::shared_ptr<CaptureObject> of_event;
    for (const auto& capture : gpu().captures) {
        if (capture->id == event.capture_id) {
            of_event = capture;
        }
    }
    if (stream->capture && event.capture_id == 0) {
        return call.break_capture(*stream->capture, CuResult::stream_capture_isolation);
    }
    if (!of_event) {
        // Recorded in a capture that is over.
        if (stream->capture) {
            invalidate(*stream->capture, call.symbol());
        }
        return call.refuse(CuResult::captured_event);
    }
    if (of_event->invalid) {
        return CuResult::stream_capture_invalidated;
    }
    if (stream->capture && stream->capture != of_event) {
        invalidate(*stream->capture, call.symbol());
        return call.break_capture(*of_event, CuResult::stream_capture_merge);
    }
    if (stream->legacy) {
        return call.break_capture(*of_event, CuResult::stream_capture_implicit);
    }
    if (!stream->capture) {
        stream->capture = of_event;
        of_event->streams.push_back(stream);
    }
    join(stream->frontier, event.frontier);
    return call.done();
}

extern "C" {

CuResult vgpu_stream_begin_capture(Stream stream, CaptureMode mode) {
    PLUMB_VGPU_ENTER(stream_begin_capture);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    if (object->legacy) {
        return CuResult::stream_capture_unsupported;
    }
    if (object->capture) {
        return CuResult::illegal_state;
    }
    auto capture = std::make_shared<CaptureObject>();
    capture->id = gpu().next_id++;
    capture->mode = mode;
    capture->owner = std::this_thread::get_id();
    capture->origin = object;
    capture->streams.push_back(object);
    capture->graph = make_graph();
    capture->graph->capturing = true;
    object->capture = capture;
    gpu().captures.push_back(capture);
    return call.done();
}

CuResult vgpu_stream_end_capture(Stream stream, Graph* graph) {
    PLUMB_VGPU_ENTER(stream_end_capture);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    const auto capture = object->capture;
    if (!capture) {
        return CuResult::illegal_state;
    }
    if (capture->origin != object) {
        invalidate(*capture, call.symbol());
        return CuResult::stream_capture_unmatched;
    }
    if (capture->mode != CaptureMode::relaxed && capture->owner != std::this_thread::get_id()) {
        return CuResult::stream_capture_wrong_thread;
    }
    if (capture->invalid) {
        return finish_capture(capture, graph, CuResult::stream_capture_invalidated);
    }
    if (call.done() != CuResult::success) {
        return finish_capture(capture, graph, call.done());
    }
    return finish_capture(capture, graph, all_joined(*capture) ? CuResult::success : CuResult::stream_capture_unjoined);
}

CuResult vgpu_stream_is_capturing(Stream stream, CaptureStatus* status) {
    PLUMB_VGPU_ENTER(stream_is_capturing);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    if (object->legacy && implicit_capture(object->context)) {
        return CuResult::stream_capture_implicit;
    }
    *status = CaptureStatus::none;
    if (object->capture) {
        *status = object->capture->invalid ? CaptureStatus::invalidated : CaptureStatus::active;
    }
    return call.done();
}

CuResult vgpu_stream_get_capture_info_v12030(Stream stream, CaptureStatus* status, unsigned long long* id, Graph* graph,
                                             const GraphNode** nodes, const EdgeData** edges, std::size_t* count) {
    PLUMB_VGPU_ENTER(stream_get_capture_info_v12030);
    return info_of(call, stream, status, id, graph, nodes, edges, count);
}

CuResult vgpu_stream_get_capture_info_v11030(Stream stream, CaptureStatus* status, unsigned long long* id, Graph* graph,
                                             const GraphNode** nodes, std::size_t* count) {
    PLUMB_VGPU_ENTER(stream_get_capture_info_v11030);
    return info_of(call, stream, status, id, graph, nodes, nullptr, count);
}

CuResult vgpu_stream_update_dependencies_v12030(Stream stream, GraphNode* nodes, const EdgeData* edges,
                                                std::size_t count, unsigned flags) {
    PLUMB_VGPU_ENTER(stream_update_dependencies_v12030);
    return update_dependencies(call, stream, nodes, edges, count, flags);
}

CuResult vgpu_stream_update_dependencies_v11030(Stream stream, GraphNode* nodes, std::size_t count, unsigned flags) {
    PLUMB_VGPU_ENTER(stream_update_dependencies_v11030);
    return update_dependencies(call, stream, nodes, nullptr, count, flags);
}

CuResult vgpu_thread_exchange_capture_mode(CaptureMode* mode) {
    PLUMB_VGPU_ENTER(thread_exchange_capture_mode);
    if (mode == nullptr || static_cast<int>(*mode) < 0 || static_cast<int>(*mode) > 2) {
        return CuResult::invalid_value;
    }
    std::swap(this_thread_state().mode, *mode);
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu

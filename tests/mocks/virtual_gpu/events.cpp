// SPDX-License-Identifier: Apache-2.0
// Events: a time stamp that the device takes when everything before it in the stream is done.
#include <algorithm>

#include "virtual_gpu/timeline.hpp"

namespace plumb::vgpu {

namespace {

CuResult record(Call& call, Event handle, Stream stream_handle, unsigned flags) {
    const auto stream = call.working_stream(stream_handle);
    const auto event = stream ? call.event(handle) : nullptr;
    if (!event) {
        return call.result();
    }
    if (event->context != stream->context) {
        return CuResult::invalid_handle;
    }
    if (flags > event_record_external || (flags == event_record_external && !stream->capture)) {
        return CuResult::invalid_value; // "external" means nothing outside of a capture
    }
    if (stream->capture && flags == event_record_external) {
        Work work;
        work.type = NodeType::event_record;
        work.event = handle;
        return capture_work(*stream, std::move(work));
    }
    if (stream->capture) {
        event->capture_id = stream->capture->id;
        event->frontier = stream->frontier;
        return call.done();
    }
    const Config& config = gpu().config;
    const std::int64_t time = std::max(host_now() + config.submit_ns, ready_ns(*stream));
    occupy(*stream, time + config.event_ns);
    record_event(*event, call.began_ns(), time, false);

    Operation operation;
    operation.kind = OpKind::event_record;
    operation.name = "event";
    operation.device = stream->device;
    operation.stream_id = stream->id;
    operation.event = handle;
    operation.submit_ns = call.began_ns();
    operation.start_ns = time;
    operation.end_ns = time + config.event_ns;
    ledger_operation(operation);
    return call.done();
}

// "last recorded in a capturing stream": it stands for no work, and asking breaks the capture if that still goes on.
CuResult refuse_captured(Call& call, const EventObject& event) {
    for (const auto& capture : gpu().captures) {
        if (capture->id == event.capture_id) {
            return call.break_capture(*capture, CuResult::captured_event);
        }
    }
    return call.refuse(CuResult::captured_event);
}

bool is_done(const EventObject& event) {
    bool newer = false;
    const EventRecord* last = happened(event, &newer);
    if (gpu().config.overwrite == Overwrite::at_execution && last != nullptr) {
        return true;
    }
    return event.records.empty() || !newer;
}

CuResult elapsed(Call& call, float* ms, Event begin_handle, Event end_handle) {
    const auto begin = call.event(begin_handle);
    const auto end = begin ? call.event(end_handle) : nullptr;
    if (!end) {
        return CuResult::invalid_handle;
    }
    if (begin->capture_id != 0 || end->capture_id != 0) {
        return CuResult::captured_event;
    }
    if (!begin->timed() || !end->timed() || begin->records.empty() || end->records.empty() ||
        begin->context != end->context) {
        return CuResult::invalid_handle;
    }
    if (!is_done(*begin) || !is_done(*end)) {
        return CuResult::not_ready;
    }
    bool newer = false;
    const auto stamp = [&newer](const EventObject& event) {
        return static_cast<std::int64_t>(event_stamp_ns(happened(event, &newer)->done_ns, event.device));
    };
    *ms = static_cast<float>(static_cast<double>(stamp(*end) - stamp(*begin)) * 1e-6);
    return call.done();
}

} // namespace

extern "C" {

CuResult vgpu_event_create(Event* event, unsigned flags) {
    PLUMB_VGPU_ENTER(event_create);
    const auto context = context_of(current_context());
    if (!context) {
        return CuResult::context_is_destroyed;
    }
    auto object = std::make_shared<EventObject>();
    object->id = gpu().next_id++;
    object->context = current_context();
    object->device = context->device;
    object->flags = flags;
    object->handle = gpu().events.give(object);
    *event = object->handle;
    return call.done();
}

CuResult vgpu_event_destroy(Event event) {
    PLUMB_VGPU_ENTER(event_destroy);
    const auto object = call.event(event);
    if (!object) {
        return call.result();
    }
    for (const EventRecord& record : object->records) {
        if (record.replayed && record.done_ns > host_now()) {
            ledger_error("cuEventDestroy destroyed an event that a replay in flight records.");
            break;
        }
    }
    gpu().events.take(event);
    return call.done();
}

CuResult vgpu_event_record(Event event, Stream stream) {
    PLUMB_VGPU_ENTER(event_record);
    return record(call, event, stream, event_default);
}

CuResult vgpu_event_record_with_flags(Event event, Stream stream, unsigned flags) {
    PLUMB_VGPU_ENTER(event_record_with_flags);
    return record(call, event, stream, flags);
}

CuResult vgpu_event_query(Event event) {
    PLUMB_VGPU_ENTER(event_query);
    const auto object = call.event(event);
    if (!object) {
        return call.result();
    }
    if (object->capture_id != 0) {
        return refuse_captured(call, *object);
    }
    return is_done(*object) ? call.done() : CuResult::not_ready;
}

CuResult vgpu_event_synchronize(Event event) {
    PLUMB_VGPU_ENTER(event_synchronize);
    const auto object = call.event(event);
    if (!object) {
        return call.result();
    }
    if (object->capture_id != 0) {
        return refuse_captured(call, *object);
    }
    call.synchronise(object->records.empty() ? 0 : object->records.back().done_ns);
    return gpu().lost != CuResult::success ? gpu().lost : call.done();
}

CuResult vgpu_event_elapsed_time_v12080(float* ms, Event begin, Event end) {
    PLUMB_VGPU_ENTER(event_elapsed_time_v12080);
    return elapsed(call, ms, begin, end);
}

CuResult vgpu_event_elapsed_time_v2000(float* ms, Event begin, Event end) {
    PLUMB_VGPU_ENTER(event_elapsed_time_v2000);
    return elapsed(call, ms, begin, end);
}

} // extern "C"

} // namespace plumb::vgpu

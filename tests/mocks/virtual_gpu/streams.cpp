// SPDX-License-Identifier: Apache-2.0
// Streams: made, asked, waited for; the legacy stream and those that wait for it.
#include <algorithm>

#include "virtual_gpu/capture.hpp"
#include "virtual_gpu/timeline.hpp"

namespace plumb::vgpu {

namespace {

constexpr std::size_t stale_arrays_kept = 8; // long enough to be read by mistake, then the sanitizers' business

bool is_legacy(Stream handle) { return handle == nullptr || reinterpret_cast<std::uintptr_t>(handle) == 1; }

bool is_per_thread(Stream handle) { return reinterpret_cast<std::uintptr_t>(handle) == 2; }

std::shared_ptr<StreamObject> make_stream(Context context, unsigned flags) {
    Gpu& g = gpu();
    auto stream = std::make_shared<StreamObject>();
    stream->id = g.next_id++;
    stream->context = context;
    stream->device = context_of(context)->device;
    stream->flags = flags;
    return stream;
}

void poison(StreamObject& stream) {
    for (const auto& array : stream.handed) {
        std::fill(array->nodes.begin(), array->nodes.end(), poisoned_node());
    }
    while (stream.handed.size() > stale_arrays_kept) {
        stream.handed.pop_front();
    }
}

CuResult create(Call& call, Stream* stream, unsigned flags, int priority = 0) {
    const Context context = current_context();
    if (!context_of(context)) {
        return CuResult::context_is_destroyed;
    }
    if (flags > stream_non_blocking) {
        return CuResult::invalid_value;
    }
    auto object = make_stream(context, flags);
    object->priority = priority_of(priority);
    object->handle = gpu().streams.give(object);
    *stream = object->handle;
    return call.done();
}

} // namespace

int priority_of(int wanted) { return std::clamp(wanted, greatest_priority, 0); }

std::shared_ptr<StreamObject> Call::stream(Stream handle) {
    std::shared_ptr<StreamObject> found;
    if (is_legacy(handle) || is_per_thread(handle)) {
        const auto context = context_of(current_context());
        if (!context) {
            refuse(CuResult::invalid_context);
            return nullptr;
        }
        found = context->legacy;
        if (is_per_thread(handle)) {
            auto& own = context->per_thread[std::this_thread::get_id()];
            if (!own) {
                own = make_stream(current_context(), event_default);
            }
            found = own;
        }
    } else {
        found = look_up(gpu().streams, handle, "a stream");
    }
    if (found) {
        poison(*found);
    }
    return found;
}

std::shared_ptr<StreamObject> Call::working_stream(Stream handle) {
    auto found = stream(handle);
    if (!found) {
        return nullptr;
    }
    if (found->legacy) {
        if (const auto capture = implicit_capture(found->context)) {
            break_capture(*capture, CuResult::stream_capture_implicit);
            return nullptr;
        }
    }
    if (found->capture && found->capture->invalid) {
        refuse(CuResult::stream_capture_invalidated);
        return nullptr;
    }
    return found;
}

extern "C" {

CuResult vgpu_stream_create(Stream* stream, unsigned flags) {
    PLUMB_VGPU_ENTER(stream_create);
    return create(call, stream, flags);
}

CuResult vgpu_stream_create_with_priority(Stream* stream, unsigned flags, int priority) {
    PLUMB_VGPU_ENTER(stream_create_with_priority);
    return create(call, stream, flags, priority);
}

CuResult vgpu_stream_destroy(Stream stream) {
    PLUMB_VGPU_ENTER(stream_destroy);
    if (is_legacy(stream) || is_per_thread(stream)) {
        return CuResult::invalid_value;
    }
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    if (const auto capture = object->capture) {
        invalidate(*capture, call.symbol());
        if (capture->origin == object) {
            drop_graph(capture->graph);
            leave_capture(capture);
        }
    }
    gpu().streams.take(stream);
    return call.done();
}

CuResult vgpu_stream_get_flags(Stream stream, unsigned* flags) {
    PLUMB_VGPU_ENTER(stream_get_flags);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    *flags = object->flags;
    return call.done();
}

CuResult vgpu_stream_get_priority(Stream stream, int* priority) {
    PLUMB_VGPU_ENTER(stream_get_priority);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    *priority = object->priority;
    return call.done();
}

CuResult vgpu_stream_query(Stream stream) {
    PLUMB_VGPU_ENTER(stream_query);
    const auto object = call.working_stream(stream);
    if (!object) {
        return call.result();
    }
    if (object->capture) {
        return call.break_capture(*object->capture, CuResult::stream_capture_unsupported);
    }
    return ready_ns(*object) <= host_now() ? call.done() : CuResult::not_ready;
}

CuResult vgpu_stream_synchronize(Stream stream) {
    PLUMB_VGPU_ENTER(stream_synchronize);
    const auto object = call.working_stream(stream);
    if (!object) {
        return call.result();
    }
    if (object->capture) {
        return call.break_capture(*object->capture, CuResult::stream_capture_unsupported);
    }
    call.synchronise(object->legacy ? ready_ns(*object) : object->tail_ns);
    return gpu().lost != CuResult::success ? gpu().lost : call.done();
}

CuResult vgpu_stream_get_ctx(Stream stream, Context* context) {
    PLUMB_VGPU_ENTER(stream_get_ctx);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    if (object->legacy && implicit_capture(object->context)) {
        return CuResult::stream_capture_implicit;
    }
    if (object->green) {
        return CuResult::not_supported;
    }
    *context = object->context;
    return call.done();
}

CuResult vgpu_stream_get_ctx_v12050(Stream stream, Context* context, GreenContext* green) {
    PLUMB_VGPU_ENTER(stream_get_ctx_v12050);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    *context = object->context;
    *green = object->green ? reinterpret_cast<GreenContext>(object.get()) : nullptr;
    return call.done();
}

CuResult vgpu_stream_get_id(Stream stream, unsigned long long* id) {
    PLUMB_VGPU_ENTER(stream_get_id);
    const auto object = call.stream(stream);
    if (!object) {
        return call.result();
    }
    *id = object->id;
    return call.done();
}

CuResult vgpu_stream_wait_event(Stream stream, Event event, unsigned flags) {
    PLUMB_VGPU_ENTER(stream_wait_event);
    const auto object = call.working_stream(stream);
    const auto awaited = object ? call.event(event) : nullptr;
    if (!awaited) {
        return call.result();
    }
    if (object->capture || awaited->capture_id != 0) {
        return capture_wait(call, object, *awaited, flags);
    }
    if (flags != 0) {
        return CuResult::invalid_value;
    }
    if (!awaited->records.empty()) {
        occupy(*object, awaited->records.back().done_ns);
    }
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu

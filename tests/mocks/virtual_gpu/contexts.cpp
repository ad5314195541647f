// SPDX-License-Identifier: Apache-2.0
// Initialisation, devices, contexts and error names.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

namespace {

bool is_device(Device device) { return device >= 0 && device < gpu().config.devices; }

Context make_context(int device, bool primary) {
    Gpu& g = gpu();
    auto context = std::make_shared<ContextObject>();
    context->id = g.next_id++;
    context->device = device;
    context->primary = primary;
    auto legacy = std::make_shared<StreamObject>();
    legacy->id = g.next_id++;
    legacy->device = device;
    legacy->legacy = true;
    context->legacy = legacy;
    const Context handle = g.contexts.give(context);
    legacy->context = handle;
    return handle;
}

template <class Table>
void drop_of(Table& table, Context context) {
    std::vector<decltype(table.give(nullptr))> gone;
    table.for_each([&](auto handle, const auto& object) {
        if (object.context == context) {
            gone.push_back(handle);
        }
    });
    for (const auto handle : gone) {
        table.take(handle);
    }
}

// What belonged to the context goes with it.
void drop_context(Context handle) {
    Gpu& g = gpu();
    std::vector<std::shared_ptr<CaptureObject>> captures;
    for (const auto& capture : g.captures) {
        if (capture->origin->context == handle) {
            captures.push_back(capture);
        }
    }
    for (const auto& capture : captures) {
        drop_graph(capture->graph);
        leave_capture(capture);
    }
    drop_of(g.streams, handle);
    drop_of(g.events, handle);
    drop_of(g.modules, handle);
    std::erase_if(g.allocations, [handle](const auto& entry) { return entry.second.context == handle; });
    g.contexts.take(handle);
}

/// A tool's library, as the driver loads it in the process's first cuInit().
void inject() {
    static bool done = false;
    const char* const path = std::getenv("CUDA_INJECTION64_PATH");
    void* const library = path != nullptr && !std::exchange(done, true) ? dlopen(path, RTLD_NOW) : nullptr;
    if (void* const begin = library != nullptr ? dlsym(library, "InitializeInjection") : nullptr; begin != nullptr) {
        (void)reinterpret_cast<int (*)()>(begin)();
    }
}

struct ErrorName {
    CuResult error;
    const char* name;
};
constexpr ErrorName error_names[] = {
    {CuResult::success, "CUDA_SUCCESS"},
    {CuResult::invalid_value, "CUDA_ERROR_INVALID_VALUE"},
    {CuResult::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CuResult::not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
    {CuResult::deinitialized, "CUDA_ERROR_DEINITIALIZED"},
    {CuResult::no_device, "CUDA_ERROR_NO_DEVICE"},
    {CuResult::invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
    {CuResult::invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
    {CuResult::invalid_ptx, "CUDA_ERROR_INVALID_PTX"},
    {CuResult::invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
    {CuResult::illegal_state, "CUDA_ERROR_ILLEGAL_STATE"},
    {CuResult::lossy_query, "CUDA_ERROR_LOSSY_QUERY"},
    {CuResult::not_found, "CUDA_ERROR_NOT_FOUND"},
    {CuResult::not_ready, "CUDA_ERROR_NOT_READY"},
    {CuResult::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CuResult::launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {CuResult::launch_timeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {CuResult::launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},
    {CuResult::not_permitted, "CUDA_ERROR_NOT_PERMITTED"},
    {CuResult::not_supported, "CUDA_ERROR_NOT_SUPPORTED"},
    {CuResult::stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {CuResult::stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {CuResult::stream_capture_merge, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {CuResult::stream_capture_unmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {CuResult::stream_capture_unjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {CuResult::stream_capture_isolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {CuResult::stream_capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {CuResult::captured_event, "CUDA_ERROR_CAPTURED_EVENT"},
    {CuResult::stream_capture_wrong_thread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    {CuResult::graph_exec_update_failure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    {CuResult::unknown, "CUDA_ERROR_UNKNOWN"},
};

CuResult name_error(CuResult error, const char** name) {
    for (const ErrorName& known : error_names) {
        if (known.error == error) {
            *name = known.name;
            return CuResult::success;
        }
    }
    *name = nullptr;
    return CuResult::invalid_value;
}

} // namespace

Context current_context() {
    const ThreadState& thread = this_thread_state();
    return thread.contexts.empty() ? nullptr : thread.contexts.back();
}

std::shared_ptr<ContextObject> context_of(Context context) { return gpu().contexts.find(context); }

extern "C" {

CuResult vgpu_init(unsigned flags) {
    PLUMB_VGPU_ENTER(init);
    if (flags != 0) {
        return CuResult::invalid_value;
    }
    if (gpu().config.devices == 0) {
        return CuResult::no_device;
    }
    if (!std::exchange(gpu().initialised, true)) {
        inject();
    }
    return call.done();
}

CuResult vgpu_driver_get_version(int* version) {
    PLUMB_VGPU_ENTER(driver_get_version);
    *version = gpu().config.driver_version;
    return call.done();
}

CuResult vgpu_get_error_name(CuResult error, const char** name) {
    PLUMB_VGPU_ENTER(get_error_name);
    return name_error(error, name);
}

CuResult vgpu_get_error_string(CuResult error, const char** text) {
    PLUMB_VGPU_ENTER(get_error_string);
    return name_error(error, text);
}

CuResult vgpu_device_get_count(int* count) {
    PLUMB_VGPU_ENTER(device_get_count);
    *count = gpu().config.devices;
    return call.done();
}

CuResult vgpu_device_get(Device* device, int ordinal) {
    PLUMB_VGPU_ENTER(device_get);
    if (!is_device(ordinal)) {
        return CuResult::invalid_device;
    }
    *device = ordinal;
    return call.done();
}

CuResult vgpu_device_get_name(char* name, int length, Device device) {
    PLUMB_VGPU_ENTER(device_get_name);
    if (!is_device(device) || length <= 0) {
        return CuResult::invalid_device;
    }
    std::snprintf(name, static_cast<std::size_t>(length), "Virtual GPU %d%s", device,
                  gpu().config.mig ? " MIG 1g.10gb" : "");
    return call.done();
}

CuResult vgpu_device_get_uuid(Uuid* uuid, Device device) {
    PLUMB_VGPU_ENTER(device_get_uuid);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    for (unsigned i = 0; i < sizeof uuid->bytes; ++i) {
        uuid->bytes[i] = static_cast<unsigned char>(0x10 * (device + 1) + static_cast<int>(i));
    }
    return call.done();
}

CuResult vgpu_device_get_attribute(int* value, int attribute, Device device) {
    PLUMB_VGPU_ENTER(device_get_attribute);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    switch (attribute) {
    case attribute_l2_cache_bytes:
        *value = 50 << 20;
        break;
    case attribute_compute_major:
        *value = 9;
        break;
    case attribute_compute_minor:
        *value = 0;
        break;
    case attribute_multiprocessors:
        *value = 132;
        break;
    default:
        *value = 0;
        break;
    }
    return call.done();
}

CuResult vgpu_device_total_mem(std::size_t* bytes, Device device) {
    PLUMB_VGPU_ENTER(device_total_mem);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    *bytes = gpu().config.memory_bytes;
    return call.done();
}

CuResult vgpu_primary_ctx_retain(Context* context, Device device) {
    PLUMB_VGPU_ENTER(primary_ctx_retain);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    auto& primary = gpu().primary;
    primary.resize(static_cast<std::size_t>(gpu().config.devices));
    Context& handle = primary[static_cast<std::size_t>(device)];
    if (!context_of(handle)) {
        handle = make_context(device, true);
    }
    ++context_of(handle)->retained;
    *context = handle;
    return call.done();
}

CuResult vgpu_primary_ctx_release(Device device) {
    PLUMB_VGPU_ENTER(primary_ctx_release);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    auto& primary = gpu().primary;
    const auto index = static_cast<std::size_t>(device);
    const auto object = index < primary.size() ? context_of(primary[index]) : nullptr;
    if (!object) {
        return CuResult::invalid_context;
    }
    if (--object->retained == 0) {
        call.wait_until(busy_until(primary[index]));
        drop_context(primary[index]);
        primary[index] = nullptr;
    }
    return call.done();
}

CuResult vgpu_ctx_create(Context* context, unsigned, Device device) {
    PLUMB_VGPU_ENTER(ctx_create);
    if (!is_device(device)) {
        return CuResult::invalid_device;
    }
    *context = make_context(device, false);
    this_thread_state().contexts.push_back(*context);
    return call.done();
}

CuResult vgpu_ctx_destroy(Context context) {
    PLUMB_VGPU_ENTER(ctx_destroy);
    const auto object = context_of(context);
    if (!object || object->primary) {
        return CuResult::invalid_context;
    }
    call.synchronise(busy_until(context));
    auto& stack = this_thread_state().contexts;
    if (!stack.empty() && stack.back() == context) {
        stack.pop_back();
    }
    drop_context(context);
    return call.done();
}

CuResult vgpu_ctx_get_current(Context* context) {
    PLUMB_VGPU_ENTER(ctx_get_current);
    *context = current_context();
    return call.done();
}

CuResult vgpu_ctx_set_current(Context context) {
    PLUMB_VGPU_ENTER(ctx_set_current);
    if (context != nullptr && !context_of(context)) {
        return CuResult::invalid_context;
    }
    auto& stack = this_thread_state().contexts;
    if (!stack.empty()) {
        stack.pop_back();
    }
    if (context != nullptr) {
        stack.push_back(context);
    }
    return call.done();
}

CuResult vgpu_ctx_push_current(Context context) {
    PLUMB_VGPU_ENTER(ctx_push_current);
    if (!context_of(context)) {
        return CuResult::invalid_context;
    }
    this_thread_state().contexts.push_back(context);
    return call.done();
}

CuResult vgpu_ctx_pop_current(Context* context) {
    PLUMB_VGPU_ENTER(ctx_pop_current);
    auto& stack = this_thread_state().contexts;
    if (stack.empty()) {
        return CuResult::invalid_context;
    }
    if (context != nullptr) {
        *context = stack.back();
    }
    stack.pop_back();
    return call.done();
}

CuResult vgpu_ctx_get_device(Device* device) {
    PLUMB_VGPU_ENTER(ctx_get_device);
    const auto object = context_of(current_context());
    if (!object) {
        return CuResult::context_is_destroyed;
    }
    *device = object->device;
    return call.done();
}

CuResult vgpu_ctx_get_id(Context context, unsigned long long* id) {
    PLUMB_VGPU_ENTER(ctx_get_id);
    const auto object = context_of(context != nullptr ? context : current_context());
    if (!object) {
        return context != nullptr ? CuResult::context_is_destroyed : CuResult::invalid_context;
    }
    *id = object->id;
    return call.done();
}

CuResult vgpu_ctx_get_stream_priority_range(int* least, int* greatest) {
    PLUMB_VGPU_ENTER(ctx_get_stream_priority_range);
    *least = 0;
    *greatest = greatest_priority;
    return call.done();
}

CuResult vgpu_ctx_synchronize(void) {
    PLUMB_VGPU_ENTER(ctx_synchronize);
    const Context context = current_context();
    if (!context_of(context)) {
        return CuResult::context_is_destroyed;
    }
    for (const auto& capture : gpu().captures) {
        if (capture->origin->context == context && !capture->invalid) {
            return call.break_capture(*capture, CuResult::stream_capture_unsupported);
        }
    }
    call.synchronise(busy_until(context));
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu

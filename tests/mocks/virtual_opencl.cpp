// SPDX-License-Identifier: Apache-2.0
#include "mocks/virtual_opencl.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "mocks/virtual_world.hpp"

// What the handles point to.
struct _cl_platform_id {};
struct _cl_device_id {};
struct _cl_context {
    std::size_t references = 0;
};
struct _cl_command_queue {
    std::size_t references = 0;
    std::uint64_t properties = 0;
    std::int64_t busy_until = 0;
};
struct _cl_event {
    std::size_t references = 0;
    _cl_command_queue* queue = nullptr;
    std::int64_t queued = 0, submitted = 0, started = 0, ended = 0;
};
struct _cl_program {};
struct _cl_kernel {
    std::string name;
    std::vector<std::vector<unsigned char>> arguments;
};
struct _cl_mem {
    std::unique_ptr<unsigned char, void (*)(void*)> data{nullptr, std::free}; // pages nobody writes cost nothing
    std::size_t bytes = 0;
};

namespace plumb::vocl {
namespace {

using namespace backends::opencl;
using backends::opencl::Context; // and not plumb::Context

struct World : mocks::VirtualWorld<> {
    Config config;
    _cl_platform_id platform;
    _cl_device_id device;
    _cl_context context{1};
    std::set<_cl_command_queue*> queues;
    std::set<_cl_context*> contexts; // all but the one above
    std::deque<_cl_event> events;    // of all times: handles stay where they are
    std::vector<_cl_event*> spare;
    std::size_t events_alive = 0;
    std::size_t others_alive = 0; // programs, kernels, buffers

    std::uint64_t on_device(std::int64_t host) const {
        return config.zero + static_cast<std::uint64_t>(host) +
               static_cast<std::uint64_t>(static_cast<double>(host) * config.drift);
    }
    _cl_event* new_event(_cl_command_queue* queue) {
        if (spare.empty()) {
            events.emplace_back();
            spare.push_back(&events.back());
        }
        _cl_event* event = spare.back();
        spare.pop_back();
        *event = {1, queue, 0, 0, 0, 0};
        ++events_alive;
        return event;
    }
};

World& world() {
    static World& only = *new World;
    return only;
}

constexpr ClResult failure = ClResult::out_of_resources;

ClResult put(const void* from, std::size_t bytes, std::size_t room, void* value, std::size_t* size) {
    if (size != nullptr) {
        *size = bytes;
    }
    if (value != nullptr) {
        if (room < bytes) {
            return ClResult::invalid_value;
        }
        std::memcpy(value, from, bytes);
    }
    return ClResult::success;
}

/// A new object, unless that call fails.
template <class T>
T* made(const char* call, ClResult* error) {
    const std::lock_guard lock(world().mutex);
    *error = world().fails(call) ? failure : ClResult::success;
    if (*error != ClResult::success) {
        return nullptr;
    }
    ++world().others_alive;
    return new T;
}

template <class T>
ClResult gone(T* object) {
    const std::lock_guard lock(world().mutex);
    --world().others_alive;
    delete object;
    return ClResult::success;
}

// The caller holds the lock.
void run(_cl_command_queue& queue, std::int64_t ns, Event* event) {
    World& w = world();
    const std::int64_t queued = w.now;
    w.now += w.config.call_ns;
    const std::int64_t ready = queued + w.config.start_ns;
    const bool in_order = (queue.properties & queue_out_of_order) == 0;
    // Out of order, a start is when the command was prepared, though the device works on one after another.
    const std::int64_t started = in_order ? std::max(ready, queue.busy_until) : ready;
    const std::int64_t ended = std::max(ready, queue.busy_until) + ns;
    queue.busy_until = ended;
    if (event != nullptr) {
        *event = w.new_event(&queue);
        (*event)->queued = queued + w.config.call_ns / 4;
        (*event)->submitted = queued + w.config.call_ns / 2;
        (*event)->started = started;
        (*event)->ended = ended;
    }
}

ClResult get_platform_ids(std::uint32_t room, Platform* platforms, std::uint32_t* count) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clGetPlatformIDs")) {
        return failure;
    }
    if (count != nullptr) {
        *count = 1;
    }
    if (platforms != nullptr && room > 0) {
        *platforms = &world().platform;
    }
    return ClResult::success;
}

ClResult get_device_ids(Platform, Bits, std::uint32_t room, DeviceId* devices, std::uint32_t* count) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clGetDeviceIDs")) {
        return failure;
    }
    if (count != nullptr) {
        *count = 1;
    }
    if (devices != nullptr && room > 0) {
        *devices = &world().device;
    }
    return ClResult::success;
}

ClResult get_device_info(DeviceId, std::uint32_t what, std::size_t room, void* value, std::size_t* size) {
    const std::lock_guard lock(world().mutex);
    const Config& config = world().config;
    if (world().fails("clGetDeviceInfo")) {
        return failure;
    }
    if (what == device_timer_resolution) {
        return put(&config.resolution_ns, sizeof config.resolution_ns, room, value, size);
    }
    const auto said = [&](const auto& fact) {
        return put(&fact, sizeof fact, room, value, size);
    };
    const std::uint64_t fused = fp_fused_multiply_add;
    const std::size_t largest_group = 256;
    switch (what) {
    case device_type:
        return said(config.device_type);
    case device_compute_units:
        return said(config.compute_units);
    case device_native_float_lanes:
        return said(config.float_lanes);
    case device_single_fp_config:
        return said(fused);
    case device_max_work_group_size:
        return said(largest_group);
    case device_cache_bytes:
        return said(config.cache_bytes);
    case device_memory_bytes:
        return said(config.memory_bytes);
    case device_largest_buffer:
        return said(config.largest_buffer);
    case device_shares_host_memory:
        return said(config.shares_host_memory);
    default:
        break;
    }
    const char* text = what == device_version ? config.version : "virtual device";
    return put(text, std::strlen(text) + 1, room, value, size);
}

Context create_context(const ContextProperty*, std::uint32_t, const DeviceId*,
                       void (*)(const char*, const void*, std::size_t, void*), void*, ClResult* error) {
    const std::lock_guard lock(world().mutex);
    *error = world().fails("clCreateContext") ? failure : ClResult::success;
    return *error == ClResult::success ? *world().contexts.insert(new _cl_context{1}).first : nullptr;
}

ClResult release_context(Context context) {
    const std::lock_guard lock(world().mutex);
    world().contexts.erase(context);
    delete context;
    return ClResult::success;
}

CommandQueue create_command_queue(Context, DeviceId, Bits properties, ClResult* error) {
    {
        const std::lock_guard lock(world().mutex);
        *error = world().fails("clCreateCommandQueue") ? failure : ClResult::success;
    }
    return *error == ClResult::success ? make_queue(properties) : nullptr;
}

ClResult retain_command_queue(CommandQueue queue) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clRetainCommandQueue")) {
        return failure;
    }
    ++queue->references;
    return ClResult::success;
}

ClResult release_command_queue(CommandQueue queue) {
    const std::lock_guard lock(world().mutex);
    if (--queue->references == 0) {
        world().queues.erase(queue);
        delete queue;
    }
    return ClResult::success;
}

ClResult get_command_queue_info(CommandQueue queue, std::uint32_t what, std::size_t room, void* value,
                                std::size_t* size) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clGetCommandQueueInfo")) {
        return failure;
    }
    const Context context = &world().context;
    const DeviceId device = &world().device;
    switch (what) {
    case queue_context:
        return put(&context, sizeof context, room, value, size);
    case queue_device:
        return put(&device, sizeof device, room, value, size);
    case queue_properties:
        return put(&queue->properties, sizeof queue->properties, room, value, size);
    default:
        return ClResult::invalid_value;
    }
}

ClResult enqueue_marker(CommandQueue queue, std::uint32_t, const Event*, Event* event) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clEnqueueMarkerWithWaitList")) {
        return failure;
    }
    run(*queue, 0, event);
    return ClResult::success;
}

Event create_user_event(Context, ClResult* error) {
    const std::lock_guard lock(world().mutex);
    *error = world().fails("clCreateUserEvent") ? failure : ClResult::success;
    return *error == ClResult::success ? world().new_event(nullptr) : nullptr;
}

// Whoever waits for it does so in no time: here only the host's calls take any.
ClResult set_user_event_status(Event, std::int32_t) {
    const std::lock_guard lock(world().mutex);
    return world().fails("clSetUserEventStatus") ? failure : ClResult::success;
}

ClResult flush(CommandQueue) {
    const std::lock_guard lock(world().mutex);
    return world().fails("clFlush") ? failure : ClResult::success;
}

ClResult wait_for_events(std::uint32_t count, const Event* events) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clWaitForEvents")) {
        return failure;
    }
    std::int64_t last = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        last = std::max(last, events[i]->ended);
    }
    world().wait_for(last);
    return ClResult::success;
}

ClResult retain_event(Event event) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clRetainEvent")) {
        return failure;
    }
    ++event->references;
    return ClResult::success;
}

ClResult release_event(Event event) {
    const std::lock_guard lock(world().mutex);
    if (--event->references == 0) {
        world().spare.push_back(event);
        --world().events_alive;
    }
    return ClResult::success;
}

ClResult get_event_info(Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size) {
    const std::lock_guard lock(world().mutex);
    World& w = world();
    if (w.fails("clGetEventInfo")) {
        return failure;
    }
    if (what == event_command_queue) {
        return put(&event->queue, sizeof event->queue, room, value, size);
    }
    w.now += 50; // whoever polls lets time pass
    const std::int32_t done = w.config.failed_status;
    const std::int32_t status = event->ended <= w.now ? done : 1;
    return put(&status, sizeof status, room, value, size);
}

ClResult get_event_stamp(Event event, std::uint32_t what, std::size_t room, void* value, std::size_t* size) {
    const std::lock_guard lock(world().mutex);
    World& w = world();
    if (w.fails("clGetEventProfilingInfo")) {
        return failure;
    }
    if (event->ended > w.now) {
        return ClResult::profiling_info_not_available;
    }
    const bool of_host = w.config.queued_by_host_clock;
    const auto early = [&](std::int64_t host) {
        return of_host ? static_cast<std::uint64_t>(host) : w.on_device(host);
    };
    std::uint64_t ticks = 0;
    switch (what) {
    case stamp_queued:
        ticks = early(event->queued);
        break;
    case stamp_submitted:
        ticks = early(event->submitted);
        break;
    case stamp_started:
        ticks = w.on_device(w.config.reversed_stamps ? event->ended + 5'000 : event->started);
        break;
    default:
        ticks = w.on_device(event->ended);
    }
    ticks = w.config.zero_stamps ? 0 : ticks;
    return put(&ticks, sizeof ticks, room, value, size);
}

ClResult get_device_and_host_timer(DeviceId, std::uint64_t* device_ns, std::uint64_t* host_ns) {
    const std::lock_guard lock(world().mutex);
    World& w = world();
    if (w.fails("clGetDeviceAndHostTimer")) {
        return failure;
    }
    if (!w.config.device_timer) {
        return ClResult::invalid_operation;
    }
    w.now += 200;
    *device_ns = w.on_device(w.now);
    *host_ns = static_cast<std::uint64_t>(w.now) + 123'456'789; // of a clock of its own
    w.now += 200;
    return ClResult::success;
}

Program create_program(Context, std::uint32_t, const char**, const std::size_t*, ClResult* error) {
    return made<_cl_program>("clCreateProgramWithSource", error);
}

ClResult build_program(Program, std::uint32_t, const DeviceId*, const char*, void (*)(Program, void*), void*) {
    const std::lock_guard lock(world().mutex);
    return world().fails("clBuildProgram") ? failure : ClResult::success;
}

ClResult release_program(Program program) { return gone(program); }

Kernel create_kernel(Program, const char* name, ClResult* error) {
    const Kernel kernel = made<_cl_kernel>("clCreateKernel", error);
    if (kernel != nullptr) {
        kernel->name = name;
    }
    return kernel;
}

ClResult release_kernel(Kernel kernel) { return gone(kernel); }

ClResult set_kernel_argument(Kernel kernel, std::uint32_t place, std::size_t bytes, const void* value) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clSetKernelArg")) {
        return failure;
    }
    kernel->arguments.resize(std::max<std::size_t>(kernel->arguments.size(), place + 1));
    const auto* from = static_cast<const unsigned char*>(value);
    kernel->arguments[place].assign(from, from + bytes);
    return ClResult::success;
}

Memory create_buffer(Context, Bits, std::size_t bytes, void*, ClResult* error) {
    const Memory memory = made<_cl_mem>("clCreateBuffer", error);
    if (memory != nullptr) {
        memory->data.reset(static_cast<unsigned char*>(std::calloc(bytes, 1)));
        memory->bytes = bytes;
    }
    return memory;
}

ClResult release_memory(Memory memory) { return gone(memory); }

ClResult enqueue_kernel(CommandQueue queue, Kernel kernel, std::uint32_t, const std::size_t*, const std::size_t* items,
                        const std::size_t* of_group, std::uint32_t, const Event*, Event* event) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clEnqueueNDRangeKernel")) {
        return failure;
    }
    const auto& model = world().config.kernel;
    run(*queue, model ? model(KernelRun{kernel->name, *items, *of_group, kernel->arguments}) : 1'000, event);
    return ClResult::success;
}

ClResult read_buffer(CommandQueue queue, Memory memory, std::uint32_t, std::size_t offset, std::size_t bytes, void* to,
                     std::uint32_t, const Event*, Event*) {
    const std::lock_guard lock(world().mutex);
    if (world().fails("clEnqueueReadBuffer")) {
        return failure;
    }
    if (offset > memory->bytes || bytes > memory->bytes - offset) {
        return ClResult::invalid_value;
    }
    world().reach(queue->busy_until);
    std::memcpy(to, memory->data.get() + offset, bytes);
    return ClResult::success;
}

OpenClDriver table() {
    OpenClDriver calls;
#define PLUMB_VOCL_ENTRY(member, symbol, need, result, parameters) calls.member = member;
    PLUMB_OPENCL_CALLS(PLUMB_VOCL_ENTRY)
#undef PLUMB_VOCL_ENTRY
    return calls;
}

} // namespace

unsigned char* KernelRun::memory(std::size_t place) const { return value<Memory>(place)->data.get(); }
std::size_t KernelRun::memory_bytes(std::size_t place) const { return value<Memory>(place)->bytes; }

void reset(const Config& config) {
    World& w = world();
    const std::lock_guard lock(w.mutex);
    w.config = config;
    w.forget_failures_and_waits();
}

Config& config() { return world().config; }

const OpenClDriver& driver() {
    static const OpenClDriver calls = table();
    return calls;
}

const HostClock& host_clock() {
    static const mocks::VirtualHostClock<now_ns> clock;
    return clock;
}

Context context() { return &world().context; }
DeviceId device() { return &world().device; }

CommandQueue make_queue(std::uint64_t properties) {
    const std::lock_guard lock(world().mutex);
    return *world().queues.insert(new _cl_command_queue{1, properties, 0}).first;
}

void release(CommandQueue queue) { static_cast<void>(release_command_queue(queue)); }
void release(Event event) { static_cast<void>(release_event(event)); }

void enqueue(CommandQueue queue, std::int64_t ns, Event* event) {
    const std::lock_guard lock(world().mutex);
    run(*queue, ns, event);
}

void pass(std::int64_t ns) { world().pass(ns); }

void settle() {
    const std::lock_guard lock(world().mutex);
    for (const _cl_command_queue* queue : world().queues) {
        world().reach(queue->busy_until);
    }
}

std::int64_t now_ns() { return world().pass(20); } // reading a clock takes time

std::uint64_t device_ns(std::int64_t host_ns) {
    const std::lock_guard lock(world().mutex);
    return world().on_device(host_ns);
}

void fail(const std::string& call, unsigned use) { world().plan_failure(call, use); }
bool has_failed() { return world().has_failed(); }

std::size_t alive() {
    const std::lock_guard lock(world().mutex);
    std::size_t references = world().events_alive + world().others_alive + world().contexts.size();
    for (const _cl_command_queue* queue : world().queues) {
        references += queue->references;
    }
    return references;
}

std::size_t waits() { return World::of(world(), &World::waits); }

} // namespace plumb::vocl

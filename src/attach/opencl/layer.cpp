// SPDX-License-Identifier: Apache-2.0
#include "attach/opencl/layer.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "attach/attachment.hpp"
#include "attach/ggml/hooks.hpp"
#include "backends/opencl/driver_types.hpp"
#include "plumb/backend.hpp"
#include "plumb/opencl.hpp"

namespace plumb::attach::opencl {
namespace {

using namespace plumb::backends::opencl;
using backends::opencl::Context; // not plumb/record.hpp's

constexpr std::int32_t invalid_value = -30;

using CreateQueue = CommandQueue (*)(Context context, DeviceId device, Bits properties, ClResult* error);
using CreateQueueWithProperties = CommandQueue (*)(Context context, DeviceId device, const Bits* properties,
                                                   ClResult* error);
using EnqueueKernel = ClResult (*)(CommandQueue queue, Kernel kernel, std::uint32_t dimensions,
                                   const std::size_t* offset, const std::size_t* items, const std::size_t* of_group,
                                   std::uint32_t count, const Event* list, Event* event);
using KernelInfo = ClResult (*)(Kernel kernel, std::uint32_t what, std::size_t room, void* value, std::size_t* size);
using ReleaseEvent = ClResult (*)(Event event);

/// What lies below us; written once, before the loader calls through our table.
struct Below {
    CreateQueue create_queue;
    CreateQueueWithProperties create_queue_with_properties;
    EnqueueKernel enqueue_kernel;
    KernelInfo kernel_info;
    ReleaseEvent release_event;
};
Below below;

CommandQueue create_queue(Context context, DeviceId device, Bits properties, ClResult* error) {
    CommandQueue const made = below.create_queue(context, device, properties | queue_profiling, error);
    return made != nullptr ? made : below.create_queue(context, device, properties, error);
}

CommandQueue create_queue_with_properties(Context context, DeviceId device, const Bits* properties, ClResult* error) {
    std::vector<Bits> with_profiling;
    bool said = false;
    for (const Bits* at = properties; at != nullptr && *at != 0; at += 2) {
        const bool is_it = *at == queue_properties;
        with_profiling.insert(with_profiling.end(), {at[0], is_it ? at[1] | queue_profiling : at[1]});
        said = said || is_it;
    }
    if (!said) {
        with_profiling.insert(with_profiling.end(), {queue_properties, queue_profiling});
    }
    with_profiling.push_back(0);
    CommandQueue const made = below.create_queue_with_properties(context, device, with_profiling.data(), error);
    return made != nullptr ? made : below.create_queue_with_properties(context, device, properties, error);
}

Name name_of(Kernel kernel) {
    constexpr std::uint32_t function_name = 0x1190; // CL_KERNEL_FUNCTION_NAME
    std::array<char, 1024> text{};
    const bool known =
        below.kernel_info(kernel, function_name, text.size() - 1, text.data(), nullptr) == ClResult::success;
    return profiler().intern(known && text[0] != '\0' ? text.data() : "opencl_kernel");
}

ClResult enqueue_kernel(CommandQueue queue, Kernel kernel, std::uint32_t dimensions, const std::size_t* offset,
                        const std::size_t* items, const std::size_t* of_group, std::uint32_t count, const Event* list,
                        Event* event) {
    Profiler& recorder = profiler();
    if (!recorder.enabled()) {
        return below.enqueue_kernel(queue, kernel, dimensions, offset, items, of_group, count, list, event);
    }
    const Queue timed = plumb::opencl(queue);
    if (ggml::on_device(timed)) {
        return below.enqueue_kernel(queue, kernel, dimensions, offset, items, of_group, count, list, event);
    }
    Event own = nullptr;
    Event* const wanted = event != nullptr ? event : &own;
    const ClResult result =
        below.enqueue_kernel(queue, kernel, dimensions, offset, items, of_group, count, list, wanted);
    if (result == ClResult::success) {
        if (const Result<DeviceToken> token = timed.timer->attach(*wanted);
            token.ok()) { // keeps the event until it is read
            recorder.record_device(name_of(kernel), timed, *token);
        } else if (detail::ThreadRecorder* const pen = recorder.thread(); pen != nullptr) {
            pen->drop(detail::Drop::device_failed);
        }
        if (own != nullptr) {
            (void)below.release_event(own);
        }
    }
    return result;
}

template <class Call>
void stand_in(std::vector<void*>& table, std::size_t place, Call& kept, Call ours) {
    kept = reinterpret_cast<Call>(table[place]);
    table[place] = kept != nullptr ? reinterpret_cast<void*>(ours) : nullptr;
}

} // namespace

std::int32_t layer_info(std::uint32_t what, std::size_t room, void* value, std::size_t* size) noexcept {
    if (what != layer_api_version || (value != nullptr && room < sizeof layer_api_version_100)) {
        return invalid_value;
    }
    if (value != nullptr) {
        std::memcpy(value, &layer_api_version_100, sizeof layer_api_version_100);
    }
    if (size != nullptr) {
        *size = sizeof layer_api_version_100;
    }
    return 0;
}

std::int32_t init_layer(std::uint32_t count, void* const* table_below, std::uint32_t* our_count,
                        void* const** ours) noexcept {
    if (table_below == nullptr || our_count == nullptr || ours == nullptr || count < CallPlaces::count) {
        return invalid_value;
    }
    static auto* const table =
        new std::vector<void*>(table_below, table_below + count); // the loader calls through it until the process ends
    if (wanted()) {
        stand_in(*table, CallPlaces::create_queue, below.create_queue, &create_queue);
        stand_in(*table, CallPlaces::create_queue_with_properties, below.create_queue_with_properties,
                 &create_queue_with_properties);
        stand_in(*table, CallPlaces::enqueue_kernel, below.enqueue_kernel, &enqueue_kernel);
        below.kernel_info = reinterpret_cast<KernelInfo>((*table)[CallPlaces::kernel_info]);
        below.release_event = reinterpret_cast<ReleaseEvent>((*table)[CallPlaces::release_event]);
        tell("engine", "an OpenCL program\tOPENCL_LAYERS");
    }
    *our_count = count;
    *ours = table->data();
    return 0;
}

} // namespace plumb::attach::opencl

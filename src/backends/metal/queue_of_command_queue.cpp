// SPDX-License-Identifier: Apache-2.0
// plumb::metal() and plumb::metal_counters(): which command queue has which queues of ours. Their timers keep it alive, so
// that its address is never another's.
#include <string>
#include <string_view>

#include "backends/metal/counter_timer.hpp"
#include "backends/metal/queue_timer.hpp"
#include "backends/queue_directory.hpp"
#include "plumb/metal.hpp"

namespace plumb {
namespace {

using backends::metal::CounterTimer;
using backends::metal::MetalQueueTimer;
using Directory = backends::QueueDirectory<void*>;

Directory& directory_of_queues() {
    static Directory& only =
        *new Directory({"metal", "metal_command_buffer", "Metal command queues", "reuse command queues"});
    return only;
}

Directory& directory_of_counters() {
    static Directory& only = *new Directory({"metal", "metal_counter", "Metal command queues", "reuse command queues"});
    return only;
}

template <class Timer>
Queue find_in(Directory& directory, void* command_queue) noexcept {
    const auto& loaded = backends::metal::driver();
    if (!loaded) {
        return directory.none(loaded.error());
    }
    const auto make = [&] {
        return Timer::create(*loaded, command_queue, {.max_in_flight = 8'192});
    };
    return directory.find(command_queue, make, [](const Timer& timer, std::size_t number) {
        return timer.clock_name() + " queue " + std::to_string(number);
    });
}

} // namespace

Queue metal(void* command_queue) noexcept { return find_in<MetalQueueTimer>(directory_of_queues(), command_queue); }

Queue metal_counters(void* command_queue) noexcept {
    return find_in<CounterTimer>(directory_of_counters(), command_queue);
}

Status metal_encoder(Queue counters, void* command_buffer, void* compute_encoder) noexcept {
    const char* const source = counters.timer != nullptr ? counters.timer->source() : "host";
    // A timer that is absent has our source, too, but is no CounterTimer; every encoder is refused with its reason.
    if (std::string_view(source) != "metal_counter") {
        return Error{ErrorCode::invalid_argument, "this queue is not of plumb::metal_counters(); give one that is"};
    }
    auto* timer = dynamic_cast<CounterTimer*>(counters.timer);
    if (timer == nullptr) {
        const Result<DeviceToken> refused = counters.timer->begin();
        return refused ? Status() : Status(refused.error());
    }
    return timer->use_encoder(command_buffer, compute_encoder);
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// plumb::opencl(): which command queue has which queue of ours. Its timer keeps the command queue alive, so that no handle
// is ever given out anew.
#include <string>
#include <utility>

#include "backends/opencl/queue_timer.hpp"
#include "backends/queue_directory.hpp"
#include "plumb/opencl.hpp"

namespace plumb {
namespace {

using backends::opencl::CommandQueue;
using backends::opencl::OpenClQueueTimer;

backends::QueueDirectory<CommandQueue>& directory() {
    static auto& only = *new backends::QueueDirectory<CommandQueue>(
        {"opencl", "opencl_event", "OpenCL queues", "reuse command queues"});
    return only;
}

} // namespace

Queue opencl(void* command_queue) noexcept {
    const auto& loaded = backends::opencl::driver();
    if (!loaded) {
        return directory().none(loaded.error());
    }
    const auto native = static_cast<CommandQueue>(command_queue);
    TimerOptions options;
    options.max_in_flight = 8'192;
    return directory().find(
        native, [&] { return OpenClQueueTimer::create(*loaded, native, options); },
        [](const OpenClQueueTimer& timer, std::size_t number) {
            return timer.clock_name() + " queue " + std::to_string(number);
        });
}

} // namespace plumb

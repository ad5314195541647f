// SPDX-License-Identifier: Apache-2.0
// plumb::opencl(): which command queue has which queue of ours. Every command queue that is known here is kept alive, timed or
// not, so that no handle is ever given out anew.
#include <memory>
#include <string>
#include <utility>

#include "backends/opencl/queue_timer.hpp"
#include "backends/queue_directory.hpp"
#include "plumb/opencl.hpp"

namespace plumb {
namespace {

using backends::opencl::CommandQueue;
using backends::opencl::OpenClDriver;
using backends::opencl::OpenClQueueTimer;

backends::QueueDirectory<CommandQueue>& directory() {
    static auto& only = *new backends::QueueDirectory<CommandQueue>(
        {"opencl", "opencl_event", "OpenCL queues", "reuse command queues"});
    return only;
}

/// One that cannot be timed stays so, and is remembered by its handle: a timer keeps its own.
Result<std::unique_ptr<OpenClQueueTimer>> timer_of(const OpenClDriver& driver, CommandQueue queue) {
    TimerOptions options;
    options.max_in_flight = 8'192;
    auto made = OpenClQueueTimer::create(driver, queue, options);
    if (!made && (made.error().code == ErrorCode::unsupported || made.error().code == ErrorCode::failed)) {
        static_cast<void>(driver.retain_command_queue(queue));
    }
    return made;
}

} // namespace

Queue opencl(void* command_queue) noexcept {
    const auto& loaded = backends::opencl::driver();
    if (!loaded) {
        return directory().none(loaded.error());
    }
    const auto native = static_cast<CommandQueue>(command_queue);
    return directory().find(
        native, [&] { return timer_of(*loaded, native); },
        [](const OpenClQueueTimer& timer, std::size_t number) {
            return timer.clock_name() + " queue " + std::to_string(number);
        });
}

} // namespace plumb

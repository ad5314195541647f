// SPDX-License-Identifier: Apache-2.0
// Which stream has which queue: behind plumb::cuda() and its like. One per vendor, never destroyed. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "backends/cuda/queue_timer.hpp"
#include "backends/queue_directory.hpp"

namespace plumb::backends::cuda {

class StreamDirectory {
  public:
    explicit StreamDirectory(const QueueWords& words) : queues_(words) {}

    Queue find(const Result<Driver>& loaded, Stream stream) {
        if (!loaded) {
            return queues_.none(loaded.error());
        }
        TimerOptions options;
        options.max_in_flight = scopes_in_flight;
        return queues_.find(
            key_of(*loaded, stream), [&] { return CudaQueueTimer::create(*loaded, stream, options); }, name_of);
    }

  private:
    static constexpr std::uint32_t scopes_in_flight = 8'192;
    /// A handle alone may be given out anew. Where the driver has no ids (CUDA before 12.0) it is 0, but for handles that each
    /// context has: there it is the current context.
    using Key = std::pair<Stream, unsigned long long>;

    static Key key_of(const Driver& driver, Stream stream) noexcept {
        constexpr std::uintptr_t last_of_each_context = 2; // none or 1: the legacy stream; 2: the thread's own
        unsigned long long id = 0;
        Context context = nullptr;
        if (driver.stream_get_id != nullptr) {
            id = driver.stream_get_id(stream, &id) == CuResult::success ? id : 0;
        } else if (reinterpret_cast<std::uintptr_t>(stream) <= last_of_each_context &&
                   driver.ctx_get_current(&context) == CuResult::success) {
            id = reinterpret_cast<std::uintptr_t>(context);
        }
        return {stream, id};
    }
    static std::string name_of(const CudaQueueTimer& timer, std::size_t number) {
        return timer.clock_name() +
               (timer.stream() == nullptr ? " legacy stream" : " stream " + std::to_string(number));
    }

    QueueDirectory<Key> queues_;
};

} // namespace plumb::backends::cuda

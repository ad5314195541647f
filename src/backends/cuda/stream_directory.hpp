// SPDX-License-Identifier: Apache-2.0
// Which stream has which queue: behind plumb::cuda() and its like. One per vendor, never destroyed. Any thread.
#pragma once

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
    /// A handle alone may be given out anew; where the driver has no ids (CUDA before 12.0) it is 0.
    using Key = std::pair<Stream, unsigned long long>;

    static Key key_of(const Driver& driver, Stream stream) noexcept {
        unsigned long long id = 0;
        if (driver.stream_get_id != nullptr && driver.stream_get_id(stream, &id) != CuResult::success) {
            id = 0;
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

// SPDX-License-Identifier: Apache-2.0
// plumb::cuda(): which stream has which queue.
#include <string>
#include <utility>

#include "backends/cuda/queue_timer.hpp"
#include "backends/queue_directory.hpp"
#include "plumb/cuda.hpp"

namespace plumb {
namespace {

using backends::cuda::CudaQueueTimer;
using backends::cuda::CuResult;
using backends::cuda::Driver;
using backends::cuda::Stream;

constexpr std::uint32_t scopes_in_flight = 8'192;

/// A handle alone may be given out anew; before CUDA 12.0 the id is 0.
using Key = std::pair<Stream, unsigned long long>;

backends::QueueDirectory<Key>& directory() {
    static auto& only = *new backends::QueueDirectory<Key>({"cuda", "cuda_event", "CUDA streams", "reuse streams"});
    return only;
}

Key key_of(const Driver& driver, Stream stream) noexcept {
    unsigned long long id = 0;
    if (driver.stream_get_id != nullptr && driver.stream_get_id(stream, &id) != CuResult::success) {
        id = 0;
    }
    return {stream, id};
}

std::string called(const CudaQueueTimer& timer, std::size_t number) {
    return timer.clock_name() + (timer.stream() == nullptr ? " legacy stream" : " stream " + std::to_string(number));
}

} // namespace

Queue cuda(CUstream_st* stream) noexcept {
    const Result<Driver>& loaded = backends::cuda::driver();
    if (!loaded) {
        return directory().none(loaded.error());
    }
    TimerOptions options;
    options.max_in_flight = scopes_in_flight;
    return directory().find(
        key_of(*loaded, stream), [&] { return CudaQueueTimer::create(*loaded, stream, options); }, called);
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// plumb::cuda(): which stream has which queue. Looking one up takes a short lock that is shared between readers.
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "backends/cuda/absent_timer.hpp"
#include "backends/cuda/queue_timer.hpp"
#include "plumb/cuda.hpp"
#include "record/queue_registry.hpp"

namespace plumb {
namespace {

using backends::cuda::AbsentTimer;
using backends::cuda::CudaQueueTimer;
using backends::cuda::CuResult;
using backends::cuda::Driver;
using backends::cuda::Stream;

constexpr std::size_t most_queues = 1'024; // engines that make a stream per request end here, not in swap
constexpr std::uint32_t scopes_in_flight = 8'192;

/// A handle alone may be given out anew; before CUDA 12.0 the id is 0.
using Key = std::pair<Stream, unsigned long long>;

struct Queues {
    std::shared_mutex mutex;
    std::map<Key, Queue> queues;
    Queue absent{};    // where there is no driver at all
    Queue crowded{};   // beyond most_queues
};

// Never destroyed: threads may record while the process exits.
Queues& queues() {
    static Queues& only = *new Queues;
    return only;
}

Queue registered(std::unique_ptr<QueueTimer> timer, std::string name) {
    QueueTimer& lasting = *timer.release(); // the registry's timers live as long as the process
    return Queue{&lasting, record::register_queue(lasting, std::move(name))};
}

Queue& absent_queue(Queue& kept, const Error& why) {
    if (kept.timer == nullptr) {
        kept = registered(std::make_unique<AbsentTimer>(why), "cuda (not timed)");
    }
    return kept;
}

std::string name_of(const QueueTimer& timer, Key key, std::size_t number) {
    const std::string clock = timer.clock_name();
    return key.first == nullptr ? clock + " legacy stream" : clock + " stream " + std::to_string(number);
}

Queue make_queue(Queues& all, const Driver& driver, Key key) {
    if (all.queues.size() >= most_queues) {
        return absent_queue(all.crowded,
                            {ErrorCode::out_of_memory, "more than " + std::to_string(most_queues) +
                                                           " CUDA streams were timed in this process; reuse streams"});
    }
    TimerOptions options;
    options.max_in_flight = scopes_in_flight;
    Result<std::unique_ptr<CudaQueueTimer>> timer = CudaQueueTimer::create(driver, key.first, options);
    if (!timer) {
        return registered(std::make_unique<AbsentTimer>(timer.error()), "cuda (not timed)");
    }
    std::string name = name_of(**timer, key, all.queues.size() + 1);
    return registered(std::move(*timer), std::move(name));
}

Key key_of(const Driver& driver, Stream stream) noexcept {
    unsigned long long id = 0;
    if (driver.stream_get_id != nullptr && driver.stream_get_id(stream, &id) != CuResult::success) {
        id = 0;
    }
    return {stream, id};
}

} // namespace

Queue cuda(CUstream_st* stream) noexcept {
    Queues& all = queues();
    const Result<Driver>& loaded = backends::cuda::driver();
    if (!loaded) {
        const std::unique_lock lock(all.mutex);
        return absent_queue(all.absent, loaded.error());
    }
    const Key key = key_of(*loaded, stream);
    {
        const std::shared_lock lock(all.mutex);
        if (const auto found = all.queues.find(key); found != all.queues.end()) {
            return found->second;
        }
    }
    const std::unique_lock lock(all.mutex);
    if (const auto found = all.queues.find(key); found != all.queues.end()) {
        return found->second;
    }
    const Queue made = make_queue(all, *loaded, key);
    if (all.queues.size() < most_queues) {
        all.queues.emplace(key, made);
    }
    return made;
}

} // namespace plumb

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
    Queue absent{};  // where there is no driver at all
    Queue unready{}; // where there is no context yet, or none any more
    Queue starved{}; // where the device was busy or had no memory left
    Queue crowded{}; // beyond most_queues
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

/// Takes the place of a queue beyond the bound.
Queue& crowded_queue(Queues& all) {
    return absent_queue(all.crowded,
                        {ErrorCode::out_of_memory, "more than " + std::to_string(most_queues) +
                                                       " CUDA streams were timed in this process; reuse streams"});
}

/// Errors that say nothing of a later attempt.
bool passes(ErrorCode code) { return code == ErrorCode::pending || code == ErrorCode::out_of_memory; }

// A timer takes a while to make: nobody who looks a known stream up waits for it.
Queue make_queue(Queues& all, const Driver& driver, Key key) {
    TimerOptions options;
    options.max_in_flight = scopes_in_flight;
    Result<std::unique_ptr<CudaQueueTimer>> made = CudaQueueTimer::create(driver, key.first, options);
    const std::unique_lock lock(all.mutex);
    if (const auto found = all.queues.find(key); found != all.queues.end()) {
        return found->second; // another thread was first
    }
    if (!made && made.error().code == ErrorCode::unavailable) {
        return absent_queue(all.unready, made.error()); // no context yet: the next call asks again
    }
    if (!made && passes(made.error().code)) {
        return absent_queue(all.starved, made.error()); // the next call asks again
    }
    if (all.queues.size() >= most_queues) {
        return crowded_queue(all);
    }
    if (!made) {
        const Queue absent = registered(std::make_unique<AbsentTimer>(made.error()), "cuda (not timed)");
        return all.queues.emplace(key, absent).first->second;
    }
    const std::string which =
        key.first == nullptr ? " legacy stream" : " stream " + std::to_string(all.queues.size() + 1);
    std::string name = (*made)->clock_name() + which;
    return all.queues.emplace(key, registered(std::move(*made), std::move(name))).first->second;
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
        if (all.crowded.timer != nullptr) {
            return all.crowded;
        }
    }
    return make_queue(all, *loaded, key);
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/capture_watch.hpp"

#include <mutex>
#include <vector>

namespace plumb::backends::cuda {
namespace {

struct Watched {
    std::uint64_t id;
    const Driver* driver;
    Stream stream;
    bool capturing;
    std::int64_t seen_ns;
};

struct Watch {
    std::mutex mutex;
    std::vector<Watched> streams;
    std::uint64_t next_id = 1;
};

// Never destroyed: a drain thread may still ask while the process exits.
Watch& watch() {
    static Watch& only = *new Watch;
    return only;
}

/// A stream that was destroyed captures nothing; which of these says so differs by release.
bool is_gone(CuResult asked) noexcept {
    return asked == CuResult::invalid_value || asked == CuResult::invalid_handle ||
           asked == CuResult::invalid_context || asked == CuResult::context_is_destroyed;
}

WatchAnswer ask_driver(const Driver& driver, Stream stream) noexcept {
    CaptureStatus status = CaptureStatus::none;
    const CuResult asked = driver.stream_is_capturing(stream, &status);
    if (asked == CuResult::stream_capture_implicit) {
        return {true, CuResult::success};
    }
    return {asked == CuResult::success && status != CaptureStatus::none, is_gone(asked) ? CuResult::success : asked};
}

WatchAnswer ask(const Watched& watched, std::int64_t now_ns) noexcept {
    return watched.driver->bears_dead_streams
               ? ask_driver(*watched.driver, watched.stream)
               : WatchAnswer{watched.capturing && now_ns - watched.seen_ns < longest_capture_ns, CuResult::success};
}

bool settled(const WatchAnswer& answer) noexcept { return answer.captures || answer.failed != CuResult::success; }

} // namespace

WatchedStream::WatchedStream(const Driver& driver, Stream stream) : watched_(driver.query_breaks_captures) {
    if (watched_) {
        const std::lock_guard lock(watch().mutex);
        id_ = watch().next_id++;
        watch().streams.push_back({id_, &driver, stream, false, 0});
    }
}

WatchedStream::~WatchedStream() {
    if (watched_) {
        const std::lock_guard lock(watch().mutex);
        std::erase_if(watch().streams, [this](const Watched& watched) { return watched.id == id_; });
    }
}

void WatchedStream::seen(bool capturing, std::int64_t now_ns) noexcept {
    if (!watched_ || (!captured_.exchange(capturing, std::memory_order_relaxed) && !capturing)) {
        return;
    }
    const std::lock_guard lock(watch().mutex);
    for (Watched& watched : watch().streams) {
        if (watched.id == id_) {
            watched.capturing = capturing;
            watched.seen_ns = now_ns;
        }
    }
}

WatchAnswer anything_captures(const Driver& driver, std::int64_t now_ns) noexcept {
    if (!driver.query_breaks_captures) {
        return {};
    }
    // The legacy stream answers for every blocking stream there is, ours or not.
    WatchAnswer answer = ask_driver(driver, nullptr);
    const std::lock_guard lock(watch().mutex);
    for (const Watched& watched : watch().streams) {
        if (settled(answer)) {
            break;
        }
        if (watched.driver == &driver) {
            answer = ask(watched, now_ns);
        }
    }
    return answer;
}

} // namespace plumb::backends::cuda

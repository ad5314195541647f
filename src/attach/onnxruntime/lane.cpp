// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/lane.hpp"

#include <algorithm>
#include <pthread.h>
#include <string>
#include <vector>

#include "clock/host_clock.hpp"
#include "record/queue_registry.hpp"

namespace plumb::attach::onnxruntime {
namespace {

constexpr double microsecond = 1000; // what onnxruntime counts in

Error only_added() { return {ErrorCode::unsupported, "onnxruntime's nodes are told when they have ended"}; }

/// Queues whose thread has ended, and how many there are at all.
struct FreeLanes {
    std::mutex mutex;
    std::vector<Queue*> lanes;
    unsigned made = 0;
};

FreeLanes& free_lanes() {
    static auto* all = new FreeLanes; // threads may be in here until the process has ended
    return *all;
}

void give_back(void* lane) {
    const std::lock_guard lock(free_lanes().mutex);
    free_lanes().lanes.push_back(static_cast<Queue*>(lane));
}

Queue* take_or_make() {
    FreeLanes& all = free_lanes();
    const std::lock_guard lock(all.mutex);
    if (!all.lanes.empty()) {
        Queue* const lane = all.lanes.back();
        all.lanes.pop_back();
        return lane;
    }
    auto* timer = new ThreadLane; // the recording refers to it until the process ends
    const std::string number = ++all.made == 1 ? "" : " " + std::to_string(all.made);
    return new Queue{timer, record::register_queue(*timer, "onnxruntime" + number)};
}

} // namespace

DeviceToken ThreadLane::add(const DeviceSpan& span) {
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= most_waiting) {
        return {0};
    }
    spans_.push_back(span);
    return {first_ + spans_.size() - 1};
}

Result<DeviceToken> ThreadLane::begin() noexcept { return only_added(); }
Status ThreadLane::end(DeviceToken) noexcept { return only_added(); }

/// They are asked for in their order.
Result<DeviceSpan> ThreadLane::collect(DeviceToken token) noexcept {
    const std::lock_guard lock(mutex_);
    if (token.value < first_ || token.value - first_ >= spans_.size()) {
        return Error{ErrorCode::not_found, "this token does not wait here"};
    }
    const auto at = spans_.begin() + static_cast<std::ptrdiff_t>(token.value - first_);
    const DeviceSpan span = *at;
    spans_.erase(spans_.begin(), at + 1);
    first_ = token.value + 1;
    return span;
}

Result<DeviceClockPair> ThreadLane::clock_pair() noexcept {
    const std::int64_t now = clock::monotonic_ns();
    return DeviceClockPair{static_cast<std::uint64_t>(now), now, clock::realtime_ns(), 0};
}

Result<Elapsed> ThreadLane::duration(const DeviceSpan& span) {
    return Elapsed{static_cast<double>(span.end_ticks - span.begin_ticks), microsecond};
}

Result<double> ThreadLane::floor_ns() { return microsecond; }

std::size_t ThreadLane::in_flight() const noexcept {
    const std::lock_guard lock(mutex_);
    return spans_.size();
}

Queue lane_of_thread() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, give_back);
        return made;
    }();
    auto* lane = static_cast<Queue*>(pthread_getspecific(key));
    if (lane == nullptr) {
        lane = take_or_make();
        pthread_setspecific(key, lane);
    }
    return *lane;
}

} // namespace plumb::attach::onnxruntime

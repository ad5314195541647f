// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/lane.hpp"

#include <pthread.h>
#include <string>
#include <vector>

#include "record/queue_registry.hpp"

namespace plumb::attach::onnxruntime {
namespace {

constexpr double microsecond = 1000; // what onnxruntime counts in

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
    auto* timer =
        new ToldLane({"onnxruntime", "monotonic", microsecond}); // the recording refers to it until the process ends
    const std::string number = ++all.made == 1 ? "" : " " + std::to_string(all.made);
    return new Queue{timer, record::register_queue(*timer, "onnxruntime" + number)};
}

} // namespace

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

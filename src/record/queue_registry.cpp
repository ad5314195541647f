// SPDX-License-Identifier: Apache-2.0
#include "record/queue_registry.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace plumb::record {
namespace {

struct QueueRegistry {
    std::mutex mutex;
    std::map<std::uint32_t, RegisteredQueue> queues;
    std::uint32_t next = process_track;
    std::atomic<bool> any{false};
};

// Never destroyed: a drain thread may still look a queue up while the process exits.
QueueRegistry& queue_registry() {
    static QueueRegistry& only = *new QueueRegistry;
    return only;
}

} // namespace

std::uint32_t register_queue(QueueTimer& timer, std::string name) {
    const std::lock_guard<std::mutex> lock(queue_registry().mutex);
    const std::uint32_t track = queue_registry().next++;
    queue_registry().queues.emplace(track, RegisteredQueue{&timer, std::move(name)});
    queue_registry().any.store(true, std::memory_order_relaxed); // says only that looking is worth it
    return track;
}

std::uint32_t new_process_track() {
    const std::lock_guard<std::mutex> lock(queue_registry().mutex);
    return queue_registry().next++;
}

bool any_registered_queue() noexcept { return queue_registry().any.load(std::memory_order_relaxed); }

std::optional<RegisteredQueue> find_queue(std::uint32_t track) {
    const std::lock_guard<std::mutex> lock(queue_registry().mutex);
    const auto found = queue_registry().queues.find(track);
    return found == queue_registry().queues.end() ? std::nullopt : std::optional(found->second);
}

} // namespace plumb::record

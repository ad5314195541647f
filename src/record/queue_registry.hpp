// SPDX-License-Identifier: Apache-2.0
// Device queues that are known to the whole process, not to one profiler: a Queue of them works with every profiler.
// Their timers live as long as the process. Thread rule: any thread; takes a lock, so not for hot paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plumb/backend.hpp"

namespace plumb::record {

/// Tracks of such queues have this bit; those of a profiler's own queues and threads never do.
inline constexpr std::uint32_t process_track = 0x80000000;

struct RegisteredQueue {
    QueueTimer* timer = nullptr;
    std::string name;
};

/// The queue's track, the same in every recording of this process.
std::uint32_t register_queue(QueueTimer& timer, std::string name);
/// A track without a timer of its own, for samples that come by another way (drain/device_feed.hpp).
std::uint32_t new_process_track();
/// True once a queue was registered: a relaxed load.
bool any_registered_queue() noexcept;
std::optional<RegisteredQueue> find_queue(std::uint32_t track);

} // namespace plumb::record

// SPDX-License-Identifier: Apache-2.0
// Tiny command buffers of ours that hold one stamp each, for scopes around submissions. Owned by a queue's timer.
// Thread rule: its owner's lock; take() needs the right to submit to the queue besides.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "backends/vulkan/query_ring.hpp"

namespace plumb::backends::vulkan {

class OwnStamps {
  public:
    OwnStamps(QueueAccess& access, QueryRing& ring, CommandPool commands)
        : access_(access), ring_(ring), commands_(commands) {}

    /// Submits one; its query is in the answer. Error out_of_memory when all are in flight.
    [[nodiscard]] Result<std::uint32_t> take() noexcept;
    /// Nobody needs it any more, read or not: it is used again once the device has written it.
    void drop(std::uint32_t query) noexcept;
    /// True while one that was given up may still be on its way.
    [[nodiscard]] bool any_given_up() const noexcept { return !given_up_.empty(); }

  private:
    struct Stamp {
        CommandBuffer commands;
        std::uint32_t query;
    };
    Status grow() noexcept;
    Status record(const Stamp& stamp) noexcept;
    void sweep() noexcept;

    QueueAccess& access_;
    QueryRing& ring_;
    CommandPool commands_;
    std::vector<Stamp> idle_;
    std::vector<Stamp> all_;             // by query, where ours
    std::deque<std::uint32_t> given_up_; // not read yet, oldest first
};

} // namespace plumb::backends::vulkan

// SPDX-License-Identifier: Apache-2.0
// How much memory a graph and its executable take: an estimate, since no call of the driver tells. Nodes by type times
// bytes per node; the bytes are a belief until 32 instantiations were watched, then scaled by what the device's free
// memory lost over all of them (single differences are useless: the driver takes memory in large pieces).
// Owned by a cache. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::cudagraph {

using NodeCounts = std::vector<recording::NamedCount>; // by node type, as GraphShape::nodes_by_type

class MemoryEstimate {
  public:
    static constexpr std::uint64_t watched_before_fit = 32;

    [[nodiscard]] std::uint64_t bytes(const NodeCounts& nodes) const;
    /// An instantiation during which no other of this cache ran: free bytes of the device before and after.
    void watched(const NodeCounts& nodes, std::uint64_t free_before, std::uint64_t free_after);
    [[nodiscard]] bool fitted() const;

  private:
    mutable std::mutex mutex_;
    std::uint64_t count_ = 0;
    double believed_ = 0; // of all that were watched
    double taken_ = 0;
};

} // namespace plumb::cudagraph

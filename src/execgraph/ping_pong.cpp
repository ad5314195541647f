// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "plumb/execgraph.hpp"

namespace plumb {
namespace {

/// What a transfer is matched by: its buffers where both are known, else its direction and size.
struct Way {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    bool buffers = false;

    friend bool operator==(const Way& a, const Way& b) {
        return a.from == b.from && a.to == b.to && a.buffers == b.buffers;
    }
};

struct WayHash {
    std::size_t operator()(const Way& way) const noexcept {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
        const std::uint64_t mixed = (way.from * odd) ^ ((way.to + (way.buffers ? 1u : 0u)) * odd >> 7);
        return static_cast<std::size_t>(mixed ^ (mixed >> 29));
    }
};

constexpr std::uint64_t direction_number(TransferDirection direction) { return static_cast<std::uint64_t>(direction); }

/// The way there, and the way back that would undo it; nothing where not enough is known.
std::optional<std::pair<Way, Way>> ways_of(const TransferShape& transfer) {
    if (transfer.source != 0 && transfer.target != 0) {
        return std::pair(Way{transfer.source, transfer.target, true}, Way{transfer.target, transfer.source, true});
    }
    if (transfer.bytes == 0 || transfer.direction == TransferDirection::device_to_device) {
        return std::nullopt;
    }
    const TransferDirection back = transfer.direction == TransferDirection::host_to_device
                                       ? TransferDirection::device_to_host
                                       : TransferDirection::host_to_device;
    return std::pair(Way{direction_number(transfer.direction), transfer.bytes, false},
                     Way{direction_number(back), transfer.bytes, false});
}

} // namespace

std::vector<PingPong> ExecGraph::ping_pong(std::int64_t window_ns) const {
    std::vector<NodeId> transfers;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        if (transfer_of(id) != nullptr) {
            transfers.push_back(id);
        }
    }
    const auto earlier = [this](NodeId a, NodeId b) {
        // One of no length comes before what begins where it ends.
        return std::pair(nodes_[a].begin_ns, nodes_[a].duration_ns) <
               std::pair(nodes_[b].begin_ns, nodes_[b].duration_ns);
    };
    if (!std::is_sorted(transfers.begin(), transfers.end(), earlier)) {
        std::stable_sort(transfers.begin(), transfers.end(), earlier);
    }
    // Only the last transfer of each way can be the nearest one to come back: one look each.
    std::unordered_map<Way, NodeId, WayHash> last;
    std::vector<PingPong> found;
    for (const NodeId id : transfers) {
        const auto ways = ways_of(*transfer_of(id));
        if (!ways) {
            continue;
        }
        if (const auto there = last.find(ways->second); there != last.end()) {
            const GraphNode& before = nodes_[there->second];
            const std::int64_t between = nodes_[id].begin_ns - (before.begin_ns + before.duration_ns);
            if (between >= 0 && between <= window_ns) {
                found.push_back({there->second, id, between});
            }
        }
        last[ways->first] = id;
    }
    return found;
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/memory_estimate.hpp"

#include <algorithm>

namespace plumb::cudagraph {

namespace {

// Beliefs, not measurements: a kernel node with its parameters, a copy with its descriptor, whatever else; and what an
// executable takes with hardly a node in it. Only their ratios matter once fitted.
constexpr double graph_bytes = 64.0 * 1024;
constexpr double kernel_bytes = 4.0 * 1024;
constexpr double copy_bytes = 4.0 * 1024;
constexpr double other_bytes = 1024;
// Others allocate on the device too: a fit further off than this is their doing.
constexpr double least_scale = 1.0 / 16;
constexpr double most_scale = 16;

double believed_bytes(const NodeCounts& nodes) {
    double bytes = graph_bytes;
    for (const auto& [type, number] : nodes) {
        const bool copy = type == "memcpy" || type == "memset";
        bytes += static_cast<double>(number) * (type == "kernel" ? kernel_bytes : copy ? copy_bytes : other_bytes);
    }
    return bytes;
}

} // namespace

std::uint64_t MemoryEstimate::bytes(const NodeCounts& nodes) const {
    std::lock_guard lock(mutex_);
    double scale = 1;
    if (count_ >= watched_before_fit && taken_ > 0) {
        scale = std::clamp(taken_ / believed_, least_scale, most_scale);
    }
    return static_cast<std::uint64_t>(believed_bytes(nodes) * scale);
}

void MemoryEstimate::watched(const NodeCounts& nodes, std::uint64_t free_before, std::uint64_t free_after) {
    std::lock_guard lock(mutex_);
    ++count_;
    believed_ += believed_bytes(nodes);
    taken_ += static_cast<double>(free_before) - static_cast<double>(free_after);
}

bool MemoryEstimate::fitted() const {
    std::lock_guard lock(mutex_);
    return count_ >= watched_before_fit && taken_ > 0;
}

} // namespace plumb::cudagraph

// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/stamps.hpp"

#include <algorithm>
#include <utility>

namespace plumb::decoder::cuda {

std::optional<StampedKernels> times_of(std::span<const StampSlot> slots) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ran;
    ran.reserve(slots.size());
    for (const StampSlot& slot : slots) {
        const std::uint64_t begin = ~slot.begin_inverted;
        if (slot.begin_inverted == 0 || slot.end < begin) {
            return std::nullopt;
        }
        ran.emplace_back(begin, slot.end);
    }
    if (ran.empty()) {
        return std::nullopt;
    }
    std::sort(ran.begin(), ran.end());
    StampedKernels out;
    std::uint64_t until = ran.front().first;
    for (const auto& [begin, end] : ran) {
        if (end > until) {
            out.kernels_ns += end - std::max(begin, until);
            until = end;
        }
    }
    out.stretch_ns = until - ran.front().first;
    return out;
}

} // namespace plumb::decoder::cuda

// SPDX-License-Identifier: Apache-2.0
// Begin and end of the kernels of a step, as they wrote them: each launch is given a slot in the device's memory, in which
// its blocks leave the earliest begin and the latest end by %globaltimer. Launches inside a captured graph keep their slots,
// so that each replay fills them anew. Owned by a CudaDevice; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/kernels/backend.hpp"

namespace plumb::decoder::cuda {

/// Zeros: nothing ran. Both only grow, so one atomic maximum does for each.
struct StampSlot {
    std::uint64_t begin_inverted = 0; // ~begin
    std::uint64_t end = 0;
};

/// The time in which any of them ran, and from the first begin to the last end. Nothing if one has not run.
[[nodiscard]] std::optional<StampedKernels> times_of(std::span<const StampSlot> slots);

/// Hands out the slots of a step.
class StampSlots {
  public:
    static constexpr std::size_t most = 32768; // launches of a step; beyond it the step has no times

    StampSlots() = default; // hands out none
    explicit StampSlots(std::uint64_t memory) : memory_(memory) {}

    /// Where the next launch leaves its times; 0: nowhere.
    [[nodiscard]] std::uint64_t next() noexcept {
        const std::size_t slot = used_++;
        return memory_ != 0 && slot < most ? memory_ + slot * sizeof(StampSlot) : 0;
    }
    /// The next launch is given this slot.
    void go_to(std::size_t slot) noexcept { used_ = slot; }
    [[nodiscard]] std::size_t used() const noexcept { return used_; }
    [[nodiscard]] std::uint64_t memory() const noexcept { return memory_; }

  private:
    std::uint64_t memory_ = 0;
    std::size_t used_ = 0;
};

} // namespace plumb::decoder::cuda

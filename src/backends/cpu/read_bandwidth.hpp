// SPDX-License-Identifier: Apache-2.0
// Bytes per nanosecond (GB/s) that all cores, or some, read together from memory far larger than the caches. One thread uses it.
#pragma once

#include <cstddef>
#include <memory>

#include "backends/cpu/core_workers.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::cpu {

class ReadBandwidth {
  public:
    /// Every core touches its own part first, so that it lies in its own node's memory.
    explicit ReadBandwidth(std::size_t bytes = std::size_t{1} << 30);
    /// One pass over the memory, every thread its own part on its own core. 0: as many threads as cores.
    /// Error out_of_memory where the memory could not be had.
    [[nodiscard]] Result<double> measure(unsigned threads = 0);
    [[nodiscard]] unsigned cores() const { return workers_.size(); }

  private:
    struct Free {
        std::size_t bytes;
        void operator()(void* memory) const;
    };
    std::size_t bytes_;
    std::unique_ptr<void, Free> memory_;
    Workers workers_;
};

} // namespace plumb::backends::cpu

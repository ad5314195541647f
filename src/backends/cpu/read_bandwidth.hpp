// SPDX-License-Identifier: Apache-2.0
// Bytes per nanosecond (GB/s) that all cores, or some, read together from memory far larger than the caches. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/cpu/core_workers.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::cpu {

class ReadBandwidth {
  public:
    /// Every core touches its own part first, so that it lies in its own node's memory. Then it is tried whether one long
    /// line or four lines by turns are read faster here (four, by 5 to 20 %, on a Zen 3): so it is measured.
    explicit ReadBandwidth(std::size_t bytes = std::size_t{1} << 30);
    /// One pass over the memory, every thread its own part on its own core. 0: as many threads as cores.
    /// Error out_of_memory where the memory could not be had.
    [[nodiscard]] Result<double> measure(unsigned threads = 0);
    [[nodiscard]] unsigned cores() const { return workers_.size(); }

  private:
    using Read = std::uint64_t (*)(const void* memory, std::size_t bytes);
    struct Free {
        std::size_t bytes;
        void operator()(void* memory) const;
    };
    void choose_way();
    double pass(unsigned threads, Read read);

    std::size_t bytes_;
    std::unique_ptr<void, Free> memory_;
    Workers workers_;
    Read read_ = nullptr;
};

} // namespace plumb::backends::cpu

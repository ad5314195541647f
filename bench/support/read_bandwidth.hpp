// SPDX-License-Identifier: Apache-2.0
// Bytes per nanosecond (GB/s) that all cores, or some, read together from memory far larger than the caches. One thread uses it.
#pragma once

#include <cstddef>
#include <memory>

#include "support/workers.hpp"

namespace bench {

class ReadBandwidth {
  public:
    explicit ReadBandwidth(std::size_t bytes = std::size_t{1} << 30);
    /// One pass over the memory, every thread its own part on its own core. 0: as many threads as cores.
    [[nodiscard]] double measure(unsigned threads = 0);

  private:
    struct Free {
        std::size_t bytes;
        void operator()(void* memory) const;
    };
    std::size_t bytes_;
    std::unique_ptr<void, Free> memory_;
    Workers workers_;
};

} // namespace bench

// SPDX-License-Identifier: Apache-2.0
// Bytes per nanosecond (GB/s) that all cores read together from memory far larger than the caches. One thread uses it.
#pragma once

#include <cstddef>
#include <memory>

#include "support/workers.hpp"

namespace bench {

class ReadBandwidth {
  public:
    explicit ReadBandwidth(std::size_t bytes = std::size_t{1} << 30);
    /// One pass over the memory, every core its own part.
    [[nodiscard]] double measure();

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

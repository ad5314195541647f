// SPDX-License-Identifier: Apache-2.0
// What the kernel has counted for the threads that record, ten times a second at most: for how long each ran, and waited for a CPU.
// Owned by the drain; its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/kernel_times.hpp"
#include "plumb/result.hpp"
#include "record/ring_set.hpp"
#include "recording/writer.hpp"

namespace plumb::drain {

class OffCpuSampler {
  public:
    static constexpr std::size_t most_threads = 64;

    /// Of the threads whose rings are in use; those beyond most_threads are counted and left out.
    Status write(const std::vector<std::shared_ptr<record::Ring>>& rings, std::int64_t monotonic_ns,
                 recording::Writer& writer);

  private:
    struct Thread {
        std::uint32_t track;
        bool alive;
        base::ThreadTimesReader reader;
    };

    std::vector<Thread> threads_;
    base::ProcessTimesReader process_;
    std::uint64_t samples_ = 0;
};

} // namespace plumb::drain

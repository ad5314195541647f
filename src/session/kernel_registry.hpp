// SPDX-License-Identifier: Apache-2.0
// The kernels that a profiler was told of, by the hash of their code. Bounded: 4096 kernels, 16 MiB of source text.
// Owned by the session, under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::session {

class KernelRegistry {
  public:
    static constexpr std::size_t most_kernels = 4096;
    static constexpr std::size_t most_source_bytes = std::size_t{16} << 20;

    struct Added {
        std::uint64_t code_hash = 0;
        const recording::KernelInfo* fresh = nullptr; // what the recording must be told; null: it knows
        Status status;                                // told to the caller: a collision, or no room
    };
    /// The pointer holds until the next call.
    Added add(recording::KernelInfo kernel);
    [[nodiscard]] const std::vector<recording::KernelInfo>& all() const noexcept { return kernels_; }

  private:
    std::vector<recording::KernelInfo> kernels_;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_hash_;
    std::size_t source_bytes_ = 0;
};

} // namespace plumb::session

// SPDX-License-Identifier: Apache-2.0
// Ranges that one call starts and another ends, perhaps on another thread: known by a number. Bounded: beyond most_open one more is not
// recorded, and counted. Thread rule: any thread; takes a lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "plumb/record.hpp"

namespace plumb::attach::nvtx {

struct StartCounts {
    std::uint64_t started = 0;
    std::uint64_t open = 0;
    std::uint64_t refused = 0;       // one too many
    std::uint64_t never_started = 0; // ended under a number that is no open range's
};

class OpenStarts {
  public:
    static constexpr std::uint32_t most_open = 1 << 16;
    static constexpr std::uint64_t refused_bit = std::uint64_t{1} << 63;

    /// Its number, never 0. That of one that is refused has refused_bit: its end is no other range's.
    [[nodiscard]] std::uint64_t start(Recorder& recorder, Name name, const Work& work) noexcept;
    void end(Recorder& recorder, std::uint64_t number) noexcept;
    [[nodiscard]] StartCounts counts() const;

  private:
    struct Slot {
        Token token;
        std::uint64_t number = 0; // 0: free
    };

    mutable std::mutex mutex_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;
    std::uint64_t serial_ = 0;
    StartCounts counts_;
};

} // namespace plumb::attach::nvtx

// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per tick of the counter that scopes are stamped with, from the machine's clock over a whole run.
// Plain values; no thread rule.
#pragma once

#include <chrono>
#include <cstdint>

#include "plumb/thread_recorder.hpp"

namespace bench {

/// Made when the run begins; the longer it lives before it is asked, the better the answer.
class TickRate {
  public:
    [[nodiscard]] double ns_per_tick() const {
        const auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin_).count();
        return ns / static_cast<double>(plumb::detail::read_ticks() - ticks_);
    }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::uint64_t ticks_ = plumb::detail::read_ticks();
};

} // namespace bench

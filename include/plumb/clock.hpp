// SPDX-License-Identifier: Apache-2.0
// The host clock behind every stamp: the invariant TSC where there is one, CNTVCT on arm64, else CLOCK_MONOTONIC, or one
// that the caller injects (tests, simulators). Stamps are ticks; only the resolver turns ticks into nanoseconds, by a fit.
#pragma once

#include <cstdint>

#include "plumb/api.hpp"

namespace plumb {

/// A clock given by the caller instead of the machine's. Must outlive every profiler that uses it; called from any thread.
class PLUMB_API HostClock {
  public:
    virtual ~HostClock() = default;
    /// Never goes back on one thread.
    [[nodiscard]] virtual std::uint64_t now_ticks() const noexcept = 0;
    /// The common clock at the same moment, in nanoseconds.
    [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
    /// CPU time of the calling thread in nanoseconds. Default: the thread never leaves the CPU.
    [[nodiscard]] virtual std::int64_t thread_cpu_ns() const noexcept { return now_ns(); }
};

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
// The queue of a thread's nodes: their times come late, from onnxruntime's own profile, so they are told as those of a queue that is timed
// in some steps. Two threads on one queue would overlap. A ThreadLane lives as long as the process. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "plumb/backend.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::onnxruntime {

class ThreadLane final : public QueueTimer {
  public:
    static constexpr std::size_t most_waiting = 1 << 16;

    /// Times in nanoseconds of CLOCK_MONOTONIC. Token 0 where too many wait to be collected.
    [[nodiscard]] DeviceToken add(const DeviceSpan& span);

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override;
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken) noexcept override {} // goes with the next that is collected
    Status wait(DeviceToken) noexcept override { return {}; }
    bool immediate() const noexcept override { return false; }
    bool sampled_by_step() const noexcept override { return true; }

    const char* source() const noexcept override { return "onnxruntime"; }
    std::string clock_name() const override { return "monotonic"; }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override;
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override;
    std::vector<Capability> capabilities() const override { return {}; }
    std::size_t in_flight() const noexcept override;

  private:
    mutable std::mutex mutex_;
    std::uint64_t first_ = 1; // token of the first that waits
    std::deque<DeviceSpan> spans_;
};

/// The calling thread's; that of a thread that has ended goes to another one.
[[nodiscard]] Queue lane_of_thread();

/// The same, for those who add to it.
[[nodiscard]] inline ThreadLane& lane_of(const Queue& queue) { return static_cast<ThreadLane&>(*queue.timer); }

} // namespace plumb::attach::onnxruntime

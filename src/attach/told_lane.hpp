// SPDX-License-Identifier: Apache-2.0
// A queue whose scopes come with their times, some time after they ended: another profiler took them. So they are told as those of a queue
// that is timed in some steps. Its ticks are nanoseconds of CLOCK_MONOTONIC. A lane lives as long as the process, which its recording
// reads to the end. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plumb/backend.hpp"

namespace plumb::attach {

/// Who took the times.
struct ToldBy {
    const char* source;     // of the scopes, and a string that stays
    std::string clock_name; // of the queue
    double floor_ns = 0;    // the least that it can tell, and of which times are whole numbers; 0: not known
};

class ToldLane final : public QueueTimer {
  public:
    static constexpr std::size_t most_waiting = 1 << 16;

    explicit ToldLane(ToldBy by) : by_(std::move(by)) {}

    /// Token 0 where too many wait to be collected.
    [[nodiscard]] DeviceToken add(const DeviceSpan& span);

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override;
    /// REQUIRES: tokens come in their order.
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken) noexcept override {} // goes with the next that is collected
    Status wait(DeviceToken) noexcept override { return {}; }
    bool immediate() const noexcept override { return false; }
    bool sampled_by_step() const noexcept override { return true; }

    const char* source() const noexcept override { return by_.source; }
    std::string clock_name() const override { return by_.clock_name; }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override;
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override;
    std::vector<Capability> capabilities() const override { return {}; }
    std::size_t in_flight() const noexcept override;

  private:
    const ToldBy by_;
    mutable std::mutex mutex_;
    std::uint64_t first_ = 1; // token of the first that waits
    std::deque<DeviceSpan> spans_;
};

} // namespace plumb::attach

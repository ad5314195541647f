// SPDX-License-Identifier: Apache-2.0
// The timer of a queue that cannot be timed: everything it is asked answers with the reason. Owned by its maker; any
// thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/backend.hpp"

namespace plumb::backends {

class AbsentTimer final : public QueueTimer {
  public:
    /// `source` is a literal: "cuda_event"; `clock_name`: "cuda:absent".
    AbsentTimer(Error why, const char* source, std::string clock_name)
        : why_(std::move(why)), source_(source), clock_name_(std::move(clock_name)) {}

    Result<DeviceToken> begin() noexcept override { return why_; }
    Status end(DeviceToken) noexcept override { return why_; }
    Result<DeviceToken> attach(void*) noexcept override { return why_; }
    bool sampled_by_step() const noexcept override { return true; }
    Result<DeviceSpan> collect(DeviceToken) noexcept override { return why_; }
    void cancel(DeviceToken) noexcept override {}
    Status wait(DeviceToken) noexcept override { return why_; }
    bool immediate() const noexcept override { return false; }
    const char* source() const noexcept override { return source_; }
    std::string clock_name() const override { return clock_name_; }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override { return why_; }
    Result<Elapsed> duration(const DeviceSpan&) override { return why_; }
    Result<double> floor_ns() override { return why_; }
    std::vector<Capability> capabilities() const override { return {{source_, false, why_.message}}; }
    std::size_t in_flight() const noexcept override { return 0; }

  private:
    Error why_;
    const char* source_;
    std::string clock_name_;
};

} // namespace plumb::backends

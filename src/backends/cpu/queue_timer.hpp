// SPDX-License-Identifier: Apache-2.0
// Times work that the calling thread does itself, by the host's counter at begin and end. Owned by its maker; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/token_pool.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cpu {

/// What this backend asks of the system. Tests put calls here that fail.
struct CpuCalls {
    void* (*allocate)(std::size_t bytes) noexcept; // aligned to 64; null when there is no memory
    void (*release)(void* memory) noexcept;
    bool (*read_pair)(const clock::HostClockSource& source, clock::ClockReading& reading) noexcept;
};
const CpuCalls& system_calls();

std::vector<Capability> capabilities_of(const clock::CounterFacts& facts);

class CpuQueueTimer final : public QueueTimer {
  public:
    /// `sampled`: only labelled scopes whose step is timed are.
    static Result<std::unique_ptr<QueueTimer>> create(const TimerOptions& options,
                                                      const CpuCalls& calls = system_calls(), bool sampled = false);
    ~CpuQueueTimer() override;

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override;
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override {
        return label.timed || !sampled_ ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
    }
    bool sampled_by_step() const noexcept override { return sampled_; }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken token) noexcept override;
    Status wait(DeviceToken token) noexcept override;
    bool immediate() const noexcept override { return immediate_; }

    const char* source() const noexcept override { return clock::source_of(clock_.kind); }
    std::string clock_name() const override { return clock::name_of(clock_.kind); }
    bool clock_is_host() const noexcept override { return true; }
    Result<DeviceClockPair> clock_pair() noexcept override;
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override;
    std::vector<Capability> capabilities() const override { return capabilities_of(clock::facts_of_this_machine()); }
    std::size_t in_flight() const noexcept override { return pool_.in_flight(); }

  private:
    struct Stamps {
        base::HostTicks begin;
        base::HostTicks end;
    };
    CpuQueueTimer(const TimerOptions& options, const CpuCalls& calls, void* memory, const DeviceClockPair& first,
                  bool sampled);

    CpuCalls calls_;
    clock::HostClockSource clock_;
    bool immediate_;
    bool sampled_;
    void* memory_;
    TokenPool<Stamps> pool_;
    DeviceClockPair first_; // read at creation: with a later one it gives the clock's rate
};

} // namespace plumb::backends::cpu

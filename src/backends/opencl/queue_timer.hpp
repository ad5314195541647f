// SPDX-License-Identifier: Apache-2.0
// Times scopes of one OpenCL command queue: on an in-order queue by markers, two a scope and one per border of laps; on any
// queue by the events of the caller's commands. Profiling was switched on, or not, when the caller made the queue. Keeps
// the queue (and so its context) alive. Owned by its maker; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/timeline.hpp"
#include "backends/stamped_scopes.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::opencl {

class OpenClQueueTimer final : public QueueTimer {
  public:
    /// Error unsupported for a queue without profiling.
    static Result<std::unique_ptr<OpenClQueueTimer>> create(const OpenClDriver& driver, CommandQueue queue,
                                                            const TimerOptions& options);
    ~OpenClQueueTimer() override;

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override { return scopes_->end(token); }
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override;
    Status end_labelled(DeviceToken token, const Work* work) noexcept override;
    Result<DeviceToken> lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept override;
    Result<DeviceToken> attach(void* event) noexcept override;
    bool sampled_by_step() const noexcept override { return true; }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken token) noexcept override { scopes_->cancel(token); }
    Status wait(DeviceToken token) noexcept override;
    bool immediate() const noexcept override { return immediate_; }

    const char* source() const noexcept override { return "opencl_event"; }
    std::string clock_name() const override { return timeline_->clock_name(); }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override { return timeline_->clock_pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override { return timeline_->floor_ns(); }
    std::vector<Capability> capabilities() const override { return capabilities_of(*timeline_, out_of_order_); }
    std::size_t in_flight() const noexcept override { return scopes_->in_flight(); }
    std::string device_name() const override { return timeline_->device_name(); }
    std::uint64_t group_of(DeviceToken token) noexcept override { return out_of_order_ ? token.value : 0; }

  private:
    class Stamper {
      public:
        struct Stamp {
            Event event = nullptr;   // ours: one reference
            bool is_command = false; // the caller's, not a marker
        };
        Stamper(const OpenClDriver& driver, CommandQueue queue) : driver_(driver), queue_(queue) {}
        Status take(Stamp& stamp) noexcept;
        void drop(Stamp& stamp) noexcept;
        void ended(const Stamp&) noexcept {}

      private:
        const OpenClDriver& driver_;
        CommandQueue queue_;
    };
    using Stamp = Stamper::Stamp;

    OpenClQueueTimer(const OpenClDriver& driver, CommandQueue queue, bool out_of_order, bool immediate);
    Result<DeviceSpan> read_span(const Stamp& begin, const Stamp& end) const noexcept;
    Result<DeviceSpan> read_command(Event event) const noexcept;
    Status in_order() const noexcept;

    const OpenClDriver& driver_;
    CommandQueue queue_;
    bool out_of_order_;
    bool immediate_;
    std::unique_ptr<OpenClTimeline> timeline_;
    Stamper stamper_;
    std::unique_ptr<StampedScopes<Stamper>> scopes_;
};

} // namespace plumb::backends::opencl

// SPDX-License-Identifier: Apache-2.0
// Times scopes of one stream, CUDA's or of a vendor whose driver has the same calls, by pooled events: two a scope, one per border of laps. While the stream is captured
// scopes are noted instead (capture_notes.hpp). Owned by its maker; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/capture_watch.hpp"
#include "backends/cuda/own_stream.hpp"
#include "backends/cuda/timeline.hpp"
#include "backends/stamped_scopes.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

class CudaQueueTimer final : public QueueTimer {
  public:
    static Result<std::unique_ptr<CudaQueueTimer>> create(const Driver& driver, Stream stream,
                                                          const TimerOptions& options,
                                                          std::unique_ptr<OwnStream> own = nullptr);
    ~CudaQueueTimer() override;

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override;
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override;
    Status end_labelled(DeviceToken token, const Work* work) noexcept override;
    Result<DeviceToken> lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept override;
    bool sampled_by_step() const noexcept override { return true; }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken token) noexcept override;
    Status wait(DeviceToken token) noexcept override;
    bool immediate() const noexcept override { return immediate_; }

    const char* source() const noexcept override { return driver_.vendor->source; }
    std::string clock_name() const override { return timeline_->clock_name(); }
    std::string device_name() const override { return timeline_->device_name(); }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override { return timeline_->clock_pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override { return timeline_->floor_ns(); }
    std::vector<Capability> capabilities() const override;
    std::size_t in_flight() const noexcept override { return scopes_->in_flight(); }

    [[nodiscard]] Stream stream() const noexcept { return stream_; }

  private:
    class Stamper {
      public:
        struct Stamp {
            Event event = nullptr;     // made at first use, then kept
            std::int64_t taken_ns = 0; // the host had enqueued everything before it by then
        };
        explicit Stamper(CudaQueueTimer& timer) : timer_(timer) {}
        Status take(Stamp& stamp) noexcept;
        void drop(Stamp&) noexcept {}
        void ended(const Stamp& stamp) noexcept { timer_.timeline_->tend(stamp.taken_ns, false); }
        /// Gives the stamp its event.
        Status make(Stamp& stamp) noexcept;

      private:
        CudaQueueTimer& timer_;
    };
    using Stamp = Stamper::Stamp;

    CudaQueueTimer(std::shared_ptr<Timeline> timeline, Stream stream, const TimerOptions& options,
                   std::unique_ptr<OwnStream> own);
    Status open(std::uint32_t max_in_flight) noexcept;
    /// A call for our stream, on a thread that may have no context yet: then ours is lent to it.
    template <class Call>
    CuResult on_stream(Call call) const noexcept;
    /// True: the stream is being captured. An error where no stamp may be taken.
    Result<bool> capturing() noexcept;
    Status usable() const noexcept;
    /// The same, for a call that wants to stamp: an error too where nothing can be timed any more.
    Result<bool> ready() noexcept;
    /// A scope that begins while the stream is captured.
    Result<DeviceToken> begin_captured(const ScopeLabel& label) noexcept;
    Result<DeviceSpan> read_span(const Stamp& begin, const Stamp& end) noexcept;

    std::unique_ptr<OwnStream> own_; // outlives the timeline
    std::shared_ptr<Timeline> timeline_;
    const Driver& driver_;
    Stream stream_;
    WatchedStream watched_;
    bool immediate_;
    std::mutex events_mutex_;
    std::vector<Event> events_; // of all borders
    Stamper stamper_;
    std::unique_ptr<StampedScopes<Stamper>> scopes_;
};

} // namespace plumb::backends::cuda

// SPDX-License-Identifier: Apache-2.0
// Times what is committed to one MTLCommandQueue: the caller's command buffers, attached before their commit, by their own
// times and without touching the queue; scopes by markers, one per border. Keeps the queue alive. Owned by its maker; any
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/metal/markers.hpp"
#include "backends/metal/timeline.hpp"
#include "backends/stamped_timer.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::metal {

/// How a border of scopes is stamped: with a marker, or with a command buffer of the caller's.
class BufferStamper {
  public:
    struct Stamp {
        Marker marker;          // of a caller's command buffer: without the buffer, which may go when its owner wants
        bool is_buffer = false; // the caller's: it is the whole scope
    };
    Status take(Stamp& stamp) noexcept;
    void drop(Stamp& stamp) noexcept;
    void ended(const Stamp&) noexcept {}
    void mark_with(Markers* markers) noexcept { markers_ = markers; }

  private:
    Markers* markers_ = nullptr;
};

class MetalQueueTimer final : public StampedTimer<BufferStamper> {
  public:
    /// Markers of ours on their way at most: a queue that its maker gave no number holds 64 command buffers.
    static constexpr std::uint32_t most_markers = 48;
    static constexpr std::uint32_t most_to_begin = most_markers / 3;

    static Result<std::unique_ptr<MetalQueueTimer>> create(const MetalDriver& driver, Id queue,
                                                           const TimerOptions& options);
    ~MetalQueueTimer() override;

    Result<DeviceToken> begin() noexcept override;
    Result<DeviceToken> attach(void* command_buffer) noexcept override;
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    Status wait(DeviceToken token) noexcept override;

    const char* source() const noexcept override { return "metal_command_buffer"; }
    std::string clock_name() const override { return timeline_->clock_name(); }
    Result<DeviceClockPair> clock_pair() noexcept override { return timeline_->clock_pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override { return timeline_->floor_ns(); }
    std::vector<Capability> capabilities() const override;
    std::uint64_t group_of(DeviceToken token) noexcept override;

  private:
    MetalQueueTimer(const MetalDriver& driver, Id queue, bool immediate)
        : StampedTimer(immediate), driver_(driver), queue_(Held::retained(driver, queue)) {}
    Status open(const TimerOptions& options);

    const MetalDriver& driver_;
    Held queue_;
    BufferStamper stamper_;
    Completions::Handle completions_;
    std::unique_ptr<MetalTimeline> timeline_;
    std::unique_ptr<Markers> markers_;
};

} // namespace plumb::backends::metal

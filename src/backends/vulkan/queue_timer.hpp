// SPDX-License-Identifier: Apache-2.0
// Times scopes of one VkQueue by timestamp queries: in the caller's command buffers (command_timer.hpp), or around its
// submissions by tiny ones of our own. Owned by its maker, who closes it before the device goes. Thread rule: any thread,
// but begin(), end(), lap(), wait(), floor_ns() only where Vulkan lets the caller submit to the queue.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/stamped_scopes.hpp"
#include "backends/vulkan/own_device.hpp"
#include "backends/vulkan/own_stamps.hpp"
#include "backends/vulkan/tick_line.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::vulkan {

class CommandTimer;

class VulkanQueueTimer final : public QueueTimer {
  public:
    static Result<std::unique_ptr<VulkanQueueTimer>> create(const VulkanHandles& handles, const TimerOptions& options,
                                                            std::unique_ptr<OwnDevice> own = nullptr);
    ~VulkanQueueTimer() override;

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override { return scopes_->end(token); }
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override;
    Status end_labelled(DeviceToken token, const Work* work) noexcept override;
    Result<DeviceToken> lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept override;
    bool sampled_by_step() const noexcept override { return true; }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    void cancel(DeviceToken token) noexcept override { scopes_->cancel(token); }
    Status wait(DeviceToken token) noexcept override;
    std::uint64_t group_of(DeviceToken token) noexcept override;
    bool immediate() const noexcept override { return immediate_; }

    const char* source() const noexcept override { return "vulkan_timestamp"; }
    std::string clock_name() const override { return clock_name_; }
    bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override;
    Result<Elapsed> duration(const DeviceSpan& span) override;
    Result<double> floor_ns() override;
    std::vector<Capability> capabilities() const override { return access_.capabilities(); }
    std::size_t in_flight() const noexcept override { return scopes_->in_flight(); }

    // --- Command buffers: plumb/vulkan.hpp says what each means ---

    /// The timer of a command buffer that is being recorded, alive as long as this one. Null: there are too many, or this
    /// queue is closed.
    CommandTimer* record(CommandBuffer commands, VulkanUse use);
    Status submitting(Recorder& recorder, CommandBuffer commands, std::uint32_t track);
    void forget(CommandBuffer commands) noexcept;
    std::uint64_t unread() const noexcept;
    void close() noexcept;

  private:
    friend class CommandTimer;

    /// One stamp, or both of a scope that runs again.
    struct Stamp {
        CommandTimer* commands = nullptr; // null: a submission of our own
        std::uint32_t at = 0;             // its query, or its number in the command buffer
        std::uint32_t begin = 0;          // of a scope that runs again: the number of its first stamp
        std::uint32_t reached = 0;        // when the device got here, whatever was still running; `none`: not known
        std::uint32_t neighbour = 0; // the last end before this begin in that command buffer; `none`: there is none
        std::uint64_t run = 0;       // of the command buffer
        std::int64_t asked_ns = 0;   // before it was submitted; 0: not known
        std::int64_t taken_ns = 0;   // after that
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    class Stamper {
      public:
        using Stamp = VulkanQueueTimer::Stamp;
        explicit Stamper(VulkanQueueTimer& timer) : timer_(timer) {}
        Status take(Stamp& stamp) noexcept;
        void drop(Stamp& stamp) noexcept;
        void ended(const Stamp&) noexcept {}

      private:
        VulkanQueueTimer& timer_;
    };
    using Scopes = StampedScopes<Stamper>;

    VulkanQueueTimer(QueueAccess access, const TimerOptions& options, std::unique_ptr<OwnDevice> own);
    Status open(std::uint32_t max_in_flight);
    Status first_pair() noexcept;
    Result<DeviceClockPair> read_pair() noexcept;
    Result<DeviceClockPair> pair_by_stamp() noexcept;
    DeviceClockPair pair_of(const RawPair& raw) noexcept;
    void learn_from(const DeviceSpan& span, const Stamp& begin, const Stamp& end, std::int64_t now) noexcept;
    Result<std::uint64_t> raw_of(const Stamp& stamp, std::uint32_t number) noexcept;
    Result<DeviceSpan> read_span(const Stamp& begin, const Stamp& end) noexcept;
    Result<bool> overlaps(const Stamp& begin, const Stamp& of) noexcept;
    void give_up(CommandTimer& commands) noexcept;
    CommandTimer* timer_for_recording();
    void rest(CommandTimer& commands) noexcept;
    void sweep() noexcept;
    void give_up_unstamped() noexcept;

    std::unique_ptr<OwnDevice> own_; // outlives everything
    QueueAccess access_;
    bool immediate_;
    bool own_queue_;
    std::string clock_name_;

    mutable std::mutex mutex_; // guards what follows
    CommandPool command_pool_ = 0;
    std::unique_ptr<QueryRing> ring_;
    std::unique_ptr<OwnStamps> own_stamps_;
    TickLine line_;
    std::optional<DeviceClockPair> coarse_; // the best since the last clock_pair(), where clocks are not calibrated
    std::deque<DeviceClockPair> farewell_;  // after close()
    bool closed_ = false;
    std::vector<std::unique_ptr<CommandTimer>> command_timers_;
    std::vector<CommandTimer*> idle_;
    std::unordered_map<CommandBuffer, CommandTimer*> recorded_;
    std::uint64_t recordings_ = 0; // so far
    std::uint64_t unread_ = 0;

    Stamper stamper_;
    std::unique_ptr<Scopes> scopes_;
};

} // namespace plumb::backends::vulkan

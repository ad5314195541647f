// SPDX-License-Identifier: Apache-2.0
// Scopes in one recording of one command buffer: a face of its queue's timer, whose tokens and track they have. Stamps are
// numbered as they are recorded; they lie in blocks of queries that are this recording's until it has run (once), or until
// it is given up (again). Owned by the queue's timer. Thread rule: one thread records it, as Vulkan wants it; what other
// threads ask of it goes through the queue's timer and its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/queue_timer.hpp"

namespace plumb::backends::vulkan {

class CommandTimer final : public QueueTimer {
  public:
    explicit CommandTimer(VulkanQueueTimer& queue) : queue_(queue) {}

    Result<DeviceToken> begin() noexcept override;
    Status end(DeviceToken token) noexcept override;
    Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override;
    Status end_labelled(DeviceToken token, const Work* work) noexcept override;
    Result<DeviceToken> lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept override;
    void cancel(DeviceToken token) noexcept override;
    /// Deferred in any case: nothing runs before the command buffer is submitted.
    Status wait(DeviceToken) noexcept override { return {}; }
    bool immediate() const noexcept override { return false; }

    bool sampled_by_step() const noexcept override { return queue_.sampled_by_step(); }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override { return queue_.collect(token); }
    const char* source() const noexcept override { return queue_.source(); }
    std::string clock_name() const override { return queue_.clock_name(); }
    bool clock_is_host() const noexcept override { return queue_.clock_is_host(); }
    Result<DeviceClockPair> clock_pair() noexcept override { return queue_.clock_pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override { return queue_.duration(span); }
    Result<double> floor_ns() override { return queue_.floor_ns(); }
    std::vector<Capability> capabilities() const override { return queue_.capabilities(); }
    std::size_t in_flight() const noexcept override { return queue_.in_flight(); }

  private:
    friend class VulkanQueueTimer;
    using Stamp = VulkanQueueTimer::Stamp;
    static constexpr std::uint32_t none = VulkanQueueTimer::none;

    enum class State : std::uint8_t {
        recorded, // or being recorded, or in flight
        given_up, // it cannot run any more
        idle,     // has nothing, waits for its next use
    };
    enum class Border : std::uint8_t { begin, end, lap };
    /// A scope of a command buffer that runs again.
    struct Note {
        ScopeLabel label;
        Work work{};
        bool has_work = false;
        bool ended = false;
        std::uint32_t begin = 0, end = 0, reached = none, neighbour = none; // numbers of stamps
    };
    /// One submission of it.
    struct Run {
        std::uint64_t number = 0;
        std::uint32_t live = 0;
        bool read = false;                 // before the next submission
        bool lost = false;                 // the next one came too early
        std::vector<std::uint64_t> stamps; // by number, where read
    };
    class Target;
    /// True: the calling thread's stamp belongs into a command buffer, and is in `taken` unless `status` says why not.
    static bool targeted(Stamp& taken, Status& status) noexcept;

    // All of these under the queue timer's lock.
    void open(CommandBuffer commands, VulkanUse use, std::uint64_t number);
    void close() noexcept;
    [[nodiscard]] std::uint32_t query(std::uint32_t number) const noexcept {
        return blocks_[number / QueryRing::block] + number % QueryRing::block;
    }
    Result<std::uint32_t> write(std::uint32_t stage) noexcept;
    Status add_block() noexcept;
    Status stamp(Border border, Stamp& stamp) noexcept;
    [[nodiscard]] bool has_run() noexcept;
    [[nodiscard]] bool unstamped() const noexcept { return state_ == State::recorded && count_ == 0; }
    [[nodiscard]] bool rests() noexcept;
    Result<std::uint64_t> raw(const Stamp& stamp, std::uint32_t number) noexcept;
    void dropped(const Stamp& stamp) noexcept;
    void end_run() noexcept;
    Result<std::vector<std::pair<Note, DeviceToken>>> begin_run(const Recorder& recorder, bool timed, std::int64_t now);

    DeviceToken note(const ScopeLabel& label, const Stamp& stamp);
    [[nodiscard]] bool is_open(DeviceToken token) const noexcept;
    [[nodiscard]] std::uint64_t token_of_notes() const noexcept;
    void end_note(DeviceToken token, const Work* work, const Stamp& stamp) noexcept;
    Result<Stamp> stamp_now(Border border, const DeviceToken* ended) noexcept;

    VulkanQueueTimer& queue_;
    CommandBuffer commands_ = nullptr;
    VulkanUse use_ = VulkanUse::once;
    State state_ = State::idle;
    std::uint64_t number_ = 0;          // of this recording among those of its queue
    std::vector<std::uint32_t> blocks_; // first queries
    std::uint32_t count_ = 0;           // of stamps
    std::uint32_t last_end_ = none;
    std::uint32_t live_ = 0; // stamps that somebody will ask for
    std::int64_t submitted_ns_ = 0;
    std::vector<Note> notes_;
    std::deque<Run> runs_; // not all collected, oldest first
    std::uint64_t run_ = 0;
    bool doubtful_ = false; // runs overlapped: whose stamps lie there is not known
};

} // namespace plumb::backends::vulkan

// SPDX-License-Identifier: Apache-2.0
// A device with a queue, in virtual time: launches return at once, kernels run one after another, stamps are taken when
// the device gets there, its clock has a rate and an offset of its own, and waiting for it drains the queue (and is
// counted). What an asynchronous accelerator does, without one. Owned by the test; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "mocks/virtual_world.hpp"
#include "plumb/backend.hpp"

namespace plumb::mocks {

class PipelinedDevice {
  public:
    /// Device ticks per virtual nanosecond is 1/4; its zero is far from the host's.
    static constexpr std::int64_t ns_per_tick = 4;
    static constexpr std::uint64_t tick_offset = 1'000'000'000'000;

    /// The host spends `launch_ns` and the device runs `run_ns` once everything before it is done.
    void launch(std::int64_t launch_ns, std::int64_t run_ns);
    /// The host does something else.
    void pass(std::int64_t ns);
    /// The host waits until the queue is empty, and needs a while to notice.
    void drain_queue();

    /// A stamp that the device takes when it gets there.
    std::uint64_t enqueue_stamp();
    /// Its time, once the device got there.
    std::optional<std::uint64_t> stamp_ticks(std::uint64_t stamp) const;
    void forget_stamp(std::uint64_t stamp);

    std::int64_t host_ns() const;
    std::uint64_t ticks_at(std::int64_t ns) const { return tick_offset + static_cast<std::uint64_t>(ns / ns_per_tick); }
    std::int64_t idle_ns() const; // of the device, since its first kernel
    std::size_t waits() const;
    std::size_t stamps_alive() const;

    /// The host goes on to the moment when the queue is empty, without waiting for it.
    void catch_up();

    /// The `use`-th use of this call from now on fails, once: "event_record", "event_query", "clock".
    void fail(const std::string& call, unsigned use = 1);
    bool has_failed() const;
    /// Asked by the timer at each of its calls.
    bool fails(const std::string& call);

  private:
    VirtualWorld<> world_;
    std::int64_t busy_until_ns_ = 0;
    std::int64_t idle_ns_ = 0;
    std::uint64_t next_stamp_ = 1;
    std::unordered_map<std::uint64_t, std::int64_t> stamps_; // stamp -> device time
};

/// Times a PipelinedDevice with two stamps per scope. The device must outlive it.
std::unique_ptr<QueueTimer> make_pipelined_timer(PipelinedDevice& device, const TimerOptions& options = {});

} // namespace plumb::mocks

// SPDX-License-Identifier: Apache-2.0
// The thread that moves records from rings into the recording. A ring's tail advances only after the recording has the
// records, so that at any moment of a kill every record is in the ring, the file, or both.
// Thread rule: start(), stop(), flush(), add_queue() from any thread but the drain's own; recorders are never blocked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/processor_counters.hpp"
#include "clock/host_clock.hpp"
#include "drain/device_collector.hpp"
#include "drain/off_cpu_sampler.hpp"
#include "drain/tile_ledger.hpp"
#include "plumb/result.hpp"
#include "record/ring_set.hpp"
#include "recording/descriptions.hpp"
#include "recording/writer.hpp"

namespace plumb::drain {

struct DrainOptions {
    clock::HostClockSource clock;
    /// Read earlier. A process that is killed before the drain's first round has a line through it and the one at start().
    std::optional<clock::ClockReading> opened;
    std::uint64_t device_every = 1;                   // device scopes are timed in one step out of so many
    std::function<void(const std::string&)> diagnose; // one sentence for the user
    base::CounterReader* hardware = nullptr;          // null: processor counters were not asked for
    bool redact = false;                              // no folder may be in the recording
};

class Drain : public std::enable_shared_from_this<Drain> {
  public:
    Drain(record::RingSet& rings, recording::Writer& writer, DrainOptions options);
    ~Drain();
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

    Status start();
    /// Writes what is left and ends the thread. An error says what could not be written (it is still in the rings).
    Status stop();
    Status flush(std::chrono::milliseconds timeout);
    void describe(const std::string& key, const std::string& value);
    /// REQUIRES: it was not added before.
    void add_kernel(const recording::KernelInfo& kernel);
    /// From now on device scopes of that track are collected from the timer.
    void add_queue(QueueTimer& timer, const recording::TrackInfo& track);
    /// From now on the feed is asked in every round, until remove_feed() returned.
    void add_feed(DeviceFeed& feed) { collector_.add_feed(feed); }
    void remove_feed(DeviceFeed& feed) { collector_.remove_feed(feed); }
    /// reset(): tiles count anew, on every thread from its next tile on.
    void reset_tiles();
    /// Records written so far by device track.
    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> device_heads();
    /// What was lost and spent so far.
    [[nodiscard]] recording::Counters totals();
    /// Calls `read` while the drain thread leaves the writer alone.
    void between_rounds(const std::function<void(const recording::Writer&)>& read);
    /// Around a fork: between rounds, so that the child inherits no lock and no half-written chunk.
    void before_fork() noexcept;
    void after_fork(bool in_child) noexcept;
    /// In a forked child, where its thread does not exist: never ends from now on. Allocates nothing.
    /// REQUIRES: a shared_ptr owns it.
    void abandon() noexcept { abandoned_ = shared_from_this(); }

  private:
    using Clock = std::chrono::steady_clock;

    struct Watched {
        std::shared_ptr<record::Ring> ring;
        std::uint32_t announced_track = 0;
        std::uint64_t polled_head = 0;
        Clock::time_point oldest{}; // when records now in the ring were first seen
        bool waiting = false;
    };

    void run();
    Status guarded_round(bool all, bool last);
    /// One round over all rings; `all`: write even a few records. Sets the next pause.
    Status round(bool all);
    [[nodiscard]] std::chrono::milliseconds longest_wait_now() const;
    Status collect_the_rest();
    Status complete_clocks();
    void give_up_device_scopes();
    void note_rate(std::uint64_t written, std::uint64_t capacity);
    Status write_ring(Watched& watched, bool all, Clock::time_point now);
    Status retire(record::Ring& ring);
    Status say_where_rings_lie();
    Status write_records(Watched& watched, std::uint64_t tail, std::uint64_t head);
    Status announce(Watched& watched);
    Status write_names();
    Status write_descriptions();
    Status write_kernels();
    Status write_clock_pairs();
    Status write_host_pair(const clock::ClockReading& reading);
    Status write_counters();
    Status write_tiles();
    Status write_off_cpu();
    [[nodiscard]] std::vector<std::shared_ptr<record::Ring>> rings_in_use() const;
    void refresh_rings();
    void note_failure(const Status& status);
    [[nodiscard]] recording::Counters counters();

    record::RingSet& rings_;
    recording::Writer& writer_;
    DrainOptions options_;

    // The drain thread's own.
    std::vector<Watched> watched_;
    std::uint64_t rings_version_ = ~std::uint64_t{0};
    std::uint16_t next_name_ = 0;
    std::uint64_t retired_drops_[drop_reasons] = {};
    std::uint64_t records_ = 0;
    std::uint64_t cpu_ns_ = 0;
    Clock::time_point next_clock_pair_{};
    std::chrono::milliseconds pause_{1};
    std::chrono::milliseconds next_pause_{1};
    std::chrono::milliseconds longest_wait_{0};
    DeviceCollector collector_;
    TileLedger tiles_;
    OffCpuSampler off_cpu_;
    Clock::time_point next_off_cpu_{};
    bool failing_ = false;
    bool rings_told_ = false;

    std::mutex round_mutex_; // held by the drain thread while it works
    std::mutex mutex_;       // guards what follows
    std::condition_variable done_;
    bool stop_ = false;
    std::uint64_t flush_asked_ = 0;
    std::uint64_t flush_done_ = 0;
    Status flush_status_;
    recording::Descriptions descriptions_;       // to be written
    std::vector<recording::KernelInfo> kernels_; // to be written
    std::thread thread_;
    std::shared_ptr<Drain> abandoned_; // itself, in a forked child
};

} // namespace plumb::drain

// SPDX-License-Identifier: Apache-2.0
// Gives device scopes their times: follows host tracks for step, layer and work, asks each queue's timer for the spans of
// the tokens it meets, takes what feeds bring, and writes it as records of the device tracks. Never waits for a device.
// Thread rule: add(), add_feed(), remove_feed() from any thread; the rest from the drain thread (or while it stands
// still).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "clock/host_clock.hpp"
#include "drain/device_feed.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"
#include "record/queue_registry.hpp"
#include "recording/writer.hpp"

namespace plumb::drain {

class DeviceCollector {
  public:
    /// `device_every`: device scopes are timed in one step out of so many. `host_clock`: what host tracks are stamped with.
    explicit DeviceCollector(std::uint64_t device_every = 1, const clock::HostClockSource& host_clock = {})
        : device_every_(device_every), host_clock_(host_clock) {}

    void add(QueueTimer& timer, recording::TrackInfo track);
    void add_feed(DeviceFeed& feed);
    /// When it returns, the drain has let go of the feed.
    void remove_feed(DeviceFeed& feed);
    /// False: no device is timed here.
    [[nodiscard]] bool active() const noexcept {
        return active_.load(std::memory_order_acquire) || record::any_registered_queue();
    }
    /// Host records, in order, after they were written.
    void scan(const recording::RecordBatch& batch);
    /// The track ended: nothing follows.
    void forget_host(std::uint32_t track) { hosts_.erase(track); }
    /// Takes every span that is ready.
    Status collect(recording::Writer& writer);
    Status write_clock_pairs(recording::Writer& writer);
    /// Asks the clocks that stamped what was written and that no line fits yet, with fewer than two pairs. True: some still
    /// lack one. What they answered waits for write_pairs().
    [[nodiscard]] bool read_missing_pairs();
    Status write_pairs(recording::Writer& writer);
    /// Cancels the token of a host record that was never scanned, if it has one.
    void give_up(const Record& record);
    /// Cancels the tokens of all scopes that are not collected yet; they stay unresolved.
    void give_up_pending();
    /// Scopes whose time never came, or has not come yet.
    [[nodiscard]] std::uint64_t unresolved() const noexcept;
    [[nodiscard]] std::uint64_t dropped_checks() const noexcept;
    /// CPU time of the feeds' own threads, as far as collect() was told. The drain's to ask.
    [[nodiscard]] std::uint64_t feeds_cpu_ns() const noexcept { return feeds_cpu_ns_; }
    /// Records written so far by device track.
    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> written() const;

  private:
    struct Place {
        std::uint64_t step_plus_one = 0;
        std::uint16_t layer_plus_one = 0;
    };
    struct HostTrack {
        std::vector<Place> places; // innermost last; never empty
        std::map<std::uint16_t, Work> work;
        std::map<std::uint16_t, Record> collectives; // by name of the scope that they are of, until that comes
        HostTrack() : places(1) {}
    };
    /// The record of a scope's submission.
    struct Cause {
        std::uint32_t track;
        std::uint64_t sequence;
    };
    struct Pending {
        std::optional<Cause> cause; // of what a feed brings: none
        std::uint64_t token;
        std::uint64_t bits; // id and flags of the scope
        Place place;
        Work work;
        std::optional<Record> collective;
    };
    struct DeviceTrack {
        QueueTimer* timer; // null: a feed brings its samples
        recording::TrackInfo info;
        bool announced = false;
        std::deque<Pending> pending;
        std::map<std::uint16_t, Work> known_work;
        std::uint64_t written = 0;
        std::vector<Record> ready;
    };

    struct Clock {
        std::uint32_t id;                              // that of the first track stamped with it
        QueueTimer* timer;                             // gives its pairs; null: nobody can
        std::optional<std::uint64_t> first_ticks = {}; // of its pairs
        bool has_two = false;                          // pairs at different ticks
    };

    void follow(HostTrack& host, const Record& record);
    void expect(const Record& record, const Cause& cause, HostTrack& host);
    void emit(DeviceTrack& device, const Pending& pending, const DeviceSpan& span);
    void take_ready(DeviceTrack& device);
    void take_unordered(DeviceTrack& device);
    void look_behind(DeviceTrack& device);
    [[nodiscard]] std::size_t take_before(DeviceTrack& device, std::size_t end);
    bool take(DeviceTrack& device, const Pending& pending);
    Status write_ready(recording::Writer& writer);
    Status take_feeds(recording::Writer& writer);
    void take_samples(const FeedRound& round);
    void take_checks(FeedRound& round);
    DeviceTrack* track_of(std::uint32_t id);
    DeviceTrack& add_locked(QueueTimer* timer, recording::TrackInfo track);
    std::uint32_t clock_id(const std::string& name, QueueTimer* timer, std::uint32_t track);
    void read_pair(const std::string& name, Clock& clock);
    [[nodiscard]] bool lacks_pair(const Clock& clock) const;
    [[nodiscard]] std::vector<DeviceTrack*> devices();

    std::uint64_t device_every_;
    const clock::HostClockSource host_clock_;
    std::atomic<bool> active_{false};
    mutable std::mutex mutex_; // guards the maps, not what they point to
    std::map<std::uint32_t, DeviceTrack> devices_;
    std::map<std::string, Clock> clocks_;
    std::map<std::uint32_t, HostTrack> hosts_;
    std::vector<recording::GraphInfo> graphs_;   // not written yet
    std::vector<recording::TensorCheck> checks_; // not written yet
    std::deque<recording::ClockPair> pairs_;     // not written yet
    std::uint64_t lost_checks_ = 0;              // because too many were not written yet
    std::uint64_t failed_ = 0;
    std::uint64_t feeds_cpu_ns_ = 0; // the drain's
    mutable std::mutex feeds_mutex_; // held while feeds are asked, so that none dies meanwhile
    std::vector<DeviceFeed*> feeds_;
};

} // namespace plumb::drain

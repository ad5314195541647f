// SPDX-License-Identifier: Apache-2.0
// Gives device scopes their times: follows host tracks for step, layer and work, asks each queue's timer for the spans of
// the tokens it meets, and writes them as records of the queue's own track. Never waits for a device.
// Thread rule: add() from any thread; the rest from the drain thread (or while it stands still).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"
#include "recording/writer.hpp"

namespace plumb::drain {

class DeviceCollector {
  public:
    void add(QueueTimer& timer, recording::TrackInfo track);
    [[nodiscard]] bool active() const noexcept { return active_.load(std::memory_order_acquire); }
    /// Host records, in order, after they were written.
    void scan(const recording::RecordBatch& batch);
    /// The track ended: nothing follows.
    void forget_host(std::uint32_t track) { hosts_.erase(track); }
    /// Takes every span that is ready.
    Status collect(recording::Writer& writer);
    Status write_clock_pairs(recording::Writer& writer);
    /// Scopes whose time never came, or has not come yet.
    [[nodiscard]] std::uint64_t unresolved() const noexcept;
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
        HostTrack() : places(1) {}
    };
    struct Pending {
        std::uint64_t token;
        std::uint64_t bits; // id and flags of the scope
        Place place;
        Work work;
    };
    struct DeviceTrack {
        QueueTimer* timer;
        recording::TrackInfo info;
        bool announced = false;
        std::deque<Pending> pending;
        std::map<std::uint16_t, Work> known_work;
        std::uint64_t written = 0;
        std::vector<Record> ready;
    };

    void follow(HostTrack& host, const Record& record);
    void emit(DeviceTrack& device, const Pending& pending, const DeviceSpan& span);
    void take_ready(DeviceTrack& device);
    [[nodiscard]] std::vector<DeviceTrack*> devices();

    std::atomic<bool> active_{false};
    mutable std::mutex mutex_; // guards the map, not what it points to
    std::map<std::uint32_t, DeviceTrack> devices_;
    std::map<std::uint32_t, HostTrack> hosts_;
    std::uint64_t failed_ = 0;
};

} // namespace plumb::drain

// SPDX-License-Identifier: Apache-2.0
// One period of one lane, moment by moment: each belongs to exactly one kind of time, so that the parts add up to the
// period to the nanosecond (docs/reference/wall.md). Owned by one report; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/interval.hpp"
#include "analysis/period_observer.hpp"

namespace plumb::analysis {

/// Sums in nanoseconds; see WallLane.
struct LaneSums {
    struct Scope {
        std::int64_t self = 0, total = 0;
    };
    std::uint64_t steps = 0;
    std::int64_t period = 0;
    std::int64_t busy = 0, busy_sum = 0, launch_wait = 0, host_waits = 0;
    std::int64_t bricks = 0, bricks_sum = 0, laps = 0;
    std::int64_t exposed = 0, host = 0, queued = 0, unnamed = 0, off_cpu = 0; // idle of a device
    std::int64_t between_calls = 0, in_waits = 0;                             // of `host`: where only calls are known
    std::int64_t for_device = 0, waiting = 0;                                 // idle of the host
    std::int64_t uncertain = 0; // when in the period threads were off the CPU for so long is not known
    std::map<std::uint16_t, Scope> scopes;

    void add(const LaneSums& other);
};

/// What a track, by dense index, is to the lane that is looked at.
enum class Role : std::uint8_t {
    thread, // of the host
    feeder, // a thread that launches commands of this lane
    queue,  // of the lane
    other_queue,
};

class WallSweep {
  public:
    /// Named scopes around a moment of one thread whose total time is followed.
    static constexpr std::size_t deepest = 64;

    /// `roles` by dense index of the track; missing ones are threads that nobody described. `device`: else the host's lane.
    /// `calls_only`: of threads nothing is known but their launches and the calls in which they wait.
    [[nodiscard]] LaneSums lane(Interval period, const std::vector<Detail>& details, const std::vector<Role>& roles,
                                bool device, bool calls_only = false);

  private:
    struct Edge {
        std::int64_t time;
        std::uint32_t detail;
        bool begin;
    };
    struct Thread {
        int present = 0;
        int waiting = 0;
        bool inside = false; // a piece is open
        bool launching = false;
        bool works = false; // counted in workers_
        std::uint16_t name = 0;
        std::int64_t since = 0;
        std::vector<std::uint16_t> wholes;
    };
    using Inside = std::set<std::pair<std::int64_t, std::uint32_t>>; // begin of the piece, track

    void clear(const std::vector<Detail>& details, const std::vector<Role>& roles);
    void apply(const Detail& detail, bool begin);
    void apply_thread(const Detail& detail, bool begin);
    void enter(Thread& thread, const Detail& detail);
    void leave(Thread& thread, std::uint32_t track);
    static void apply_whole(Thread& thread, std::uint16_t name, bool begin);
    void apply_queue(const Detail& detail, int by);
    void count_busy(std::int64_t length, int tracks);
    void count_device(std::int64_t at, std::int64_t length);
    void find_launches(const std::vector<Detail>& details);
    [[nodiscard]] bool next_to_launch_waits(std::int64_t at);
    void count_host(std::int64_t length);
    [[nodiscard]] const Thread* innermost() const;
    void name(const Thread& thread, std::int64_t length);
    [[nodiscard]] Role role_of(std::uint32_t track) const {
        return track < roles_->size() ? (*roles_)[track] : Role::thread;
    }
    [[nodiscard]] bool wanted(const Detail& detail) const;

    const std::vector<Role>* roles_ = nullptr;
    bool device_ = false;
    bool calls_only_ = false;
    std::vector<std::pair<std::int64_t, std::uint32_t>> launches_; // of the lane: begin, track of the thread
    std::size_t next_launch_ = 0;
    LaneSums sums_;
    std::vector<Edge> edges_;
    std::vector<Thread> threads_;                   // by dense index of the track; as made outside of lane()
    std::vector<int> queues_;                       // the same: commands that run
    Inside feeders_inside_, others_inside_;         // in a named piece
    int present_ = 0, launching_ = 0, workers_ = 0; // threads; workers_: feeders
    int busy_queues_ = 0, other_busy_ = 0;
    int open_ = 0, unsure_ = 0, sure_ = 0, flying_ = 0, queued_ = 0, unlinked_ = 0; // commands of the lane
    int bricks_ = 0, laps_ = 0;
};

} // namespace plumb::analysis

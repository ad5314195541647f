// SPDX-License-Identifier: Apache-2.0
// What the devices in virtual time share: the host's time, which goes on only when told, one call that is planned to fail,
// and how often the program waited. Each device's world derives from it. Thread rule: any thread; what does not lock by itself
// says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "plumb/clock.hpp"

namespace plumb::mocks {

/// One use of one call fails, once. Not locked.
class PlannedFailure {
  public:
    /// The `use`-th use of `call` from now on; 0: none fails any more, and what happened stays known.
    void plan(const std::string& call, unsigned use) {
        call_ = call;
        uses_left_ = use;
        struck_ = struck_ && use == 0;
    }
    bool strikes(std::string_view call) {
        if (uses_left_ == 0 || call_ != call || --uses_left_ != 0) {
            return false;
        }
        struck_ = true;
        return true;
    }
    bool has_struck() const { return struck_; }

  private:
    std::string call_;
    unsigned uses_left_ = 0;
    bool struck_ = false;
};

template <class Mutex = std::mutex>
struct VirtualWorld {
    using Lock = std::lock_guard<Mutex>;

    mutable Mutex mutex;
    std::int64_t now = 1'000'000'000;
    std::size_t waits = 0; // of the program for the device
    PlannedFailure failure;

    /// Of a member, for whoever does not hold the lock.
    template <class World, class Owner, class T>
    static T of(const World& world, T Owner::*member) {
        const Lock lock(world.mutex);
        return world.*member;
    }
    /// The host goes on by `ns`; the time after that.
    std::int64_t pass(std::int64_t ns) {
        const Lock lock(mutex);
        return now += ns;
    }
    void plan_failure(const std::string& call, unsigned use) {
        const Lock lock(mutex);
        failure.plan(call, use);
    }
    bool has_failed() const {
        const Lock lock(mutex);
        return failure.has_struck();
    }

    // The caller holds the lock.
    bool fails(std::string_view call) { return failure.strikes(call); }
    /// The host goes on to that moment, if it lies ahead.
    void reach(std::int64_t moment) { now = std::max(now, moment); }
    /// The host waits for that moment, and needs a while to wake up.
    void wait_for(std::int64_t moment) {
        ++waits;
        reach(moment);
        now += 20'000;
    }
    void forget_failures_and_waits() {
        failure = {};
        waits = 0;
    }
};

/// The host's clock in such a world; ticks are nanoseconds.
template <std::int64_t (*now)()>
class VirtualHostClock final : public HostClock {
  public:
    std::uint64_t now_ticks() const noexcept override { return static_cast<std::uint64_t>(now()); }
    std::int64_t now_ns() const noexcept override { return now(); }
};

} // namespace plumb::mocks

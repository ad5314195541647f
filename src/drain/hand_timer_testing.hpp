// SPDX-License-Identifier: Apache-2.0
// For tests: a device queue that is moved by hand. Thread rule: what a test sets, the drain reads; set it while that rests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::drain {

/// Finishes scopes when the test says so.
class HandTimer : public QueueTimer {
  public:
    [[nodiscard]] Result<DeviceToken> begin() noexcept override {
        if (refuse_begin) {
            return Error{ErrorCode::out_of_memory, "no token is left; collect some"};
        }
        open.insert(++last);
        return DeviceToken{last};
    }
    [[nodiscard]] Status end(DeviceToken token) noexcept override {
        return refuse_end || open.count(token.value) == 0 ? Status(Error{ErrorCode::not_found, "not open"}) : Status();
    }
    [[nodiscard]] std::uint64_t group_of(DeviceToken token) noexcept override {
        const auto found = groups.find(token.value);
        return found != groups.end() ? found->second : 0;
    }
    [[nodiscard]] Result<DeviceSpan> collect(DeviceToken token) noexcept override {
        if (collected) {
            collected(token.value);
        }
        const auto found = done.find(token.value);
        if (found == done.end()) {
            return Error{ErrorCode::pending, "not finished"};
        }
        open.erase(token.value);
        return found->second;
    }
    void cancel(DeviceToken token) noexcept override { open.erase(token.value); }
    [[nodiscard]] Status wait(DeviceToken) noexcept override {
        ++waits;
        return refuse_wait ? Status(Error{ErrorCode::failed, "the device is gone"}) : Status();
    }
    [[nodiscard]] bool immediate() const noexcept override { return immediately; }
    [[nodiscard]] const char* source() const noexcept override { return "hand"; }
    [[nodiscard]] std::string clock_name() const override { return "hand"; }
    [[nodiscard]] bool clock_is_host() const noexcept override { return on_host; }
    [[nodiscard]] Result<DeviceClockPair> clock_pair() noexcept override {
        if (busy > 0) {
            --busy;
            return Error{ErrorCode::pending, "too busy"};
        }
        if (reads != nullptr) {
            return DeviceClockPair{ticks, clock::now_ns(*reads).value, 3, 4};
        }
        return gone ? Result<DeviceClockPair>(Error{ErrorCode::unavailable, "its context ended"})
                    : Result<DeviceClockPair>(DeviceClockPair{ticks, 2, 3, 4});
    }
    [[nodiscard]] Result<Elapsed> duration(const DeviceSpan&) override { return Elapsed{}; }
    [[nodiscard]] Result<double> floor_ns() override { return 0.0; }
    [[nodiscard]] std::vector<Capability> capabilities() const override { return {}; }
    [[nodiscard]] std::size_t in_flight() const noexcept override { return open.size(); }

    std::set<std::uint64_t> open;
    std::map<std::uint64_t, DeviceSpan> done;
    std::map<std::uint64_t, std::uint64_t> groups;
    std::function<void(std::uint64_t)> collected; // told before it answers
    std::uint64_t last = 0;
    bool refuse_begin = false, refuse_end = false, refuse_wait = false, immediately = false;
    bool on_host = false, gone = false;
    std::uint64_t waits = 0, ticks = 1;
    const clock::HostClockSource* reads = nullptr; // for its pairs
    std::atomic<int> busy{0};                      // so many more asks for a pair get none
};

} // namespace plumb::drain

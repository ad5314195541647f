// SPDX-License-Identifier: Apache-2.0
#include "mocks/pipelined_device.hpp"

#include <algorithm>

namespace plumb::mocks {

void PipelinedDevice::launch(std::int64_t launch_ns, std::int64_t run_ns) {
    const std::lock_guard lock(world_.mutex);
    world_.now += launch_ns;
    const std::int64_t start = std::max(world_.now, busy_until_ns_);
    if (busy_until_ns_ != 0) {
        idle_ns_ += start - busy_until_ns_;
    }
    busy_until_ns_ = start + run_ns;
}

void PipelinedDevice::pass(std::int64_t ns) { world_.pass(ns); }

void PipelinedDevice::drain_queue() {
    const std::lock_guard lock(world_.mutex);
    world_.wait_for(busy_until_ns_);
}

std::uint64_t PipelinedDevice::enqueue_stamp() {
    const std::lock_guard lock(world_.mutex);
    stamps_[next_stamp_] = std::max(world_.now, busy_until_ns_);
    return next_stamp_++;
}

std::optional<std::uint64_t> PipelinedDevice::stamp_ticks(std::uint64_t stamp) const {
    const std::lock_guard lock(world_.mutex);
    const auto found = stamps_.find(stamp);
    if (found == stamps_.end() || found->second > world_.now) {
        return std::nullopt;
    }
    return ticks_at(found->second);
}

void PipelinedDevice::forget_stamp(std::uint64_t stamp) {
    const std::lock_guard lock(world_.mutex);
    stamps_.erase(stamp);
}

std::int64_t PipelinedDevice::host_ns() const { return VirtualWorld<>::of(world_, &VirtualWorld<>::now); }

std::int64_t PipelinedDevice::idle_ns() const {
    const std::lock_guard lock(world_.mutex);
    return idle_ns_;
}

std::size_t PipelinedDevice::waits() const { return VirtualWorld<>::of(world_, &VirtualWorld<>::waits); }

std::size_t PipelinedDevice::stamps_alive() const {
    const std::lock_guard lock(world_.mutex);
    return stamps_.size();
}

void PipelinedDevice::catch_up() {
    const std::lock_guard lock(world_.mutex);
    world_.reach(busy_until_ns_);
}

void PipelinedDevice::fail(const std::string& call, unsigned use) { world_.plan_failure(call, use); }

bool PipelinedDevice::has_failed() const { return world_.has_failed(); }

bool PipelinedDevice::fails(const std::string& call) {
    const std::lock_guard lock(world_.mutex);
    return world_.fails(call);
}

namespace {

class PipelinedTimer final : public QueueTimer {
  public:
    PipelinedTimer(PipelinedDevice& device, const TimerOptions& options)
        : device_(device), immediate_(options.immediate), max_in_flight_(options.max_in_flight) {}
    ~PipelinedTimer() override {
        for (const auto& [token, scope] : scopes_) {
            forget(scope);
        }
    }

    Result<DeviceToken> begin() noexcept override {
        const std::lock_guard lock(mutex_);
        if (scopes_.size() >= max_in_flight_) {
            return Error{ErrorCode::out_of_memory, "too many scopes are in flight; collect some first"};
        }
        if (device_.fails("event_record")) {
            return Error{ErrorCode::failed, "event_record failed; check the device"};
        }
        scopes_[next_] = {device_.enqueue_stamp(), 0};
        return DeviceToken{next_++};
    }

    Status end(DeviceToken token) noexcept override {
        const std::lock_guard lock(mutex_);
        const auto found = scopes_.find(token.value);
        if (found == scopes_.end() || found->second.end != 0) {
            return Error{ErrorCode::not_found, "this token is not open; end each token once"};
        }
        if (device_.fails("event_record")) {
            return Error{ErrorCode::failed, "event_record failed; check the device"};
        }
        found->second.end = device_.enqueue_stamp();
        return {};
    }

    Result<DeviceSpan> collect(DeviceToken token) noexcept override {
        const std::lock_guard lock(mutex_);
        const auto found = scopes_.find(token.value);
        if (found == scopes_.end()) {
            return Error{ErrorCode::not_found, "this token is not in flight; collect each token once"};
        }
        const Scope scope = found->second;
        const auto begin = device_.stamp_ticks(scope.begin);
        const auto end = device_.stamp_ticks(scope.end);
        if (scope.end == 0 || !begin || !end) {
            return Error{ErrorCode::pending, "the device has not finished this scope; ask later"};
        }
        forget(scope);
        scopes_.erase(found);
        if (device_.fails("event_query")) {
            return Error{ErrorCode::failed, "event_query failed; check the device"};
        }
        return DeviceSpan{*begin, *end, 0};
    }

    void cancel(DeviceToken token) noexcept override {
        const std::lock_guard lock(mutex_);
        const auto found = scopes_.find(token.value);
        if (found == scopes_.end()) {
            return;
        }
        forget(found->second);
        scopes_.erase(found);
    }

    Status wait(DeviceToken) noexcept override {
        device_.drain_queue();
        return {};
    }
    bool immediate() const noexcept override { return immediate_; }

    const char* source() const noexcept override { return "pipelined_event"; }
    std::string clock_name() const override { return "pipelined:0"; }
    bool clock_is_host() const noexcept override { return false; }

    Result<DeviceClockPair> clock_pair() noexcept override {
        if (device_.fails("clock")) {
            return Error{ErrorCode::failed, "the device's clock cannot be read; check the device"};
        }
        device_.pass(1'000); // reading takes time
        const std::int64_t now = device_.host_ns();
        return DeviceClockPair{device_.ticks_at(now), now, now, 2};
    }

    Result<Elapsed> duration(const DeviceSpan& span) override {
        const auto ticks = static_cast<double>(span.end_ticks - span.begin_ticks);
        return Elapsed{ticks * PipelinedDevice::ns_per_tick, PipelinedDevice::ns_per_tick};
    }
    Result<double> floor_ns() override { return 0.0; }
    std::vector<Capability> capabilities() const override {
        return {{"per_dispatch", true, ""}, {"graph_capture", false, "this device has no captured graphs"}};
    }
    std::size_t in_flight() const noexcept override {
        const std::lock_guard lock(mutex_);
        return scopes_.size();
    }

  private:
    struct Scope {
        std::uint64_t begin = 0, end = 0;
    };
    void forget(const Scope& scope) {
        device_.forget_stamp(scope.begin);
        device_.forget_stamp(scope.end);
    }

    PipelinedDevice& device_;
    bool immediate_;
    std::size_t max_in_flight_;
    mutable std::mutex mutex_;
    std::uint64_t next_ = 1;
    std::unordered_map<std::uint64_t, Scope> scopes_;
};

} // namespace

std::unique_ptr<QueueTimer> make_pipelined_timer(PipelinedDevice& device, const TimerOptions& options) {
    return std::make_unique<PipelinedTimer>(device, options);
}

} // namespace plumb::mocks

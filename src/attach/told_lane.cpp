// SPDX-License-Identifier: Apache-2.0
#include "attach/told_lane.hpp"

#include <algorithm>

#include "clock/host_clock.hpp"

namespace plumb::attach {
namespace {

Error only_added() { return {ErrorCode::unsupported, "these scopes are told when they have ended"}; }

} // namespace

DeviceToken ToldLane::add(const DeviceSpan& span) {
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= most_waiting) {
        return {0};
    }
    spans_.push_back(span);
    return {first_ + spans_.size() - 1};
}

Result<DeviceToken> ToldLane::begin() noexcept { return only_added(); }
Status ToldLane::end(DeviceToken) noexcept { return only_added(); }

/// They are asked for in their order.
Result<DeviceSpan> ToldLane::collect(DeviceToken token) noexcept {
    const std::lock_guard lock(mutex_);
    if (token.value < first_ || token.value - first_ >= spans_.size()) {
        return Error{ErrorCode::not_found, "this token does not wait here"};
    }
    const auto at = spans_.begin() + static_cast<std::ptrdiff_t>(token.value - first_);
    const DeviceSpan span = *at;
    spans_.erase(spans_.begin(), at + 1);
    first_ = token.value + 1;
    return span;
}

Result<DeviceClockPair> ToldLane::clock_pair() noexcept {
    const std::int64_t now = clock::monotonic_ns();
    return DeviceClockPair{static_cast<std::uint64_t>(now), now, clock::realtime_ns(), 0};
}

Result<Elapsed> ToldLane::duration(const DeviceSpan& span) {
    return Elapsed{static_cast<double>(span.end_ticks - span.begin_ticks), std::max(by_.floor_ns, 1.0)};
}

Result<double> ToldLane::floor_ns() {
    if (by_.floor_ns == 0) {
        return Error{ErrorCode::unsupported, std::string("the least that ") + by_.source + " can tell is not known"};
    }
    return by_.floor_ns;
}

std::size_t ToldLane::in_flight() const noexcept {
    const std::lock_guard lock(mutex_);
    return spans_.size();
}

} // namespace plumb::attach

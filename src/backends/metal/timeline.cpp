// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/timeline.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plumb::backends::metal {
namespace {

constexpr std::int64_t test_limit_ns = 20'000'000;  // once per queue; a busy device is not waited for
constexpr std::int64_t floor_limit_ns = 50'000'000; // asked for by selftest alone
constexpr std::int64_t shortest_poll_ns = 10; // the number of polls is bounded too: an injected clock may stand still
constexpr std::uint32_t floor_markers = 66;
constexpr int pair_tries = 4;

} // namespace

Result<std::unique_ptr<MetalTimeline>> MetalTimeline::create(const MetalDriver& driver, Id device,
                                                             Completions& completions, const HostClock* host_clock) {
    std::unique_ptr<MetalTimeline> timeline(new MetalTimeline(driver, host_clock));
    const Status opened = timeline->open(device, completions);
    return opened ? Result<std::unique_ptr<MetalTimeline>>(std::move(timeline)) : opened.error();
}

Status MetalTimeline::open(Id device, Completions& completions) {
    clock_name_ = clock_name_of(driver_, device);
    const Held queue(driver_, driver_.object(device, driver_.words.new_queue, 2 * floor_markers));
    if (queue.get() == nullptr) {
        return Error{ErrorCode::failed, "newCommandQueueWithMaxCommandBufferCount: this device gives no queue to test "
                                        "its times with; free some of its resources"};
    }
    auto markers = Markers::create(driver_, queue.get(), floor_markers, completions);
    if (!markers) {
        return markers.error();
    }
    own_ = std::move(*markers);
    return test();
}

Status MetalTimeline::test() {
    const std::int64_t before = now_ns();
    Result<Marker> marker = own_->commit();
    if (!marker) {
        return marker.error();
    }
    Status seen = wait_short(*marker->done, test_limit_ns);
    if (seen) {
        cost_of_waiting_ns_ = {static_cast<double>(now_ns() - before), ""};
    } else if (seen.error().code == ErrorCode::pending) {
        cost_of_waiting_ns_ = {std::nullopt, "the device was busy"};
        seen = {};
    }
    own_->drop(*marker);
    return seen;
}

Status MetalTimeline::wait_short(const Completion& note, std::int64_t limit_ns) const noexcept {
    const std::int64_t limit = now_ns() + limit_ns;
    std::int64_t polls = limit_ns / shortest_poll_ns;
    while (!note.over() && now_ns() < limit && --polls > 0) {
    }
    return note.look();
}

// The device's times are on a clock that the host can read: a pair needs no work on the device.
Result<DeviceClockPair> MetalTimeline::clock_pair() noexcept {
    Result<DeviceClockPair> best = Error{ErrorCode::pending, "this clock was not read yet; ask later"};
    for (int attempt = 0; attempt < pair_tries; ++attempt) {
        const std::int64_t realtime = clock::realtime_ns();
        const std::int64_t before = now_ns();
        const Result<std::uint64_t> uptime = uptime_ns(driver_);
        const std::int64_t width = now_ns() - before;
        if (!uptime) {
            return uptime.error();
        }
        if (!best || static_cast<std::uint64_t>(width) < best->uncertainty_ticks) {
            best = DeviceClockPair{*uptime, before + width / 2, realtime + width / 2,
                                   static_cast<std::uint64_t>(width) + 1};
        }
    }
    return best;
}

Result<double> MetalTimeline::floor_ns() {
    std::vector<Marker> markers;
    Status status;
    while (status && markers.size() < floor_markers) {
        const Result<Marker> marker = own_->commit();
        if (marker) {
            markers.push_back(*marker);
        } else {
            status = marker.error();
        }
    }
    std::vector<double> gaps;
    for (std::size_t i = 0; i < markers.size(); ++i) {
        status = status ? wait_short(*markers[i].done, floor_limit_ns) : status;
        if (status && i > 0) {
            gaps.push_back(static_cast<double>(markers[i].done->end_ns()) -
                           static_cast<double>(markers[i - 1].done->end_ns()));
        }
    }
    for (Marker& marker : markers) {
        own_->drop(marker);
    }
    if (!status) {
        return status.error();
    }
    std::nth_element(gaps.begin(), gaps.begin() + gaps.size() / 2, gaps.end());
    return gaps[gaps.size() / 2];
}

} // namespace plumb::backends::metal

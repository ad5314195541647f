// SPDX-License-Identifier: Apache-2.0
#include "answers/audit/device_side.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "plumb/backend.hpp"
#include "read/read.hpp"
#include "recording/calendar_time.hpp"

namespace plumb::audit {
namespace {

using resolve::SampleKind;

constexpr std::int64_t steady_ns = 100'000'000; // within which the calendar's clock keeps up with the host's

class DeviceObserver final : public read::Observer {
  public:
    void consume(const resolve::ResolvedBatch& batch) override {
        if (batch.track->info.kind == recording::TrackKind::host_thread) {
            return;
        }
        DeviceLane& lane = lanes_[batch.track->info.id];
        lane.info = batch.track->info;
        for (const resolve::Sample& sample : batch.samples) {
            if (sample.kind != SampleKind::scope && sample.kind != SampleKind::lap) {
                continue;
            }
            DeviceInterval& made = lane.intervals.emplace_back();
            made.begin_ns = sample.begin_ns;
            made.end_ns = sample.begin_ns + sample.duration_ns;
            made.step = sample.step;
            made.name = sample.name;
            made.leaf = sample.leaf;
            made.launch_wait = (sample.flags & span_includes_launch_wait) != 0;
            if (sample.launch != resolve::no_launch) {
                made.launch_begin_ns = batch.launches[sample.launch].begin_ns;
                made.launch_end_ns = batch.launches[sample.launch].end_ns;
            }
        }
    }
    void finish(const resolve::Resolution& resolution) override { complaints_ = resolution.complaints; }

    DeviceSide take() {
        DeviceSide side;
        side.complaints = std::move(complaints_);
        for (auto& [id, lane] : lanes_) {
            if (!lane.intervals.empty()) {
                order(lane.intervals);
                side.lanes.push_back(std::move(lane));
            }
        }
        return side;
    }

  private:
    static void order(std::vector<DeviceInterval>& intervals) {
        std::stable_sort(intervals.begin(), intervals.end(), [](const DeviceInterval& a, const DeviceInterval& b) {
            return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
        });
        std::int64_t open = std::numeric_limits<std::int64_t>::min();
        for (DeviceInterval& interval : intervals) {
            interval.outermost = interval.end_ns > open;
            open = std::max(open, interval.end_ns);
        }
    }

    std::map<std::uint32_t, DeviceLane> lanes_;
    std::vector<std::string> complaints_;
};

std::optional<std::int64_t> realtime_of(const recording::RunFacts& facts) {
    std::vector<std::int64_t> offsets;
    for (const recording::ClockPair& pair : facts.clock_pairs) {
        if (pair.clock == 0 && recording::is_calendar_time(pair.realtime_ns)) {
            offsets.push_back(pair.realtime_ns - pair.monotonic_ns);
        }
    }
    if (offsets.empty()) {
        return {};
    }
    std::sort(offsets.begin(), offsets.end());
    return offsets.back() - offsets.front() <= steady_ns ? std::optional(offsets[offsets.size() / 2]) : std::nullopt;
}

} // namespace

std::int64_t DeviceSide::first_ns() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const DeviceLane& lane : lanes) {
        first = std::min(first, lane.intervals.front().begin_ns);
    }
    return first;
}

std::int64_t DeviceSide::last_ns() const {
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const DeviceLane& lane : lanes) {
        for (const DeviceInterval& interval : lane.intervals) {
            last = std::max(last, interval.end_ns);
        }
    }
    return last;
}

double DeviceSide::tick_ns() const {
    for (const auto& [what, ns] : facts->metadata.costs) {
        if (what.starts_with("floor.imported:")) {
            return ns;
        }
    }
    return 1;
}

Result<DeviceSide> device_side_of(const recording::RecordedRun& run) {
    DeviceObserver observer;
    if (const Status status = read::read(run, {&observer}); !status.ok()) {
        return status.error();
    }
    DeviceSide side = observer.take();
    side.facts = run.facts;
    side.realtime_less_host_ns = realtime_of(*run.facts);
    return side;
}

} // namespace plumb::audit

// SPDX-License-Identifier: Apache-2.0
// What a recording says its devices did, by queue: one of the two sides that an audit holds against each other. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/name_table.hpp"
#include "resolve/sample.hpp"

namespace plumb::audit {

/// One scope of a device queue, or one operation of a trace.
struct DeviceInterval {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t launch_begin_ns = 0, launch_end_ns = 0; // on the host; both 0: not known
    std::uint64_t step = resolve::no_step;
    std::uint16_t name = 0;
    bool leaf = true;
    bool outermost = true;
    bool launch_wait = false;

    [[nodiscard]] std::int64_t duration_ns() const { return end_ns - begin_ns; }
    [[nodiscard]] bool launched() const { return launch_end_ns != 0; }
};

struct DeviceLane {
    recording::TrackInfo info;
    std::vector<DeviceInterval> intervals; // by begin, what holds others first
};

struct DeviceSide {
    std::shared_ptr<const recording::RunFacts> facts;
    std::vector<DeviceLane> lanes;                     // with intervals only, by track id
    std::optional<std::int64_t> realtime_less_host_ns; // absent: not known, or the calendar's clock was set meanwhile
    std::vector<std::string> complaints;

    [[nodiscard]] std::int64_t first_ns() const;
    [[nodiscard]] std::int64_t last_ns() const;
    /// That all times of a trace are multiples of.
    [[nodiscard]] double tick_ns() const;
};

[[nodiscard]] Result<DeviceSide> device_side_of(const recording::RecordedRun& run);

} // namespace plumb::audit

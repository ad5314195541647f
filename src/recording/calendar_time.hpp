// SPDX-License-Identifier: Apache-2.0
// Whether what a recording says of the time of day (ClockPair::realtime_ns, Metadata::start_realtime_ns) is one. Pure; any thread.
#pragma once

#include <cstdint>

namespace plumb::recording {

/// What lies before 2001 counts from another zero, such as boot: so do times of a trace whose tool wrote no wall clock. 0 is not known.
[[nodiscard]] constexpr bool is_calendar_time(std::int64_t realtime_ns) noexcept {
    return realtime_ns > 1'000'000'000'000'000'000;
}

} // namespace plumb::recording

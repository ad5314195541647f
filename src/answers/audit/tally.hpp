// SPDX-License-Identifier: Apache-2.0
// Each operation of a trace to the scope of ours that it ran in, once the two clocks are known, and what that says of each brick. One
// thread; made for one audit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/audit/audit.hpp"
#include "answers/audit/clock_fit.hpp"
#include "answers/audit/device_side.hpp"

namespace plumb::audit {

class Tally {
  public:
    Tally(const DeviceSide& ours, const DeviceSide& trace);

    /// A lane of ours lies on a stream of the trace.
    void add(const DeviceLane& lane, const DeviceLane& stream, const LaneClock& clock);
    /// After the last of them.
    void finish(AuditReport& report);
    /// After finish(): single calls vary together.
    [[nodiscard]] bool follows() const { return follows_; }

  private:
    struct Brick {
        AuditRow row;
        double ours = 0, sum = 0, span = 0, covered = 0; // of matched calls
        double all_ours = 0;
        struct Call {
            double span = 0, ours = 0;
            std::uint64_t operations = 0;
            std::uint32_t place = 0; // among those of the brick in its step, from 1; 0: in no step
        };
        std::vector<Call> calls;
        std::map<std::uint16_t, std::uint64_t> names;
    };
    struct Found { // in one scope
        std::uint64_t operations = 0, by_launch = 0;
        std::int64_t sum_ns = 0, covered_ns = 0;
        std::int64_t first_ns = 0, last_ns = 0;
        std::vector<std::uint32_t> which;
    };
    /// Streams that a lane was laid on.
    struct Stream {
        const DeviceLane* lane = nullptr;
        std::vector<std::uint32_t> by_middle; // operations
        std::vector<std::uint8_t> place;      // of each operation: Place
    };
    enum Place : std::uint8_t { outside, between, inside };

    Stream& stream_of(const DeviceLane& lane);
    void mark_between(const DeviceLane& lane, Stream& stream, const LaneClock& clock) const;
    void find_by_time(const DeviceInterval& scope, const Stream& stream, const LaneClock& clock, Found& found) const;
    void find_by_launch(const DeviceLane& lane, Stream& stream, const LaneClock& clock,
                        std::vector<Found>& found) const;
    void count(const DeviceLane& lane, const DeviceInterval& scope, const Stream& stream, const Found& found,
               std::uint32_t place);
    void count_streams(AuditReport& report);
    void follow(AuditReport& report);

    resolve::NameTable our_names_, trace_names_;
    const DeviceSide& trace_;
    std::int64_t trace_first_, trace_last_;
    double trace_tick_ns_;
    std::map<std::uint32_t, Stream> streams_;                     // by track
    std::map<std::pair<std::string, std::string>, Brick> bricks_; // by source and name
    bool follows_ = false;
    std::uint64_t calls_outside_ = 0;
    double ours_ns_ = 0, span_ns_ = 0, covered_ns_ = 0, all_ours_ns_ = 0; // of outermost scopes
};

} // namespace plumb::audit

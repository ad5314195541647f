// SPDX-License-Identifier: Apache-2.0
// How two clocks that saw the same device lie over each other: a scope ends where the last operation in it ends, so the right line
// between the clocks is the one that brings the ends of our scopes onto ends of operations. Found without knowing either clock;
// what fits by chance is refused. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "answers/audit/device_side.hpp"

namespace plumb::audit {

/// A moment of ours on the clock of the trace, and back.
struct ClockLine {
    double offset_ns = 0; // at anchor_ns
    double slope = 0;     // of the offset
    std::int64_t anchor_ns = 0;

    [[nodiscard]] double shift(std::int64_t ours) const {
        return offset_ns + slope * static_cast<double>(ours - anchor_ns);
    }
    [[nodiscard]] std::int64_t to_trace(std::int64_t ours) const;
};

/// One stream of the trace, by the ends of its operations.
class StreamEnds {
  public:
    explicit StreamEnds(const std::vector<DeviceInterval>& operations);

    struct Distance {
        double ns = 0;    // to the nearest end, below 0 where that is later
        double share = 1; // of half the room between ends: by chance anything from 0 to 1 alike
    };
    /// Absent before the first and after the last operation.
    [[nodiscard]] std::optional<Distance> distance(std::int64_t at, std::size_t& hint) const;
    [[nodiscard]] std::size_t size() const { return ends_.size(); }
    [[nodiscard]] std::int64_t operator[](std::size_t index) const { return ends_[index]; }
    [[nodiscard]] std::size_t first_at_or_after(std::int64_t at) const;

  private:
    std::vector<std::int64_t> ends_;
    std::vector<std::int64_t> room_; // of the operation that ends there
};

/// Ends of the innermost scopes of one of our lanes, ascending, and those of each step.
struct LaneEnds {
    std::vector<std::int64_t> all;
    struct Range {
        std::size_t from = 0, to = 0; // in `all`
        std::int64_t begin_ns = 0;
    };
    std::vector<Range> steps; // where there are no steps, of some scopes

    /// `intervals`: of the lane, by begin.
    explicit LaneEnds(const std::vector<DeviceInterval>& intervals);
};

/// How well a line brings ends of ours onto ends of a stream.
struct Fit {
    ClockLine line;
    std::uint64_t ends = 0;     // of ours, within the stream's time
    std::uint64_t agreeing = 0; // of those, nearer than chance would have it
    double residual_ns = 0;     // median distance of those
    double choices = 0;         // logarithm of how many ways were tried for these ends, beside the line
    /// Of most ends, and not by chance: of so many lines with as good a fit one is none, where any line was possible.
    [[nodiscard]] bool holds(double chance = 1e-12) const;
};

/// `near_ns`: the offset as calendars have it, good to `window_ns`; absent: anything.
[[nodiscard]] std::optional<Fit> find_line(const LaneEnds& ours, const StreamEnds& stream,
                                           std::optional<double> near_ns, double window_ns);
inline constexpr double chance_of_known_line = 1e-3;
/// Starts with a line that is nearly right: another lane of the same clocks.
[[nodiscard]] Fit refine_line(const LaneEnds& ours, const StreamEnds& stream, const ClockLine& line);

/// A lane of ours on the clock of the trace. The line holds for the run; where each step lies on it may be off by some microseconds
/// (replays are placed one by one), so the steps are laid anew, each as a whole.
class LaneClock {
  public:
    LaneClock(const LaneEnds& ours, const StreamEnds& stream, const ClockLine& line);

    [[nodiscard]] std::int64_t to_trace(std::int64_t ours) const;
    /// A moment of the host.
    [[nodiscard]] std::int64_t host_to_trace(std::int64_t ours) const { return line_.to_trace(ours); }
    /// How far steps lie from the line: 19 of 20 less than this.
    [[nodiscard]] double placement_ns() const;

  private:
    struct Piece {
        std::int64_t from_ns = 0;
        std::int64_t shift_ns = 0;
    };
    ClockLine line_;
    std::vector<Piece> pieces_;
};

} // namespace plumb::audit

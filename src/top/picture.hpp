// SPDX-License-Identifier: Apache-2.0
// One look at a run as lines of text, for a terminal of any size or for a pipe. Figures are formatted by the functions that format
// them in `plumb report` and `plumb wall`. Pure functions of a View; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "top/window.hpp"

namespace plumb::top {

/// What one look showed, for the lines of the last minute. Absent: nothing was recorded, or it was not known.
struct Moment {
    std::optional<double> tokens_per_second;
    std::optional<double> idle_share;
    std::optional<double> drops;
    std::map<std::string, double> wall_shares; // by marked name of the brick
};

struct View {
    std::string recording;
    std::uint32_t pid = 0;
    Account account;
    std::vector<std::pair<std::string, std::uint64_t>> drops; // of the whole run, by reason
    std::deque<Moment> history;                               // the newest last; empty: a snapshot
    std::optional<double> running_seconds;                    // since the run began
    std::optional<double> silent_seconds;                     // since anything was recorded, where that is worth saying
    bool ended = false;
};

inline constexpr std::size_t history_length = 60;

/// The phase that the table is about: that with the longest time in the span. Null: there is no complete step.
[[nodiscard]] const PhaseSummary* main_phase(const Report& report);
/// What a look adds to the history. `drops`: how many more than at the look before.
[[nodiscard]] Moment moment_of(const Account& account, std::uint64_t drops);

struct Size {
    std::size_t columns = 100;
    std::size_t rows = 0; // 0: as many as it takes
};
/// Lines without their newlines, none wider than the columns, no more than the rows. `keys`: the last one says how to leave.
[[nodiscard]] std::vector<std::string> picture_of(const View& view, Size size, bool color, bool keys);
/// `values` as a line of so many columns, the newest at its right end, drawn from 0 to the largest, or to `full` where that is more.
[[nodiscard]] std::string sparkline(const std::vector<std::optional<double>>& values, std::size_t columns,
                                    double full = 0);

} // namespace plumb::top

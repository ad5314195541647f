// SPDX-License-Identifier: Apache-2.0
// A line for each lane: how busy it was, from the step's begin to its end.
#include <algorithm>

#include "answers/timeline/timeline.hpp"
#include "page/heat.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 24;
constexpr char levels[] = {' ', '.', ':', '+', '#'};

/// The share of each column in which a leaf of the lane ran.
std::vector<double> columns_of(const TimelineLane& lane, double span_ns, std::size_t columns) {
    std::vector<double> busy(columns, 0);
    const double width = span_ns / static_cast<double>(columns);
    if (!(width > 0)) {
        return busy;
    }
    for (const auto& [begin, end] : lane.busy) {
        auto from = static_cast<double>(begin);
        const auto until = static_cast<double>(end);
        for (std::size_t column = std::min(static_cast<std::size_t>(from / width), columns - 1); from < until;
             ++column) {
            const double next =
                column + 1 == columns ? until : std::min(until, static_cast<double>(column + 1) * width);
            busy[column] += std::max(next - from, 0.0) / width;
            from = std::max(from, next);
        }
    }
    return busy;
}

std::string bar(const std::vector<double>& busy) {
    std::string line;
    for (const double share : busy) {
        line += levels[share <= 0 ? 0 : std::min(1 + static_cast<std::size_t>(share * 4), sizeof levels - 1)];
    }
    return line;
}

/// The slowest by its period may be a short step that something was waited for.
std::string chosen_by(const TimelineStep& step) {
    return step.choice == TimelineChoice::asked    ? ""
           : step.choice == TimelineChoice::median ? ", the median by length"
           : step.place == 1                       ? ", the slowest by period"
                             : ", number " + std::to_string(step.place) + " of the slowest by period";
}

} // namespace

Page page_of(const TimelineReport& report, const TextOptions& options) {
    Page page;
    const std::size_t before = name_columns + 10;
    const std::size_t room = std::max<std::size_t>(options.width > before + 1 ? options.width - before - 1 : 0, 20);
    for (const TimelineStep& step : report.steps) {
        if (&step != &report.steps.front()) {
            page.blank();
        }
        page.line("step " + std::to_string(step.step) + ", " + word_of(step.phase) + chosen_by(step), Tone::heading);
        page.line("period " + fixed(step.period_ns / 1e6, 3) + " ms, " + fixed(step.before_ns / 1e6, 3) +
                  " ms of it before the step began; length " + fixed(step.span_ns / 1e6, 3) + " ms, critical path " +
                  fixed(step.path_ns / 1e6, 3) + " ms");
        for (const TimelineLane& lane : step.lanes) {
            const double share = step.span_ns > 0 ? lane.busy_ns / step.span_ns : 0;
            page.line(padded(printable(lane.name, name_columns - 1), name_columns) +
                      padded_left(fixed(share * 100, 1) + " %", 8) + "  " + bar(columns_of(lane, step.span_ns, room)));
        }
        if (step.left_out != 0) {
            page.note(grouped(step.left_out) + " of the shortest spans are left out");
        }
        page.notes(step.notes);
    }
    page.line("each column: nothing ran ' ', up to a quarter of it '.', half ':', three quarters '+', more '#'",
              Tone::faint);
    return page;
}

} // namespace plumb

// SPDX-License-Identifier: Apache-2.0
#include "answers/audit/tally.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/figure.hpp"

namespace plumb::audit {
namespace {

using stats::absent;
using stats::measured;

constexpr std::size_t most_names = 8, most_leftovers = 64;
constexpr std::size_t most_nested = 32;   // scopes around one launch that are looked through
constexpr std::size_t least_followed = 8; // calls of one place in the step
constexpr double least_follow = 0.5;      // of calls that are the same; of others none
constexpr double largest_error = 0.2;     // of that
constexpr double counts_from = 0.01;      // of the time: the share from which on a brick may be the worst

std::int64_t middle_of(const DeviceInterval& interval) { return interval.begin_ns + interval.duration_ns() / 2; }

double quantile(std::vector<double>& sorted, double q) {
    const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5);
    return sorted[at];
}

} // namespace

Tally::Tally(const DeviceSide& ours, const DeviceSide& trace)
    : our_names_(ours.facts->names), trace_names_(trace.facts->names), trace_(trace), trace_first_(trace.first_ns()),
      trace_last_(trace.last_ns()), trace_tick_ns_(trace.tick_ns()) {}

Tally::Stream& Tally::stream_of(const DeviceLane& lane) {
    Stream& stream = streams_[lane.info.id];
    if (stream.lane == nullptr) {
        stream.lane = &lane;
        stream.place.assign(lane.intervals.size(), outside);
        stream.by_middle.resize(lane.intervals.size());
        for (std::uint32_t i = 0; i < stream.by_middle.size(); ++i) {
            stream.by_middle[i] = i;
        }
        std::stable_sort(stream.by_middle.begin(), stream.by_middle.end(), [&lane](std::uint32_t a, std::uint32_t b) {
            return middle_of(lane.intervals[a]) < middle_of(lane.intervals[b]);
        });
    }
    return stream;
}

namespace {

/// Operations whose middle lies within [from, to).
template <class Visit>
void each_within(const DeviceLane& lane, const std::vector<std::uint32_t>& by_middle, std::int64_t from,
                 std::int64_t to, Visit&& visit) {
    auto at = std::lower_bound(by_middle.begin(), by_middle.end(), from, [&lane](std::uint32_t index, std::int64_t ns) {
        return middle_of(lane.intervals[index]) < ns;
    });
    for (; at != by_middle.end() && middle_of(lane.intervals[*at]) < to; ++at) {
        visit(*at);
    }
}

} // namespace

/// Between the first scope and the last one of timed steps that follow each other.
void Tally::mark_between(const DeviceLane& lane, Stream& stream, const LaneClock& clock) const {
    const auto mark = [&](std::int64_t from, std::int64_t to) {
        each_within(*stream.lane, stream.by_middle, clock.to_trace(from), clock.to_trace(to), [&](std::uint32_t index) {
            stream.place[index] = std::max<std::uint8_t>(stream.place[index], between);
        });
    };
    std::int64_t from = lane.intervals.front().begin_ns;
    std::int64_t to = from;
    std::uint64_t step = lane.intervals.front().step;
    for (const DeviceInterval& scope : lane.intervals) {
        const bool next = scope.step != resolve::no_step && step != resolve::no_step && scope.step == step + 1;
        if (scope.step != step && !next) {
            mark(from, to);
            from = scope.begin_ns;
        }
        step = scope.step;
        to = std::max(to, scope.end_ns);
    }
    mark(from, to);
}

void Tally::find_by_time(const DeviceInterval& scope, const Stream& stream, const LaneClock& clock,
                         Found& found) const {
    const std::int64_t from = clock.to_trace(scope.begin_ns);
    const std::int64_t to = clock.to_trace(scope.end_ns);
    std::int64_t covered_to = from;
    each_within(*stream.lane, stream.by_middle, from, to, [&](std::uint32_t index) {
        const DeviceInterval& operation = stream.lane->intervals[index];
        found.first_ns = found.operations == 0 ? operation.begin_ns : std::min(found.first_ns, operation.begin_ns);
        found.last_ns = found.operations == 0 ? operation.end_ns : std::max(found.last_ns, operation.end_ns);
        ++found.operations;
        found.sum_ns += operation.duration_ns();
        const std::int64_t begin = std::max(operation.begin_ns, covered_to);
        const std::int64_t end = std::min(operation.end_ns, to);
        found.covered_ns += std::max<std::int64_t>(end - begin, 0);
        covered_to = std::max(covered_to, end);
        found.which.push_back(index);
    });
}

/// Operations that no scope covers, where the host launched them within the launch of a scope.
void Tally::find_by_launch(const DeviceLane& lane, Stream& stream, const LaneClock& clock,
                           std::vector<Found>& found) const {
    std::vector<std::uint32_t> launched;
    for (std::uint32_t i = 0; i < lane.intervals.size(); ++i) {
        if (lane.intervals[i].launched()) {
            launched.push_back(i);
        }
    }
    if (launched.empty()) {
        return;
    }
    std::stable_sort(launched.begin(), launched.end(), [&lane](std::uint32_t a, std::uint32_t b) {
        return lane.intervals[a].launch_begin_ns < lane.intervals[b].launch_begin_ns;
    });
    for (std::uint32_t index = 0; index < stream.place.size(); ++index) {
        const DeviceInterval& operation = stream.lane->intervals[index];
        if (stream.place[index] == inside || !operation.launched()) {
            continue;
        }
        auto at = std::upper_bound(launched.begin(), launched.end(), operation.launch_begin_ns,
                                   [&](std::int64_t ns, std::uint32_t scope) {
                                       return ns < clock.host_to_trace(lane.intervals[scope].launch_begin_ns);
                                   });
        for (std::size_t looked = 0; at != launched.begin() && looked < most_nested; ++looked) {
            --at;
            if (clock.host_to_trace(lane.intervals[*at].launch_end_ns) < operation.launch_end_ns) {
                continue;
            }
            Found& in = found[*at];
            in.first_ns = in.operations == 0 ? operation.begin_ns : std::min(in.first_ns, operation.begin_ns);
            in.last_ns = in.operations == 0 ? operation.end_ns : std::max(in.last_ns, operation.end_ns);
            ++in.operations;
            ++in.by_launch;
            in.sum_ns += operation.duration_ns();
            in.which.push_back(index);
            stream.place[index] = inside;
        }
    }
}

void Tally::count(const DeviceLane& lane, const DeviceInterval& scope, const Stream& stream, const Found& found,
                  std::uint32_t place) {
    const std::string name = our_names_.text(scope.name);
    Brick& brick = bricks_[{lane.info.source, name}];
    brick.row.brick = name;
    brick.row.source = lane.info.source;
    ++brick.row.calls;
    brick.row.launch_wait += scope.launch_wait ? 1 : 0;
    const auto ours = static_cast<double>(scope.duration_ns());
    brick.all_ours += ours;
    brick.covered += static_cast<double>(found.covered_ns);
    if (scope.outermost) {
        all_ours_ns_ += ours;
        covered_ns_ += static_cast<double>(found.covered_ns);
    }
    if (found.operations == 0) {
        return;
    }
    const auto span = static_cast<double>(found.last_ns - found.first_ns);
    ++brick.row.matched;
    brick.row.operations += found.operations;
    brick.row.by_launch += found.by_launch;
    brick.ours += ours;
    brick.sum += static_cast<double>(found.sum_ns);
    brick.span += span;
    brick.calls.push_back({span, ours, found.operations, place});
    for (const std::uint32_t index : found.which) {
        ++brick.names[stream.lane->intervals[index].name];
    }
    if (scope.outermost) {
        ours_ns_ += ours;
        span_ns_ += span;
    }
}

void Tally::add(const DeviceLane& lane, const DeviceLane& on, const LaneClock& clock) {
    Stream& stream = stream_of(on);
    mark_between(lane, stream, clock);
    std::vector<Found> found(lane.intervals.size());
    std::vector<bool> within(lane.intervals.size());
    for (std::size_t i = 0; i < lane.intervals.size(); ++i) {
        const DeviceInterval& scope = lane.intervals[i];
        within[i] = clock.to_trace(scope.begin_ns) < trace_last_ && clock.to_trace(scope.end_ns) > trace_first_;
        if (!within[i]) {
            ++calls_outside_;
            continue;
        }
        find_by_time(scope, stream, clock, found[i]);
        for (const std::uint32_t index : found[i].which) {
            stream.place[index] = inside;
        }
    }
    find_by_launch(lane, stream, clock, found);
    std::map<std::uint16_t, std::uint32_t> places; // of each brick in the step so far
    std::uint64_t step = resolve::no_step;
    for (std::size_t i = 0; i < lane.intervals.size(); ++i) {
        const DeviceInterval& scope = lane.intervals[i];
        if (scope.step != step) {
            places.clear();
            step = scope.step;
        }
        const std::uint32_t place = step == resolve::no_step ? 0 : ++places[scope.name];
        if (within[i] || found[i].operations != 0) {
            count(lane, scope, stream, found[i], place);
        }
    }
}

void Tally::count_streams(AuditReport& report) {
    std::map<std::pair<std::string, std::string>, AuditLeftover> left; // by stream and name
    double between_ns = 0;
    double inside_ns = 0;
    for (const DeviceLane& lane : trace_.lanes) {
        report.operations += lane.intervals.size();
        const auto found = streams_.find(lane.info.id);
        if (found == streams_.end()) {
            report.elsewhere += lane.intervals.size();
            continue;
        }
        for (std::size_t i = 0; i < lane.intervals.size(); ++i) {
            const DeviceInterval& operation = lane.intervals[i];
            const auto ns = static_cast<double>(operation.duration_ns());
            switch (found->second.place[i]) {
            case inside:
                ++report.inside;
                inside_ns += ns;
                break;
            case between: {
                ++report.not_covered;
                between_ns += ns;
                AuditLeftover& row = left[{lane.info.name, trace_names_.text(operation.name)}];
                row.stream = lane.info.name;
                row.name = trace_names_.text(operation.name);
                ++row.operations;
                row.ns += ns;
                break;
            }
            default:
                ++report.outside;
            }
        }
    }
    for (auto& [key, row] : left) {
        report.leftovers.push_back(std::move(row));
    }
    std::stable_sort(report.leftovers.begin(), report.leftovers.end(),
                     [](const AuditLeftover& a, const AuditLeftover& b) { return a.ns > b.ns; });
    report.leftovers.resize(std::min(report.leftovers.size(), most_leftovers));
    const double all = between_ns + inside_ns;
    report.uncovered = all > 0 ? measured(between_ns / all) : absent("no operation runs in or between our scopes");
}

/// Where a call takes longer in the trace than that of the same place in other steps, ours must too: how much of that they follow.
/// Far deviations count as usual ones, lest one call say it all.
void Tally::follow(AuditReport& report) {
    double xx = 0;
    double xy = 0;
    double yy = 0;
    double n = 0;
    const auto add = [&](std::vector<Brick::Call> calls) {
        // Where the trace lost some of its operations it says nothing of a call.
        std::uint64_t whole = 0;
        for (const Brick::Call& call : calls) {
            whole = std::max(whole, call.operations);
        }
        std::erase_if(calls, [whole](const Brick::Call& call) { return call.operations != whole; });
        if (calls.size() < least_followed) {
            return;
        }
        std::vector<double> spans;
        std::vector<double> ours;
        for (const Brick::Call& call : calls) {
            spans.push_back(call.span);
            ours.push_back(call.ours);
        }
        std::sort(spans.begin(), spans.end());
        std::sort(ours.begin(), ours.end());
        const double usual =
            1.5 * std::max(quantile(spans, 0.75) - quantile(spans, 0.25), quantile(ours, 0.75) - quantile(ours, 0.25));
        for (const Brick::Call& call : calls) {
            const double x = std::clamp(call.span - quantile(spans, 0.5), -usual, usual);
            const double y = std::clamp(call.ours - quantile(ours, 0.5), -usual, usual);
            xx += x * x;
            xy += x * y;
            yy += y * y;
            n += 1;
        }
    };
    for (auto& [key, brick] : bricks_) {
        std::map<std::uint32_t, std::vector<Brick::Call>> places;
        for (const Brick::Call& call : brick.calls) {
            places[call.place].push_back(call);
        }
        for (const auto& [place, calls] : places) {
            if (place != 0) {
                add(calls);
            }
        }
    }
    // A span is the difference of two times in whole ticks, whose own variation ours cannot follow.
    const double seen = xx - n * trace_tick_ns_ * trace_tick_ns_ / 6;
    const double slope = seen > 0 ? xy / seen : 0;
    const double error = seen > 0 ? std::sqrt(std::max(yy - xy * xy / xx, 0.0) / n / seen) * (xx / seen) : 1;
    if (n < 4 * least_followed || error > largest_error || seen < xx / 2) {
        report.follows = absent("single calls vary too little for that");
        return;
    }
    report.follows = measured(slope);
    follows_ = slope - 4 * error > least_follow / 2;
    if (slope + 3 * error < least_follow) {
        report.fits = false;
        report.reason =
            "operations end where our scopes do, but calls that take longer in the trace take no longer in the "
            "recording: the trace is of another run of the same work";
    }
}

void Tally::finish(AuditReport& report) {
    follow(report);
    if (!report.fits) {
        return;
    }
    count_streams(report);
    report.calls_outside = calls_outside_;
    const char* const none = "no operation of the trace is in its calls";
    double total_span = 0;
    for (auto& [key, brick] : bricks_) {
        AuditRow& row = brick.row;
        row.total_span_ns = brick.span;
        total_span = std::max(total_span, span_ns_);
        row.covered = brick.all_ours > 0 ? measured(brick.covered / brick.all_ours) : absent("its calls take no time");
        if (row.matched == 0) {
            row.ours_ns = row.sum_ns = row.span_ns = row.error_ns = row.error = row.median_error_ns =
                row.least_error_ns = row.most_error_ns = absent(none);
        } else {
            const auto calls = static_cast<double>(row.matched);
            row.ours_ns = measured(brick.ours / calls);
            row.sum_ns = measured(brick.sum / calls);
            row.span_ns = measured(brick.span / calls);
            row.error_ns = measured((brick.ours - brick.span) / calls);
            row.error = brick.span > 0 ? measured((brick.ours - brick.span) / brick.span)
                                       : absent("its operations take no time in the trace");
            std::vector<double> errors;
            for (const Brick::Call& call : brick.calls) {
                errors.push_back(call.ours - call.span);
            }
            std::sort(errors.begin(), errors.end());
            row.least_error_ns = measured(quantile(errors, 0.05));
            row.median_error_ns = measured(quantile(errors, 0.5));
            row.most_error_ns = measured(quantile(errors, 0.95));
        }
        for (const auto& [name, count] : brick.names) {
            row.names.emplace_back(trace_names_.text(name), count);
        }
        std::stable_sort(row.names.begin(), row.names.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        row.names.resize(std::min(row.names.size(), most_names));
        report.rows.push_back(std::move(row));
    }
    std::stable_sort(report.rows.begin(), report.rows.end(),
                     [](const AuditRow& a, const AuditRow& b) { return a.total_span_ns > b.total_span_ns; });
    const bool any = span_ns_ > 0;
    report.ours_ns = any ? measured(ours_ns_) : absent(none);
    report.span_ns = any ? measured(span_ns_) : absent(none);
    report.error = any ? measured((ours_ns_ - span_ns_) / span_ns_) : absent(none);
    report.covered = all_ours_ns_ > 0 ? measured(covered_ns_ / all_ours_ns_) : absent(none);
    double worst = -1;
    for (const AuditRow& row : report.rows) {
        if (row.error.value && row.total_span_ns >= counts_from * span_ns_ && std::fabs(*row.error.value) > worst) {
            worst = std::fabs(*row.error.value);
            report.worst = row.brick;
            report.worst_source = row.source;
        }
    }
    if (report.max_error && any) {
        const bool beyond = worst > *report.max_error || std::fabs(*report.error.value) > *report.max_error;
        report.verdict = beyond ? Outcome::fail : Outcome::pass;
    } else if (any) {
        report.verdict = Outcome::pass;
    }
}

} // namespace plumb::audit

// SPDX-License-Identifier: Apache-2.0
#include "answers/audit/clock_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::audit {
namespace {

constexpr double agrees = 0.2;           // of the room: by chance one end in five
constexpr double least_share = 0.6;      // of ends that agree
constexpr double room_of_duration = 1.5; // an end in idle time is as far from the others as its operation is long
constexpr std::size_t first_look = 8, second_look = 32, third_look = 256;
constexpr double first_limit = 0.5, second_limit = 0.47; // of a mean; by chance 0.67
constexpr std::size_t most_candidates = 4096, most_grown = 24;
constexpr std::size_t most_points = 4096; // of one fit
constexpr std::size_t places = 5, keys = 4;
constexpr std::size_t most_of_piece = 64; // scopes, where there are no steps
constexpr std::size_t least_of_piece = 4; // ends that say where a step lies
constexpr std::size_t piece_keys = 6;
constexpr std::size_t most_steps = 48;  // that one fit looks at
constexpr std::size_t least_probe = 12; // ends
constexpr std::size_t most_by_step = 6; // lines that are tried step by step
constexpr std::size_t most_ranked = 64; // of each place, before
constexpr std::size_t steps_around = 3;
constexpr double farthest_ns = 100'000; // that a step lies from the line
constexpr double far_costs = 0.05;      // share that the farthest must be better by
constexpr double plain_to_see = 0.8;    // of all ends
constexpr double steepest = 1e-3;       // two clocks of one machine

/// Mean of the roots: many ends that agree to the nanosecond, and some that do not at all, are better than all of them nearly.
/// `start`: where the first of them was found last time, for offsets that grow. Beyond `limit` no more are looked at.
double mean_share(const std::vector<std::int64_t>& ours, std::size_t from, std::size_t count, const StreamEnds& stream,
                  double offset, std::size_t& start, double limit = 1) {
    double sum = 0;
    std::size_t hint = start;
    const double most = limit * static_cast<double>(count);
    const std::int64_t by = std::llround(offset);
    for (std::size_t i = from; i < from + count && sum <= most; ++i) {
        const auto at = stream.distance(ours[i] + by, hint);
        sum += at ? std::sqrt(at->share) : 1;
        start = i == from ? hint : start;
    }
    return sum / static_cast<double>(count);
}

struct OffsetGuess {
    double share = 1;
    double offset = 0;
    std::size_t at = 0; // index of the end of ours that gave it
};

void keep_best(std::vector<OffsetGuess>& candidates, std::size_t most) {
    std::sort(candidates.begin(), candidates.end(),
              [](const OffsetGuess& a, const OffsetGuess& b) { return a.share < b.share; });
    if (candidates.size() > most) {
        candidates.resize(most);
    }
}

/// One end in a stretch of consecutive ones is laid on each end of the stream.
void collect(const std::vector<std::int64_t>& ours, std::size_t from, std::size_t count, const StreamEnds& stream,
             std::optional<double> near, double window, std::vector<OffsetGuess>& to) {
    const std::size_t few = std::min(first_look, count);
    for (std::size_t key = 0; key < std::min(keys, count); ++key) {
        const std::size_t at = from + key * count / std::min(keys, count);
        std::size_t i = 0;
        std::size_t end = stream.size();
        if (near) {
            const double middle = static_cast<double>(ours[at]) + *near;
            i = stream.first_at_or_after(static_cast<std::int64_t>(middle - window));
            end = stream.first_at_or_after(static_cast<std::int64_t>(middle + window));
        }
        std::size_t start = 0;
        for (; i < end; ++i) {
            const auto offset = static_cast<double>(stream[i] - ours[at]);
            const std::size_t first = std::min(at, from + count - few);
            if (mean_share(ours, first, few, stream, offset, start, first_limit) > first_limit) {
                continue;
            }
            std::size_t all = 0;
            const double share = mean_share(ours, from, count, stream, offset, all, second_limit);
            if (share <= second_limit) {
                to.push_back({share, offset, at});
            }
        }
        if (to.size() > 4 * most_candidates) {
            keep_best(to, most_candidates);
        }
    }
    keep_best(to, most_candidates);
}

struct Point {
    double at = 0, distance = 0, share = 1;
};

std::vector<Point> points_of(const std::vector<std::int64_t>& ours, std::size_t from, std::size_t to,
                             const StreamEnds& stream, const ClockLine& line) {
    std::vector<Point> points;
    const std::size_t every = std::max<std::size_t>((to - from) / most_points, 1);
    std::size_t hint = 0;
    for (std::size_t i = from; i < to; i += every) {
        if (const auto found = stream.distance(line.to_trace(ours[i]), hint)) {
            points.push_back({static_cast<double>(ours[i] - line.anchor_ns), found->ns, found->share});
        }
    }
    return points;
}

double median_of(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Turns the line by the distances that agree, those far from their median left out. False: too few.
bool straighten(ClockLine& line, const std::vector<Point>& points, std::size_t for_slope = second_look) {
    std::vector<double> distances;
    for (const Point& point : points) {
        if (point.share < 2 * agrees) {
            distances.push_back(point.distance);
        }
    }
    if (distances.size() < std::min(first_look, for_slope)) {
        return false;
    }
    const double middle = median_of(distances);
    for (double& distance : distances) {
        distance = std::fabs(distance - middle);
    }
    const double limit = 4 * median_of(distances) + 1;
    double n = 0;
    double sx = 0;
    double sy = 0;
    double sxx = 0;
    double sxy = 0;
    for (const Point& point : points) {
        if (point.share < 2 * agrees && std::fabs(point.distance - middle) <= limit) {
            n += 1;
            sx += point.at;
            sy += point.distance;
        }
    }
    const double mx = sx / n;
    const double my = sy / n;
    for (const Point& point : points) {
        if (point.share < 2 * agrees && std::fabs(point.distance - middle) <= limit) {
            sxx += (point.at - mx) * (point.at - mx);
            sxy += (point.at - mx) * (point.distance - my);
        }
    }
    // distance: how far beyond the end of the stream ours lies.
    const double slope = sxx > 0 && n >= static_cast<double>(for_slope) ? -sxy / sxx : 0;
    if (std::fabs(line.slope + slope) > steepest) {
        return false;
    }
    line.slope += slope;
    line.offset_ns += -my - slope * mx;
    return true;
}

Fit judged(const std::vector<std::int64_t>& ours, const StreamEnds& stream, const ClockLine& line) {
    Fit fit;
    fit.line = line;
    std::vector<double> distances;
    std::size_t hint = 0;
    for (const std::int64_t end : ours) {
        const auto found = stream.distance(line.to_trace(end), hint);
        if (!found) {
            continue;
        }
        ++fit.ends;
        if (found->share < agrees) {
            ++fit.agreeing;
            distances.push_back(std::fabs(found->ns));
        }
    }
    fit.residual_ns = median_of(std::move(distances));
    return fit;
}

/// From a stretch whose offset is known to all of the run, doubled each time: the slope becomes known as fast as it is needed.
Fit grown(const std::vector<std::int64_t>& ours, const StreamEnds& stream, const OffsetGuess& candidate,
          std::size_t count) {
    ClockLine line{candidate.offset, 0, ours[candidate.at]};
    std::size_t from = candidate.at;
    std::size_t to = candidate.at + 1;
    for (std::size_t reach = count; from != 0 || to != ours.size(); reach *= 2) {
        from = candidate.at - std::min(candidate.at, reach);
        to = std::min(candidate.at + reach, ours.size());
        for (int round = 0; round < 2; ++round) {
            if (!straighten(line, points_of(ours, from, to, stream, line))) {
                return judged(ours, stream, line);
            }
        }
    }
    return judged(ours, stream, line);
}

/// Where one step lies: what brings its ends onto those of the stream.
struct StepShift {
    double ns = 0;
    double share = 1;              // mean, then
    double choices = 0;            // logarithm of how many were tried
    std::vector<double> distances; // of ends that agree, then
};

StepShift shift_of(const std::vector<std::int64_t>& ends, const StreamEnds& stream) {
    StepShift best;
    std::size_t start = 0;
    best.share = mean_share(ends, 0, ends.size(), stream, 0, start);
    double cost = best.share;
    double tried = 1;
    const std::size_t few = std::min(first_look, ends.size());
    for (std::size_t key = 0; key < piece_keys && ends.size() >= least_of_piece; ++key) {
        const std::int64_t at = ends[key * (ends.size() - 1) / (piece_keys - 1)];
        std::size_t i = stream.first_at_or_after(at - static_cast<std::int64_t>(farthest_ns));
        for (; i < stream.size() && static_cast<double>(stream[i] - at) < farthest_ns; ++i, ++tried) {
            const auto offset = static_cast<double>(stream[i] - at);
            if (mean_share(ends, 0, few, stream, offset, start, first_limit) > first_limit) {
                continue;
            }
            const double share = mean_share(ends, 0, ends.size(), stream, offset, start);
            if (share + far_costs * std::fabs(offset) / farthest_ns < cost) {
                cost = share + far_costs * std::fabs(offset) / farthest_ns;
                best.share = share;
                best.ns = offset;
            }
        }
    }
    best.choices = std::log(tried);
    std::vector<double> distances;
    std::size_t hint = 0;
    for (const std::int64_t end : ends) {
        const auto found = stream.distance(end + static_cast<std::int64_t>(best.ns), hint);
        if (found && found->share < 2 * agrees) {
            distances.push_back(found->ns);
        }
    }
    best.ns -= distances.size() < least_of_piece ? 0 : median_of(std::move(distances));
    hint = 0;
    for (const std::int64_t end : ends) {
        const auto found = stream.distance(end + static_cast<std::int64_t>(std::llround(best.ns)), hint);
        if (found && found->share < agrees) {
            best.distances.push_back(std::fabs(found->ns));
        }
    }
    return best;
}

std::vector<std::int64_t> ends_of_step(const LaneEnds& ours, LaneEnds::Range step, const ClockLine& line) {
    std::vector<std::int64_t> ends;
    const std::size_t every = (step.to - step.from) / most_of_piece + 1;
    for (std::size_t i = step.from; i < step.to; i += every) {
        ends.push_back(line.to_trace(ours.all[i]));
    }
    return ends;
}

Fit judged_by_step(const LaneEnds& ours, const StreamEnds& stream, const ClockLine& line) {
    Fit fit;
    fit.line = line;
    const std::size_t every = ours.steps.size() / most_steps + 1;
    std::vector<double> distances;
    for (std::size_t i = 0; i < ours.steps.size(); i += every) {
        const std::vector<std::int64_t> ends = ends_of_step(ours, ours.steps[i], line);
        std::size_t hint = 0;
        if (ends.empty() || !stream.distance(ends.front(), hint) || !stream.distance(ends.back(), hint)) {
            continue;
        }
        const StepShift shift = shift_of(ends, stream);
        fit.ends += ends.size();
        fit.agreeing += shift.distances.size();
        fit.choices += shift.choices;
        distances.insert(distances.end(), shift.distances.begin(), shift.distances.end());
    }
    fit.residual_ns = median_of(std::move(distances));
    return fit;
}

std::size_t step_of(const LaneEnds& ours, const OffsetGuess& candidate) {
    const auto found = std::find_if(ours.steps.begin(), ours.steps.end(),
                                    [&](const LaneEnds::Range& step) { return step.to > candidate.at; });
    return static_cast<std::size_t>(found - ours.steps.begin());
}

/// Of the steps around it, each laid anew.
double share_around(const LaneEnds& ours, const StreamEnds& stream, const OffsetGuess& candidate) {
    const ClockLine line{candidate.offset, 0, ours.all[candidate.at]};
    const std::size_t middle = step_of(ours, candidate);
    const std::size_t from = middle - std::min(middle, steps_around);
    const std::size_t to = std::min(middle + steps_around + 1, ours.steps.size());
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) {
        sum += shift_of(ends_of_step(ours, ours.steps[i], line), stream).share;
    }
    return sum / static_cast<double>(to - from);
}

/// As grown(), of steps that lie some way off the line each.
Fit grown_by_step(const LaneEnds& ours, const StreamEnds& stream, const OffsetGuess& candidate) {
    ClockLine line{candidate.offset, 0, ours.all[candidate.at]};
    const std::size_t middle = step_of(ours, candidate);
    bool whole = false;
    for (std::size_t reach = 2; !whole; reach *= 2) {
        const std::size_t from = middle - std::min(middle, reach);
        const std::size_t to = std::min(middle + reach, ours.steps.size());
        whole = from == 0 && to == ours.steps.size();
        std::vector<Point> points;
        const std::size_t every = (to - from) / most_steps + 1;
        for (std::size_t i = from; i < to; i += every) {
            const StepShift shift = shift_of(ends_of_step(ours, ours.steps[i], line), stream);
            const auto at = static_cast<double>(ours.all[ours.steps[i].from] - line.anchor_ns);
            points.push_back({at, -shift.ns, shift.share});
        }
        if (!straighten(line, points, std::min(least_of_piece, to - from))) {
            break;
        }
    }
    return judged_by_step(ours, stream, line);
}

bool is_better(const Fit& fit, const std::optional<Fit>& than) {
    return fit.holds() && (!than || fit.agreeing > than->agreeing ||
                           (fit.agreeing == than->agreeing && fit.residual_ns < than->residual_ns));
}

} // namespace

std::int64_t ClockLine::to_trace(std::int64_t ours) const {
    return ours + static_cast<std::int64_t>(std::llround(shift(ours)));
}

LaneEnds::LaneEnds(const std::vector<DeviceInterval>& intervals) {
    for (std::size_t from = 0; from < intervals.size();) {
        const std::size_t first = all.size();
        const std::uint64_t step = intervals[from].step;
        const std::int64_t begin = intervals[from].begin_ns;
        const std::size_t most = step == resolve::no_step ? from + most_of_piece : intervals.size();
        for (; from < std::min(most, intervals.size()) && intervals[from].step == step; ++from) {
            if (intervals[from].leaf) {
                all.push_back(intervals[from].end_ns);
            }
        }
        if (all.size() != first) {
            steps.push_back({first, all.size(), begin});
        }
    }
    std::sort(all.begin(), all.end());
}

StreamEnds::StreamEnds(const std::vector<DeviceInterval>& operations) {
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
    for (const DeviceInterval& operation : operations) {
        sorted.emplace_back(operation.end_ns, operation.duration_ns());
    }
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [end, duration] : sorted) {
        if (!ends_.empty() && ends_.back() == end) {
            room_.back() = std::max(room_.back(), duration);
            continue;
        }
        ends_.push_back(end);
        room_.push_back(duration);
    }
}

std::size_t StreamEnds::first_at_or_after(std::int64_t at) const {
    return static_cast<std::size_t>(std::lower_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
}

std::optional<StreamEnds::Distance> StreamEnds::distance(std::int64_t at, std::size_t& hint) const {
    // From the last place on, in strides that double: what is asked for next is near.
    std::size_t low = hint;
    if (low >= ends_.size() || ends_[low] >= at) {
        low = 0;
    }
    std::size_t high = low;
    for (std::size_t stride = 1; high < ends_.size() && ends_[high] < at; stride *= 2) {
        low = high;
        high += stride;
    }
    high = std::min(high, ends_.size());
    const auto found = std::lower_bound(ends_.begin() + static_cast<std::ptrdiff_t>(low),
                                        ends_.begin() + static_cast<std::ptrdiff_t>(high), at);
    const auto next = static_cast<std::size_t>(found - ends_.begin());
    hint = next == 0 ? 0 : next - 1;
    if (ends_.empty() || at < ends_.front() - room_.front() || at > ends_.back() + room_.back()) {
        return {};
    }
    const std::size_t before = next == 0 ? 0 : next - 1;
    const std::size_t after = std::min(next, ends_.size() - 1);
    const bool to_before = at - ends_[before] < ends_[after] - at || next == ends_.size();
    const std::size_t nearest = to_before && next != 0 ? before : after;
    double room = room_of_duration * static_cast<double>(room_[nearest]);
    if (before != after) {
        room = std::min(room, static_cast<double>(ends_[after] - ends_[before]));
    }
    Distance made;
    made.ns = static_cast<double>(at - ends_[nearest]);
    made.share = room > 0 ? std::min(1.0, 2 * std::fabs(made.ns) / room) : made.ns == 0 ? 0 : 1;
    return made;
}

bool Fit::holds(double chance) const {
    if (ends < least_of_piece) {
        return false;
    }
    const double share = static_cast<double>(agreeing) / static_cast<double>(ends);
    if (share < least_share) {
        return false;
    }
    // The bound of Chernoff for so many of so many, each by chance one in five.
    const double divergence =
        share * std::log(share / agrees) + (share < 1 ? (1 - share) * std::log((1 - share) / (1 - agrees)) : 0);
    return static_cast<double>(ends) * divergence - choices > -std::log(chance);
}

std::optional<Fit> find_line(const LaneEnds& ours, const StreamEnds& stream, std::optional<double> near_ns,
                             double window_ns) {
    std::optional<Fit> best;
    if (ours.all.size() < first_look || stream.size() < first_look) {
        return best;
    }
    std::vector<OffsetGuess> by_step;
    for (std::size_t place = 0; place < places; ++place) {
        // Ends of one step lie right to each other, those of several need not.
        const std::size_t step = (ours.steps.size() - 1) * (2 * place + 1) / (2 * places);
        const std::size_t least = std::min(least_probe, ours.all.size());
        const std::size_t from = std::min(ours.steps[step].from, ours.all.size() - least);
        const std::size_t count = std::clamp(ours.steps[step].to - from, least, second_look);
        std::vector<OffsetGuess> candidates;
        collect(ours.all, from, count, stream, near_ns, window_ns, candidates);
        const std::size_t few = std::min(candidates.size(), most_ranked); // the best of them stand first
        by_step.insert(by_step.end(), candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(few));
        for (OffsetGuess& candidate : candidates) {
            const std::size_t first = candidate.at - std::min(candidate.at, third_look / 2);
            const std::size_t more = std::min(third_look, ours.all.size() - first);
            std::size_t start = 0;
            candidate.share = mean_share(ours.all, first, more, stream, candidate.offset, start);
        }
        keep_best(candidates, most_grown);
        for (const OffsetGuess& candidate : candidates) {
            const Fit fit = grown(ours.all, stream, candidate, count);
            best = is_better(fit, best) ? fit : best;
        }
        if (best && static_cast<double>(best->agreeing) >= plain_to_see * static_cast<double>(ours.all.size())) {
            return best; // of all that there is; a trace of a part of the run is looked for everywhere
        }
    }
    if (best) {
        return best;
    }
    for (OffsetGuess& candidate : by_step) {
        candidate.share = share_around(ours, stream, candidate);
    }
    keep_best(by_step, most_by_step);
    for (const OffsetGuess& candidate : by_step) {
        const Fit fit = grown_by_step(ours, stream, candidate);
        best = is_better(fit, best) ? fit : best;
    }
    return best;
}

Fit refine_line(const LaneEnds& ours, const StreamEnds& stream, const ClockLine& line) {
    Fit best = judged(ours.all, stream, line);
    ClockLine refined = line;
    for (int round = 0; round < 3; ++round) {
        if (!straighten(refined, points_of(ours.all, 0, ours.all.size(), stream, refined))) {
            break;
        }
    }
    const Fit other = judged(ours.all, stream, refined);
    best = other.agreeing >= best.agreeing ? other : best;
    return best.holds(chance_of_known_line) ? best : judged_by_step(ours, stream, line);
}

LaneClock::LaneClock(const LaneEnds& ours, const StreamEnds& stream, const ClockLine& line) : line_(line) {
    for (const LaneEnds::Range& step : ours.steps) {
        const StepShift shift = shift_of(ends_of_step(ours, step, line), stream);
        pieces_.push_back({step.begin_ns, static_cast<std::int64_t>(std::llround(shift.ns))});
    }
}

std::int64_t LaneClock::to_trace(std::int64_t ours) const {
    const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), ours,
                                        [](std::int64_t ns, const Piece& piece) { return ns < piece.from_ns; });
    return line_.to_trace(ours) + (after == pieces_.begin() ? pieces_.front() : *std::prev(after)).shift_ns;
}

double LaneClock::placement_ns() const {
    std::vector<double> shifts;
    for (const Piece& piece : pieces_) {
        shifts.push_back(std::fabs(static_cast<double>(piece.shift_ns)));
    }
    std::sort(shifts.begin(), shifts.end());
    return shifts[(shifts.size() - 1) * 19 / 20];
}

} // namespace plumb::audit

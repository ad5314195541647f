// SPDX-License-Identifier: Apache-2.0
// Projections, one violated pair after the other, as the perceptron does: where lines exist with room r around them and the start is
// D away from them it ends after (D / r)^2 projections at most.
#include "ranks/fitting_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace plumb::ranks {
namespace {

constexpr int most_of_joint = 8; // projections in a round
constexpr double beyond = 1.9;   // of a violation is corrected, which ends where stopping at the border only comes near
constexpr double tolerance_ns = 1; // begins and ends are whole nanoseconds

/// A line by its values at the first and the last moment of its clock: both matter as much, whatever the length.
struct LineEnds {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    double at_first = 0, at_last = 0; // less `offset` of its line
    [[nodiscard]] double length() const { return static_cast<double>(last - first); }
    [[nodiscard]] double share(std::int64_t moment) const {
        return last > first ? static_cast<double>(moment - first) / length() : 0;
    }
};

struct Extreme {
    double moment = 0; // of the job
    std::int64_t own = 0;
    std::uint32_t domain = 0;
};

class LineFit {
  public:
    LineFit(const SeenJoints& joints, std::vector<FittingLine> lines, const ClockSet& among)
        : joints_(joints), among_(among), ends_(lines.size()) {
        out_.lines = std::move(lines);
        start();
    }

    FittingLines run(int most_rounds) {
        out_.least_miss = infinity;
        for (int round = 0; round < most_rounds && !out_.found; ++round) {
            if (round == most_rounds / 2) { // what the start was wrong about is corrected by then
                misses_.clear();
            }
            worst_ = 0;
            for_each_joint(joints_, [this](std::size_t begin, std::size_t end) { make_hold(begin, end); });
            limit_drifts();
            out_.least_miss = std::min(out_.least_miss, worst_);
            out_.found = worst_ <= tolerance_ns;
        }
        finish();
        return std::move(out_);
    }

  private:
    void start() {
        for (const SeenJoint& seen : joints_.seen) {
            LineEnds& ends = ends_[seen.domain];
            ends.first = std::min(ends.first, seen.begins ? seen.last_begin : seen.first_end);
            ends.last = std::max(ends.last, seen.ends ? seen.first_end : seen.last_begin);
        }
        for (std::size_t d = 0; d < ends_.size(); ++d) {
            LineEnds& ends = ends_[d];
            if (ends.first > ends.last) {
                ends.first = ends.last = 0;
            }
            const FittingLine& line = out_.lines[d];
            ends.at_first = line.more + line.drift * static_cast<double>(ends.first - line.at);
            ends.at_last = line.more + line.drift * static_cast<double>(ends.last - line.at);
            origin_ = among_[d] ? ends.first + line.offset : origin_; // any moment of the job
        }
    }

    [[nodiscard]] double in_job(std::uint32_t domain, std::int64_t moment) const {
        const LineEnds& ends = ends_[domain];
        return static_cast<double>(moment + out_.lines[domain].offset - origin_) + ends.at_first +
               (ends.at_last - ends.at_first) * ends.share(moment);
    }

    void make_hold(std::size_t begin, std::size_t end) {
        for (int i = 0; i < most_of_joint; ++i) {
            Extreme last_begin{-infinity}, first_end{infinity};
            for (std::size_t s = begin; s < end; ++s) {
                const SeenJoint& seen = joints_.seen[s];
                if (!among_[seen.domain]) {
                    continue;
                }
                if (seen.begins) {
                    const double moment = in_job(seen.domain, seen.last_begin);
                    last_begin =
                        moment > last_begin.moment ? Extreme{moment, seen.last_begin, seen.domain} : last_begin;
                }
                if (seen.ends) {
                    const double moment = in_job(seen.domain, seen.first_end);
                    first_end = moment < first_end.moment ? Extreme{moment, seen.first_end, seen.domain} : first_end;
                }
            }
            const double miss = last_begin.moment - first_end.moment;
            worst_ = i == 0 ? std::max(worst_, miss) : worst_;
            // Of one clock the begin lies before the end, whatever its line.
            if (!(miss > tolerance_ns) || last_begin.domain == first_end.domain) {
                return;
            }
            project(last_begin, first_end, miss * beyond);
        }
    }

    /// The least change of both lines that moves the begin and the end towards each other by so much.
    void project(const Extreme& last_begin, const Extreme& first_end, double by) {
        const auto weight = [this](const Extreme& of) {
            const double share = ends_[of.domain].share(of.own);
            return out_.lines[of.domain].fixed ? 0 : (1 - share) * (1 - share) + share * share;
        };
        const double whole = weight(last_begin) + weight(first_end);
        if (whole == 0) {
            return;
        }
        const auto move = [&](const Extreme& of, double step) {
            LineEnds& ends = ends_[of.domain];
            if (!out_.lines[of.domain].fixed) {
                const double share = ends.share(of.own);
                ends.at_first += step * (1 - share);
                ends.at_last += step * share;
            }
        };
        ++misses_[{std::min(last_begin.domain, first_end.domain), std::max(last_begin.domain, first_end.domain)}];
        move(last_begin, -by / whole);
        move(first_end, by / whole);
    }

    void limit_drifts() {
        for (std::size_t d = 0; d < ends_.size(); ++d) {
            LineEnds& ends = ends_[d];
            const double rise = ends.at_last - ends.at_first;
            const double most = most_drift * ends.length();
            if (!out_.lines[d].fixed && std::fabs(rise) > most) {
                const double excess = (rise - std::copysign(most, rise)) / 2;
                ends.at_first += excess;
                ends.at_last -= excess;
                worst_ = std::max(worst_, std::fabs(excess));
            }
        }
    }

    void finish() {
        for (std::size_t d = 0; d < ends_.size(); ++d) {
            FittingLine& line = out_.lines[d];
            const LineEnds& ends = ends_[d];
            line.drift = ends.last > ends.first ? (ends.at_last - ends.at_first) / ends.length() : line.drift;
            line.at = ends.first;
            line.more = ends.at_first;
        }
        if (out_.found) {
            return;
        }
        for (const auto& [clocks, times] : misses_) {
            out_.misfits.push_back({clocks.first, clocks.second, times});
        }
        std::stable_sort(out_.misfits.begin(), out_.misfits.end(),
                         [](const Misfit& a, const Misfit& b) { return a.times > b.times; });
    }

    const SeenJoints& joints_;
    const ClockSet& among_;
    std::vector<LineEnds> ends_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> misses_;
    std::int64_t origin_ = 0;
    double worst_ = 0;
    FittingLines out_;
};

} // namespace

FittingLines fit_lines(const SeenJoints& joints, std::vector<FittingLine> lines, const ClockSet& among,
                       int most_rounds) {
    return LineFit(joints, std::move(lines), among).run(most_rounds);
}

} // namespace plumb::ranks

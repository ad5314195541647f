// SPDX-License-Identifier: Apache-2.0
#include "ranks/clock_band.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::ranks {
namespace {

struct BoundPoint {
    double x, y;
};

/// The lower convex hull, by x; the upper one of points that were turned upside down.
std::vector<BoundPoint> lower_hull(std::vector<BoundPoint> points) {
    const auto before = [](const BoundPoint& a, const BoundPoint& b) {
        return a.x != b.x ? a.x < b.x : a.y < b.y;
    };
    if (!std::is_sorted(points.begin(), points.end(), before)) {
        std::sort(points.begin(), points.end(), before);
    }
    std::vector<BoundPoint> hull;
    for (const BoundPoint& p : points) {
        if (!hull.empty() && hull.back().x == p.x) {
            continue; // the lower one of that x stands before it
        }
        while (hull.size() >= 2) {
            const BoundPoint& a = hull[hull.size() - 2];
            const BoundPoint& b = hull.back();
            if ((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x) > 0) {
                break;
            }
            hull.pop_back();
        }
        hull.push_back(p);
    }
    return hull;
}

/// The least of y - slope * x over a lower hull: the intercept of the line of that slope which touches it from below.
double intercept(const std::vector<BoundPoint>& hull, double slope) {
    // Slopes of the edges grow along the hull: the point where they pass `slope`.
    std::size_t low = 0;
    std::size_t high = hull.size() - 1;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        const double edge = (hull[middle + 1].y - hull[middle].y) / (hull[middle + 1].x - hull[middle].x);
        if (edge < slope) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return hull[low].y - slope * hull[low].x;
}

void add_slopes(const std::vector<BoundPoint>& hull, double sign, std::vector<double>& slopes) {
    for (std::size_t i = 1; i < hull.size(); ++i) {
        const double slope = sign * (hull[i].y - hull[i - 1].y) / (hull[i].x - hull[i - 1].x);
        if (std::fabs(slope) < most_drift) {
            slopes.push_back(slope);
        }
    }
}

} // namespace

ClockBand ClockBand::known(std::int64_t at, double offset, double drift, double error) {
    ClockBand band;
    band.state_ = State::found;
    band.origin_ = at;
    const double whole = std::floor(offset);
    band.base_ = static_cast<std::int64_t>(whole);
    band.most_ = {{drift, offset - whole + error}};
    band.least_ = {{drift, offset - whole - error}};
    return band;
}

ClockBand ClockBand::contradicting(double by) {
    ClockBand band;
    band.state_ = State::empty;
    band.contradiction_ = by;
    return band;
}

ClockBand ClockBand::of(std::vector<Bound> upper, std::vector<Bound> lower) {
    ClockBand band;
    if (upper.empty() && lower.empty()) {
        return band;
    }
    const Bound& any = upper.empty() ? lower.front() : upper.front();
    band.origin_ = any.at;
    band.base_ = any.limit; // doubles are exact to a nanosecond for 100 days around it
    std::vector<BoundPoint> above;
    std::vector<BoundPoint> below; // upside down
    for (const Bound& bound : upper) {
        above.push_back({static_cast<double>(bound.at - band.origin_), static_cast<double>(bound.limit - band.base_)});
    }
    for (const Bound& bound : lower) {
        below.push_back({static_cast<double>(bound.at - band.origin_), -static_cast<double>(bound.limit - band.base_)});
    }
    above = lower_hull(std::move(above));
    below = lower_hull(std::move(below));
    std::vector<double> slopes = {-most_drift, most_drift};
    add_slopes(above, 1, slopes);
    add_slopes(below, -1, slopes);
    std::sort(slopes.begin(), slopes.end());
    const auto most_at = [&](double slope) {
        return intercept(above, slope);
    };
    const auto least_at = [&](double slope) {
        return -intercept(below, -slope);
    };
    // The room between both is concave in the slope, and straight between two of these.
    if (above.empty() || below.empty()) { // every drift is allowed
        for (const double slope : slopes) {
            if (!above.empty()) {
                band.most_.emplace_back(slope, most_at(slope));
            } else {
                band.least_.emplace_back(slope, least_at(slope));
            }
        }
        return band;
    }
    double room_before = 0;
    double widest = -infinity;
    const auto add = [&](double slope) {
        band.most_.emplace_back(slope, most_at(slope));
        band.least_.emplace_back(slope, least_at(slope));
    };
    for (std::size_t i = 0; i < slopes.size(); ++i) {
        const double room = most_at(slopes[i]) - least_at(slopes[i]);
        widest = std::max(widest, room);
        if (i > 0 && (room >= 0) != (room_before >= 0)) {
            add(slopes[i - 1] + (slopes[i] - slopes[i - 1]) * room_before / (room_before - room));
        }
        if (room >= 0) {
            add(slopes[i]);
        }
        room_before = room;
    }
    band.state_ = band.most_.empty() ? State::empty : State::found;
    band.contradiction_ = band.most_.empty() ? -widest : 0;
    return band;
}

ClockSpan ClockBand::at(std::int64_t moment) const {
    const auto x = static_cast<double>(moment - origin_);
    ClockSpan span{least_.empty() ? -infinity : infinity, most_.empty() ? infinity : -infinity};
    for (const auto& [drift, offset] : most_) {
        span.most = std::max(span.most, offset + drift * x);
    }
    for (const auto& [drift, offset] : least_) {
        span.least = std::min(span.least, offset + drift * x);
    }
    const auto base = static_cast<double>(base_);
    return {base + span.least, base + span.most};
}

ClockSpan ClockBand::drift() const { return {most_.front().first, most_.back().first}; }

} // namespace plumb::ranks

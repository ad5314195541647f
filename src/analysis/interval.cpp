// SPDX-License-Identifier: Apache-2.0
#include "analysis/interval.hpp"

#include <algorithm>
#include <cstddef>

namespace plumb::analysis {

void sort_by_begin(std::vector<Interval>& intervals) {
    const auto earlier = [](const Interval& a, const Interval& b) {
        return a.begin < b.begin;
    };
    if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) {
        std::sort(intervals.begin(), intervals.end(), earlier);
    }
}

void unite(const std::vector<Interval>& sorted, std::vector<Interval>& out) {
    out.clear();
    for (const Interval& interval : sorted) {
        if (interval.end <= interval.begin) {
            continue;
        }
        if (!out.empty() && interval.begin <= out.back().end) {
            out.back().end = std::max(out.back().end, interval.end);
        } else {
            out.push_back(interval);
        }
    }
}

std::int64_t length_of(const std::vector<Interval>& intervals) {
    std::int64_t sum = 0;
    for (const Interval& interval : intervals) {
        sum += interval.end - interval.begin;
    }
    return sum;
}

std::int64_t shared_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
    std::int64_t sum = 0;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        const std::int64_t begin = std::max(a[i].begin, b[j].begin);
        const std::int64_t end = std::min(a[i].end, b[j].end);
        sum += std::max<std::int64_t>(0, end - begin);
        a[i].end < b[j].end ? ++i : ++j;
    }
    return sum;
}

std::int64_t sum_inside(const std::vector<Interval>& sorted, const std::vector<Interval>& set) {
    // Measure of the set before each of its intervals, so that a long interval costs a search, not a walk.
    std::vector<std::int64_t> before(set.size() + 1, 0);
    for (std::size_t i = 0; i < set.size(); ++i) {
        before[i + 1] = before[i] + (set[i].end - set[i].begin);
    }
    const auto measure_below = [&](std::int64_t time, std::size_t from) {
        const auto found =
            std::upper_bound(set.begin() + static_cast<std::ptrdiff_t>(from), set.end(), time,
                             [](std::int64_t at, const Interval& interval) { return at < interval.end; });
        const auto index = static_cast<std::size_t>(found - set.begin());
        return before[index] + (found == set.end() ? 0 : std::max<std::int64_t>(0, time - found->begin));
    };
    std::int64_t sum = 0;
    std::size_t first = 0; // of the set, that may still touch an interval to come
    for (const Interval& interval : sorted) {
        while (first < set.size() && set[first].end <= interval.begin) {
            ++first;
        }
        if (first == set.size()) {
            break;
        }
        const std::int64_t skipped = before[first] + std::max<std::int64_t>(0, interval.begin - set[first].begin);
        const bool ends_here = interval.end <= set[first].end; // nearly always
        sum += ends_here ? std::max<std::int64_t>(0, before[first] + (interval.end - set[first].begin) - skipped)
                         : measure_below(interval.end, first) - skipped;
    }
    return sum;
}

} // namespace plumb::analysis

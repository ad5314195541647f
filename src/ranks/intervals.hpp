// SPDX-License-Identifier: Apache-2.0
// Sets of time as sorted intervals that do not touch. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plumb::ranks {

struct BusyInterval {
    std::int64_t begin, end;
};
using BusyIntervals = std::vector<BusyInterval>;

/// Makes any list of intervals such a set.
inline void merge(BusyIntervals& all) {
    std::sort(all.begin(), all.end(), [](const BusyInterval& a, const BusyInterval& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (const BusyInterval& one : all) {
        if (kept != 0 && one.begin <= all[kept - 1].end) {
            all[kept - 1].end = std::max(all[kept - 1].end, one.end);
        } else {
            all[kept++] = one;
        }
    }
    all.resize(kept);
}

[[nodiscard]] inline std::int64_t length(const BusyIntervals& set) {
    std::int64_t sum = 0;
    for (const BusyInterval& one : set) {
        sum += one.end - one.begin;
    }
    return sum;
}

/// What is in both.
[[nodiscard]] inline BusyIntervals in_both(const BusyIntervals& a, const BusyIntervals& b) {
    BusyIntervals both;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const BusyInterval part{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
        if (part.begin < part.end) {
            both.push_back(part);
        }
        a[i].end < b[j].end ? ++i : ++j;
    }
    return both;
}

} // namespace plumb::ranks

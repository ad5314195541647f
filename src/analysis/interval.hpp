// SPDX-License-Identifier: Apache-2.0
// Sets of half-open intervals of whole nanoseconds, and their measures. Pure functions on plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::analysis {

struct Interval {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// Sorts by begin; costs one look per interval where they are sorted already.
void sort_by_begin(std::vector<Interval>& intervals);
/// Union of intervals sorted by begin, as disjoint ones in order, written over `out`.
void unite(const std::vector<Interval>& sorted, std::vector<Interval>& out);
/// Sum of the lengths.
[[nodiscard]] std::int64_t length_of(const std::vector<Interval>& intervals);
/// Measure of what two sets of disjoint, ordered intervals share.
[[nodiscard]] std::int64_t shared_length(const std::vector<Interval>& a, const std::vector<Interval>& b);
/// Sum over `sorted` (they may overlap each other) of the part of each that lies in the disjoint, ordered `set`.
[[nodiscard]] std::int64_t sum_inside(const std::vector<Interval>& sorted, const std::vector<Interval>& set);

} // namespace plumb::analysis

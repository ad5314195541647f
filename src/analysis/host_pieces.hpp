// SPDX-License-Identifier: Apache-2.0
// One host thread's scopes and launches, in the order of their ends -> for each moment the innermost of them, as disjoint
// pieces. Memory is bounded. Owned by one answer; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/interval.hpp"

namespace plumb::analysis {

class HostPieces {
  public:
    /// Siblings that are remembered for a parent still to come; beyond it the older half counts as one.
    static constexpr std::size_t max_siblings = 16384;

    /// Calls `piece(interval)` for every part of it that no earlier one holds; true where it has inner ones.
    template <class Piece>
    bool ended(Interval interval, Piece&& piece) {
        std::size_t first = closed_.size();
        while (first != 0 && closed_[first - 1].begin >= interval.begin) {
            --first;
        }
        if (first != 0) {
            interval.begin = std::max(interval.begin, closed_[first - 1].end);
        }
        if (interval.end <= interval.begin) {
            return false;
        }
        std::int64_t at = interval.begin;
        for (std::size_t i = first; i < closed_.size(); ++i) {
            if (closed_[i].begin > at) {
                piece(Interval{at, std::min(closed_[i].begin, interval.end)});
            }
            at = std::max(at, closed_[i].end);
        }
        if (interval.end > at) {
            piece(Interval{at, interval.end});
        }
        const bool outer = first != closed_.size();
        interval.end = std::max(interval.end, at);
        closed_.resize(first);
        closed_.push_back(interval);
        if (closed_.size() > max_siblings) {
            join_older_half();
        }
        return outer;
    }

  private:
    void join_older_half() {
        const std::size_t half = closed_.size() / 2;
        closed_[half - 1].begin = closed_.front().begin;
        closed_.erase(closed_.begin(), closed_.begin() + static_cast<std::ptrdiff_t>(half - 1));
    }

    std::vector<Interval> closed_; // disjoint, in order, without a parent so far
};

} // namespace plumb::analysis

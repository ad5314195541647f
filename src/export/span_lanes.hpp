// SPDX-License-Identifier: Apache-2.0
// Finds a lane for each span so that two spans in one lane are disjoint or nested: a trace viewer draws anything else
// wrong. Spans come in any order, one look each, memory bounded. Owned by one exporter call; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plumb::exporting {

class SpanLanes {
  public:
    /// Beyond it, spans that fit no lane have none: the trace shows them as asynchronous events.
    static constexpr std::size_t max_lanes = 256;

    /// The first lane that takes [begin, end), end >= begin.
    std::optional<std::size_t> place(std::int64_t begin, std::int64_t end) {
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
            if (lanes_[lane].fits(begin, end)) {
                lanes_[lane].add(begin, end);
                return lane;
            }
        }
        if (lanes_.size() == max_lanes) {
            return std::nullopt;
        }
        lanes_.emplace_back().add(begin, end);
        return lanes_.size() - 1;
    }

  private:
    struct Interval {
        std::int64_t begin, end;
    };

    /// Remembers the last intervals exactly, and of the older ones only the stretch that they lie in.
    class Lane {
      public:
        [[nodiscard]] bool fits(std::int64_t begin, std::int64_t end) const {
            if (begin >= latest_) [[likely]] {
                return true;
            }
            for (std::size_t index = 0; index < used_; ++index) {
                const Interval& other = recent_[index];
                const bool disjoint = end <= other.begin || other.end <= begin;
                const bool nested =
                    (other.begin <= begin && end <= other.end) || (begin <= other.begin && other.end <= end);
                if (!disjoint && !nested) {
                    return false;
                }
            }
            const bool clear_of_old = old_.end <= begin || end <= old_.begin;
            return clear_of_old || (begin <= old_.begin && old_.end <= end);
        }
        void add(std::int64_t begin, std::int64_t end) {
            latest_ = end > latest_ ? end : latest_;
            if (used_ == recent_.size()) {
                forget(recent_[next_]);
            } else {
                ++used_;
            }
            recent_[next_] = {begin, end};
            next_ = (next_ + 1) % recent_.size();
        }

      private:
        void forget(const Interval& interval) {
            if (!any_old_) {
                old_ = interval;
                any_old_ = true;
                return;
            }
            old_.begin = interval.begin < old_.begin ? interval.begin : old_.begin;
            old_.end = interval.end > old_.end ? interval.end : old_.end;
        }

        std::array<Interval, 32> recent_;
        std::size_t used_ = 0, next_ = 0;
        Interval old_{INT64_MIN, INT64_MIN}; // disjoint from everything until the first is forgotten
        bool any_old_ = false;
        std::int64_t latest_ = INT64_MIN; // where the last of them ends
    };

    std::vector<Lane> lanes_;
};

} // namespace plumb::exporting

// SPDX-License-Identifier: Apache-2.0
// Which scopes lie inside which, from the order of their ends alone: a scope record appears when it ends, so every
// earlier record of its track that began at or after its begin, and has no parent yet, is its direct child.
// Owned by one track's resolver; one thread. Times are ticks of that track.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb::resolve {

class Nesting {
  public:
    /// Scopes without a parent that are remembered one by one. Beyond it the older half is remembered in pairs, so
    /// that a thread that never closes a parent needs no more memory the longer it runs.
    static constexpr std::size_t capacity = 16384;

    struct Outcome {
        std::uint64_t children = 0; // sum of the durations of direct children
        bool leaf = true;
        bool overlaps = false; // the record before it reaches into it without nesting
    };

    /// A scope that just ended. An earlier one of no length at the very begin is taken for a neighbour, not a child:
    /// a coarse clock cannot tell, and a neighbour keeps both what they are.
    [[gnu::always_inline]] Outcome close(std::uint64_t begin, std::uint64_t duration) {
        Outcome outcome;
        while (!open_.empty() && open_.back().begin >= begin && open_.back().end != begin) {
            outcome.children += open_.back().covered;
            outcome.leaf = false;
            open_.pop_back();
        }
        outcome.overlaps = !open_.empty() && open_.back().end > begin;
        if (begin < unseen_until_) {
            outcome.leaf = false;
        }
        if (open_.size() == capacity) [[unlikely]] {
            pair_up_older_half();
        }
        open_.push_back({begin, begin + duration, duration});
        return outcome;
    }

    /// True if a scope of this track that has no parent yet began inside the interval.
    [[nodiscard]] bool has_scope_within(std::uint64_t begin, std::uint64_t end) const {
        const auto first = std::lower_bound(open_.begin(), open_.end(), begin,
                                            [](const Entry& entry, std::uint64_t at) { return entry.begin < at; });
        return first != open_.end() && first->begin < end && first->end <= end;
    }

    /// Records of this track are missing up to `ticks`: a scope that began before may have had children among them and
    /// is not called a leaf.
    void records_missing_until(std::uint64_t ticks) { unseen_until_ = std::max(unseen_until_, ticks); }

  private:
    struct Entry {
        std::uint64_t begin;
        std::uint64_t end;
        std::uint64_t covered;
    };

    void pair_up_older_half() {
        const std::size_t pairs = capacity / 4;
        for (std::size_t i = 0; i < pairs; ++i) {
            const Entry& a = open_[2 * i];
            const Entry& b = open_[2 * i + 1];
            open_[i] = {a.begin, std::max(a.end, b.end), a.covered + b.covered};
        }
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(pairs),
                    open_.begin() + static_cast<std::ptrdiff_t>(2 * pairs));
    }

    std::vector<Entry> open_;
    std::uint64_t unseen_until_ = 0;
};

} // namespace plumb::resolve

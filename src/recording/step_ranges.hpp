// SPDX-License-Identifier: Apache-2.0
// Which steps somebody wants, by number: stretches, both ends included. Plain data; constant while it is asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace plumb::recording {

class StepRanges {
  public:
    /// In any order; stretches may meet or overlap. Nothing where last < first.
    void add(std::uint64_t first, std::uint64_t last) {
        if (first > last) {
            return;
        }
        const bool behind = all_.empty() || first > all_.back().second;
        all_.emplace_back(first, last);
        if (!behind) {
            put_in_order();
        }
    }

    [[nodiscard]] bool contains(std::uint64_t step) const { return meets(step, step); }
    /// Whether one of them lies in [first, last].
    [[nodiscard]] bool meets(std::uint64_t first, std::uint64_t last) const {
        const auto next = std::lower_bound(all_.begin(), all_.end(), first,
                                           [](const auto& a, std::uint64_t b) { return a.second < b; });
        return next != all_.end() && next->first <= last;
    }
    /// With `margin` more steps on both sides of each stretch.
    [[nodiscard]] StepRanges widened(std::uint64_t margin) const {
        constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
        StepRanges wider;
        for (const auto& [first, last] : all_) {
            wider.add(first - std::min(first, margin), last > most - margin ? most : last + margin);
        }
        return wider;
    }
    [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& all() const { return all_; }

  private:
    void put_in_order() {
        std::sort(all_.begin(), all_.end());
        std::size_t kept = 0;
        for (std::size_t i = 1; i < all_.size(); ++i) {
            if (all_[i].first <= all_[kept].second) {
                all_[kept].second = std::max(all_[kept].second, all_[i].second);
            } else {
                all_[++kept] = all_[i];
            }
        }
        all_.resize(kept + 1);
    }

    std::vector<std::pair<std::uint64_t, std::uint64_t>> all_; // ascending, apart
};

} // namespace plumb::recording

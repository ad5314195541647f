// SPDX-License-Identifier: Apache-2.0
// When the last device scope of each step ended, in any order of the steps. Memory is bounded whatever a recording claims.
// Owned by the first pass over a recording; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace plumb::resolve {

class DeviceEnds {
  public:
    using Ends = std::vector<std::pair<std::uint64_t, std::int64_t>>; // id of a step, nanoseconds

    explicit DeviceEnds(std::size_t most_steps) : most_(most_steps) {}

    void add(std::uint64_t step, std::int64_t end_ns) {
        if (!ends_.empty() && ends_.back().first == step) { // nearly always
            ends_.back().second = std::max(ends_.back().second, end_ns);
            return;
        }
        if (ends_.size() >= compact_at_) {
            compact();
        }
        if (ends_.size() < 2 * most_) {
            ends_.emplace_back(step, end_ns);
        }
    }

    /// By id, each once.
    [[nodiscard]] const Ends& sorted() {
        compact();
        return ends_;
    }

  private:
    void compact() {
        // The last of an id comes first, and stays.
        std::sort(ends_.begin(), ends_.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        });
        const auto same = [](const auto& a, const auto& b) {
            return a.first == b.first;
        };
        ends_.erase(std::unique(ends_.begin(), ends_.end(), same), ends_.end());
        compact_at_ = std::max(compact_at_, 2 * ends_.size());
    }

    std::size_t most_;
    Ends ends_;
    std::size_t compact_at_ = std::size_t{1} << 16;
};

} // namespace plumb::resolve

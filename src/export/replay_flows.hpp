// SPDX-License-Identifier: Apache-2.0
// Finds for the first sample of a sampled replay the launch of its graph: the feed that brings it does not tell. One look each,
// memory bounded; what was never launched, or is forgotten, has no arrow. Owned by one exporter call; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "resolve/sample.hpp"

namespace plumb::exporting {

class ReplayFlows {
  public:
    static constexpr std::size_t max_waiting = std::size_t{1} << 17;

    /// REQUIRES: it has a number, and launches a graph.
    void launched(const resolve::Submission& launch) {
        if (waiting_ >= max_waiting) {
            launches_.clear();
            waiting_ = 0;
        }
        ++waiting_;
        launches_[launch.key].push_back({launch.number, launch.step, launch.begin_ns});
    }

    /// Number of the launch of the replay of graph `key` that this sample is the first of.
    std::optional<std::uint64_t> of(const resolve::Sample& sample, std::uint64_t key) {
        const auto found = launches_.find(key);
        if (found == launches_.end()) {
            return std::nullopt;
        }
        std::deque<Waiting>& line = found->second;
        for (std::size_t i = 0; i < line.size() && i < farthest_look; ++i) {
            if (line[i].step != sample.step) {
                continue;
            }
            const Waiting taken = line[i];
            line.erase(line.begin() + static_cast<std::ptrdiff_t>(i));
            --waiting_;
            // An arrow into the past would say that the device knew before the host: the clocks' fit allows for it.
            return taken.begin_ns <= sample.begin_ns ? std::optional(taken.number) : std::nullopt;
        }
        return std::nullopt;
    }

  private:
    static constexpr std::size_t farthest_look = 256; // a sample whose launch was lost must not cost more

    struct Waiting {
        std::uint64_t number;
        std::uint64_t step;
        std::int64_t begin_ns;
    };

    std::unordered_map<std::uint64_t, std::deque<Waiting>> launches_; // by graph key
    std::size_t waiting_ = 0;
};

} // namespace plumb::exporting

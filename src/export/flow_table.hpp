// SPDX-License-Identifier: Apache-2.0
// Finds for a device sample what the host did to start it: the submission of its scope, or the launch of its graph.
// One look each, memory bounded; what was never submitted, or is forgotten, has no arrow. Owned by one exporter call; one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "plumb/layout.hpp"
#include "resolve/sample.hpp"

namespace plumb::exporting {

class FlowTable {
  public:
    static constexpr std::size_t max_waiting = std::size_t{1} << 17;

    /// Number of the flow that starts at this submission, where somebody may end it.
    std::optional<std::uint64_t> start(const resolve::Submission& submission) {
        const bool ends_somewhere =
            submission.timed && (!submission.graph || (submission.flags & launch_instrumented) != 0);
        if (!ends_somewhere) {
            return std::nullopt;
        }
        if (waiting_ >= max_waiting) {
            scopes_.clear();
            launches_.clear();
            waiting_ = 0;
        }
        ++waiting_;
        auto& line = submission.graph ? launches_[submission.key] : scopes_[submission.queue];
        line.push_back({++last_, submission.step, submission.begin_ns, submission.layer, submission.name});
        return last_;
    }

    /// The flow that ends at this sample of a device queue.
    std::optional<std::uint64_t> end_of_scope(const resolve::Sample& sample) {
        return take(scopes_, sample.track, sample, [&sample](const Waiting& waiting) {
            return waiting.name == sample.name && waiting.step == sample.step && waiting.layer == sample.layer;
        });
    }
    /// The same for a sample inside a replay of graph `key`: only the first of a replay has one.
    std::optional<std::uint64_t> end_of_launch(const resolve::Sample& sample, std::uint64_t key) {
        return take(launches_, key, sample, [&sample](const Waiting& waiting) { return waiting.step == sample.step; });
    }

  private:
    static constexpr std::size_t farthest_look = 256; // a sample whose submission was lost must not cost more

    struct Waiting {
        std::uint64_t flow;
        std::uint64_t step;
        std::int64_t begin_ns;
        std::uint32_t layer;
        std::uint16_t name;
    };
    template <class Key>
    using Lines = std::unordered_map<Key, std::deque<Waiting>>;

    template <class Key, class Fits>
    std::optional<std::uint64_t> take(Lines<Key>& lines, Key key, const resolve::Sample& sample, Fits&& fits) {
        const auto found = lines.find(key);
        if (found == lines.end()) {
            return std::nullopt;
        }
        std::deque<Waiting>& line = found->second;
        for (std::size_t i = 0; i < line.size() && i < farthest_look; ++i) {
            if (!fits(line[i])) {
                continue;
            }
            const Waiting taken = line[i];
            line.erase(line.begin() + static_cast<std::ptrdiff_t>(i));
            --waiting_;
            // An arrow into the past would say that the device knew before the host: the clocks' fit allows for it.
            return taken.begin_ns <= sample.begin_ns ? std::optional(taken.flow) : std::nullopt;
        }
        return std::nullopt;
    }

    Lines<std::uint32_t> scopes_;   // by queue
    Lines<std::uint64_t> launches_; // by graph key
    std::size_t waiting_ = 0;
    std::uint64_t last_ = 0;
};

} // namespace plumb::exporting

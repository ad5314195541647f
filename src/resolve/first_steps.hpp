// SPDX-License-Identifier: Apache-2.0
// The first n decode steps by the order in which the host ended them: warm-up. A step that left much to a device is no later for it.
// Owned by the first pass over a recording; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>

namespace plumb::resolve {

class FirstSteps {
  public:
    explicit FirstSteps(std::uint64_t wanted) : wanted_(wanted) {}

    void add(std::int64_t host_end_ns, std::uint64_t id) {
        const std::pair step{host_end_ns, id};
        if (first_.size() < wanted_) {
            first_.push(step);
        } else if (wanted_ != 0 && step < first_.top()) {
            first_.pop();
            first_.push(step);
        }
    }
    /// Of a step that was added.
    [[nodiscard]] bool holds(std::int64_t host_end_ns, std::uint64_t id) const {
        return !first_.empty() && std::pair{host_end_ns, id} <= first_.top();
    }

  private:
    std::uint64_t wanted_;
    std::priority_queue<std::pair<std::int64_t, std::uint64_t>> first_; // the latest on top
};

} // namespace plumb::resolve

// SPDX-License-Identifier: Apache-2.0
// The first n decode steps by the order in which the host ended them: warm-up. A step that left much to a device is no later for it.
// Owned by the first pass over a recording; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace plumb::resolve {

class FirstSteps {
  public:
    explicit FirstSteps(std::uint64_t wanted) : wanted_(wanted) {}

    void add(std::int64_t host_end_ns, std::uint64_t id) {
        const std::pair step{host_end_ns, id};
        if (first_.size() == wanted_) {
            if (wanted_ == 0 || step >= first_.front()) {
                return;
            }
            std::pop_heap(first_.begin(), first_.end());
            first_.pop_back();
        }
        first_.push_back(step);
        std::push_heap(first_.begin(), first_.end());
    }
    /// Of a step that was added.
    [[nodiscard]] bool holds(std::int64_t host_end_ns, std::uint64_t id) const {
        return !first_.empty() && std::pair{host_end_ns, id} <= first_.front();
    }
    /// End and id of each, in no order.
    [[nodiscard]] const std::vector<std::pair<std::int64_t, std::uint64_t>>& all() const noexcept { return first_; }

  private:
    std::uint64_t wanted_;
    std::vector<std::pair<std::int64_t, std::uint64_t>> first_; // a heap, the latest on top
};

} // namespace plumb::resolve

// SPDX-License-Identifier: Apache-2.0
// The last work values given per (track, name). Pages of 256 names are made on demand from one bounded pool, so that
// hostile ids cost no more than the pool. Owned by one resolution; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/layout.hpp"

namespace plumb::resolve {

/// Indexed by WorkQuantity; NaN is "not given".
struct WorkValues {
    std::array<double, work_quantities> value = {
        std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
};

struct WorkPool {
    std::size_t pages_left = 4096; // of 8 KiB each
};

class WorkCache {
  public:
    explicit WorkCache(WorkPool& pool) : pool_(&pool) {}

    /// False when the pool is used up.
    [[nodiscard]] bool set(std::uint16_t name, WorkQuantity quantity, double value) {
        if (pages_.empty()) {
            pages_.resize(256);
        }
        auto& page = pages_[name >> 8];
        if (!page) {
            if (pool_->pages_left == 0) {
                return false;
            }
            --pool_->pages_left;
            page = std::make_unique<Page>();
        }
        (*page)[name & 255].value[static_cast<std::size_t>(quantity)] = value;
        return true;
    }

    /// Null when nothing was given for this name.
    [[nodiscard]] const WorkValues* find(std::uint16_t name) const noexcept {
        if (pages_.empty() || !pages_[name >> 8]) {
            return nullptr;
        }
        return &(*pages_[name >> 8])[name & 255];
    }

  private:
    using Page = std::array<WorkValues, 256>;
    WorkPool* pool_;
    std::vector<std::unique_ptr<Page>> pages_;
};

} // namespace plumb::resolve

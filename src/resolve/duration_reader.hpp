// SPDX-License-Identifier: Apache-2.0
// The duration of a record: its payload, or the 64-bit value of the record directly before it when the payload is full.
// Owned by one track's resolver; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/layout.hpp"

namespace plumb::resolve {

class DurationReader {
  public:
    void announce(std::uint64_t duration) noexcept { long_ = duration; }

    /// Absent when the record says that its duration stands before it, and nothing does.
    [[nodiscard]] std::optional<std::uint64_t> take(const Record& record) noexcept {
        const std::uint64_t payload = payload_of(record);
        if (payload != payload_mask) {
            return payload;
        }
        const std::optional<std::uint64_t> duration = long_;
        long_.reset();
        return duration;
    }

    /// For any other record: what was announced did not belong to a duration.
    void forget() noexcept { long_.reset(); }

  private:
    std::optional<std::uint64_t> long_;
};

} // namespace plumb::resolve

// SPDX-License-Identifier: Apache-2.0
// Numbers that say in which order checks are executed, replays of captured graphs included: those take theirs when they
// are launched. One counter per process. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace plumb::fingerprint {

/// The first of `count` numbers in a row. Relaxed: only a number.
inline std::uint64_t take_tensor_orders(std::uint64_t count) noexcept {
    static std::atomic<std::uint64_t> orders{0};
    return orders.fetch_add(count, std::memory_order_relaxed);
}

} // namespace plumb::fingerprint

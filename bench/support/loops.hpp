// SPDX-License-Identifier: Apache-2.0
// Loops that a benchmark times, and the floor that scopes are compared with. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plumb/record.hpp"

namespace bench {

inline constexpr std::size_t scratch_records = 1024;

/// Nothing, that a compiler cannot see through.
__attribute__((always_inline)) inline void body() { asm volatile("" ::: "memory"); }

/// Ticks of n times f(i).
template <class F>
__attribute__((always_inline)) inline std::uint64_t timed(std::uint64_t n, F&& f) {
    const std::uint64_t begin = plumb::detail::read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        f(i);
    }
    return plumb::detail::read_ticks() - begin;
}

__attribute__((noinline)) inline std::uint64_t empty_loop(std::uint64_t n) {
    return timed(n, [](std::uint64_t) { body(); });
}

/// Two clock reads and a store into `scratch`, of scratch_records.
__attribute__((noinline)) inline std::uint64_t floor_loop(plumb::detail::Record* scratch, std::uint64_t n) {
    return timed(n, [=](std::uint64_t i) {
        const std::uint64_t begin = plumb::detail::read_ticks();
        body();
        const std::uint64_t end = plumb::detail::read_ticks();
        scratch[i % scratch_records] = {begin, end - begin};
        body();
    });
}

} // namespace bench

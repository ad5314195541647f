// SPDX-License-Identifier: Apache-2.0
// The pure functions that define a fingerprint (docs/reference/fingerprints.md): shared by the CPU code, the CUDA kernels and the
// naive reference of the tests. They never change: recordings hold what they give. Plain C++17, no state, any thread.
//
// Element g of a tensor lies in row g / 32 at lane g mod 32. With y = fold(raw bits, zero-extended to 64):
//   hash   = sum over rows of row_hash(sum over the row's present lanes of lane_factor(lane) * y, row_key(row)), mod 2^64
//   sketch[bucket_of(row_key(row), lane, k / 32)] += is_negative(row_key(row), lane) ? -x : x, over finite x
// min and max are stored with + 0.0, so that a zero has one sign. largest: the lowest g among equal |x|.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PLUMB_HOST_DEVICE __host__ __device__
#else
#define PLUMB_HOST_DEVICE
#endif

namespace plumb::fingerprint {

inline constexpr unsigned lanes_of_row = 32;

/// A bijection of 64 bits with full avalanche (the finalizer of splitmix64).
PLUMB_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// Odd, so that no change of a single element is lost.
PLUMB_HOST_DEVICE constexpr std::uint64_t lane_factor(unsigned lane) noexcept {
    return mix64(0x706c756d626c696eU + (lane + std::uint64_t{1}) * 0x9e3779b97f4a7c15U) | 1U;
}

/// A bijection that hands the upper bits down: without it, two f64 that differ in the sign alone could trade places in a
/// row unseen, for the difference of two odd factors is even. Types of 32 bits or less pass unchanged.
PLUMB_HOST_DEVICE constexpr std::uint64_t fold(std::uint64_t bits) noexcept { return bits ^ (bits >> 32); }

/// All that is random about a row.
PLUMB_HOST_DEVICE constexpr std::uint64_t row_key(std::uint64_t row) noexcept {
    return mix64(0x666f6c6c6f777321U + (row + 1) * 0x9e3779b97f4a7c15U);
}

PLUMB_HOST_DEVICE constexpr std::uint64_t row_hash(std::uint64_t sum_of_lanes, std::uint64_t key) noexcept {
    return mix64(sum_of_lanes + key);
}

PLUMB_HOST_DEVICE constexpr bool is_negative(std::uint64_t key, unsigned lane) noexcept {
    return ((key >> lane) & 1U) != 0;
}
/// 0..31, xor-ed with the lane: the lanes of one row never share a bucket.
PLUMB_HOST_DEVICE constexpr unsigned lane_turn(std::uint64_t key) noexcept {
    return static_cast<unsigned>(key >> 32) & (lanes_of_row - 1);
}
/// Which 32 of the buckets. REQUIRES: `groups` (buckets / 32) is a power of two up to 8.
PLUMB_HOST_DEVICE constexpr unsigned group_of(std::uint64_t key, unsigned groups) noexcept {
    return static_cast<unsigned>(key >> 37) & (groups - 1);
}
PLUMB_HOST_DEVICE constexpr unsigned bucket_of(std::uint64_t key, unsigned lane, unsigned groups) noexcept {
    return (lane ^ lane_turn(key)) + lanes_of_row * group_of(key, groups);
}

} // namespace plumb::fingerprint

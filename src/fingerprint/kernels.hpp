// SPDX-License-Identifier: Apache-2.0
// The loops over elements, once per instruction set: all give the same bits. Chosen at run time, once per process.
// Static tables of functions without state: any thread, each on memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {

/// Rows after which sums are closed and added up: the shape of every sum is fixed by it, so it never changes.
inline constexpr std::size_t rows_of_block = 2048;
/// Lane l of a row adds to sum l mod 16, the lower half of the row first.
inline constexpr std::size_t partial_sums = 16;

/// The sketch of a block is kept apart by its rows' turn mod 8 until the block is closed, so that no lane has to move.
inline constexpr std::size_t near_turns = 8;

/// What the rows of one block, or of a part of it, add up to.
struct BlockSums {
    BlockSums() noexcept {} // NOLINT: buckets that are not asked for are never touched
    /// As new, with so many buckets.
    void clear(std::size_t buckets) noexcept {
        std::fill_n(by_turn, near_turns * buckets, 0.0);
        std::fill_n(sums, partial_sums, 0.0);
        std::fill_n(squares, partial_sums, 0.0);
        min = std::numeric_limits<double>::infinity();
        max = -min;
        hash = nans = positive_infs = negative_infs = 0;
    }

    /// A row of turn t adds the element of bucket b at near * buckets + (b xor near), where near = t mod 8.
    alignas(64) double by_turn[near_turns * max_buckets];
    alignas(64) double sketch[max_buckets]; // once the block is closed
    alignas(64) double sums[partial_sums] = {};
    alignas(64) double squares[partial_sums] = {};
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    std::uint64_t hash = 0;
    std::uint64_t nans = 0;
    std::uint64_t positive_infs = 0;
    std::uint64_t negative_infs = 0;
};

/// Adds whole rows of 32 elements to `block`. `data` need not be aligned. REQUIRES: groups = buckets / 32.
using AddRows = void (*)(const void* data, std::size_t rows, std::uint64_t first_row, unsigned groups,
                         BlockSums& block);
/// Once all rows are in: each bucket of the sketch is the sum of what the near turns brought to it, in their order.
using Close = void (*)(unsigned groups, BlockSums& block);
/// Index of the first of n elements whose bits b meet (b & mask) == one or (b & mask) == other; n if none does.
using Find = std::size_t (*)(const void* data, std::size_t n, std::uint64_t mask, std::uint64_t one,
                             std::uint64_t other);
/// Largest |x| as a double, by the order of the bits: a NaN is the largest, infinity the next. 0 of nothing.
using Largest = double (*)(const void* data, std::size_t n);

struct Kernels {
    const char* name;
    /// By dtype. For finite elements only: where squares do not stay finite the block must be done again, carefully.
    std::array<AddRows, dtype_count> add_rows;
    /// The same sums of the finite elements; counts the others.
    std::array<AddRows, dtype_count> add_rows_careful;
    Close close;
    std::array<Find, dtype_count> find;
    std::array<Largest, dtype_count> largest;
};

/// Without instructions of any set: where no other fits, and what the tests compare with.
const Kernels& plain_kernels() noexcept;
/// The sets this build holds and this machine has, best first; the plain ones end the list.
std::vector<const Kernels*> available_kernels();
/// The first of them.
const Kernels& best_kernels() noexcept;

} // namespace plumb::fingerprint

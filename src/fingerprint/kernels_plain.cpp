// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "fingerprint/definition.hpp"
#include "fingerprint/element.hpp"
#include "fingerprint/kernels.hpp"

namespace plumb::fingerprint {
namespace {

template <DType type>
struct Bits;
template <>
struct Bits<DType::f32> {
    using type = std::uint32_t;
};
template <>
struct Bits<DType::f64> {
    using type = std::uint64_t;
};
template <>
struct Bits<DType::f16> {
    using type = std::uint16_t;
};
template <>
struct Bits<DType::bf16> {
    using type = std::uint16_t;
};
template <>
struct Bits<DType::i8> {
    using type = std::uint8_t;
};
template <>
struct Bits<DType::i32> {
    using type = std::uint32_t;
};

constexpr auto factors = [] {
    std::array<std::uint64_t, lanes_of_row> made{};
    for (unsigned lane = 0; lane < lanes_of_row; ++lane) {
        made[lane] = lane_factor(lane);
    }
    return made;
}();

void count_nonfinite(double value, BlockSums& block) {
    if (std::isnan(value)) {
        ++block.nans;
    } else {
        ++(value > 0 ? block.positive_infs : block.negative_infs);
    }
}

template <DType type, bool careful>
void add_rows(const void* data, std::size_t rows, std::uint64_t first_row, unsigned groups, BlockSums& block) {
    double sums[partial_sums], squares[partial_sums], min = block.min, max = block.max;
    std::copy_n(block.sums, partial_sums, sums);
    std::copy_n(block.squares, partial_sums, squares);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::uint64_t key = row_key(first_row + row);
        const std::size_t near = lane_turn(key) % near_turns, far = lane_turn(key) - near;
        double* const buckets = block.by_turn + (near * groups + group_of(key, groups)) * lanes_of_row;
        std::uint64_t lanes = 0;
        for (unsigned lane = 0; lane < lanes_of_row; ++lane) {
            const auto at = static_cast<std::ptrdiff_t>(row * lanes_of_row + lane);
            lanes += factors[lane] * fold(element_bits<typename Bits<type>::type>(data, at));
            double value = element_value(data, type, at);
            if (careful && !std::isfinite(value)) {
                count_nonfinite(value, block);
                continue;
            }
            min = std::min(min, value);
            max = std::max(max, value);
            sums[lane % partial_sums] += value;
            squares[lane % partial_sums] += value * value;
            buckets[lane ^ far] += is_negative(key, lane) ? -value : value;
        }
        block.hash += row_hash(lanes, key);
    }
    std::copy_n(sums, partial_sums, block.sums);
    std::copy_n(squares, partial_sums, block.squares);
    block.min = min;
    block.max = max;
}

void close(unsigned groups, BlockSums& block) {
    const std::size_t buckets = groups * lanes_of_row;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        double sum = 0;
        for (std::size_t near = 0; near < near_turns; ++near) {
            sum += block.by_turn[near * buckets + (bucket ^ near)];
        }
        block.sketch[bucket] = sum;
    }
}

template <DType type>
std::size_t find(const void* data, std::size_t n, std::uint64_t mask, std::uint64_t one, std::uint64_t other) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t bits = element_bits<typename Bits<type>::type>(data, static_cast<std::ptrdiff_t>(i)) & mask;
        if (bits == one || bits == other) {
            return i;
        }
    }
    return n;
}

template <DType type>
double largest(const void* data, std::size_t n) {
    double found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double value = std::fabs(element_value(data, type, static_cast<std::ptrdiff_t>(i)));
        found = value > found || std::isnan(value) ? value : found;
        if (std::isnan(found)) {
            return found;
        }
    }
    return found;
}

template <DType... types>
constexpr Kernels table() {
    return {"plain",          {add_rows<types, false>...}, {add_rows<types, true>...}, close,
            {find<types>...}, {largest<types>...}};
}

} // namespace

const Kernels& plain_kernels() noexcept {
    static constexpr Kernels kernels = table<DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32>();
    return kernels;
}

} // namespace plumb::fingerprint

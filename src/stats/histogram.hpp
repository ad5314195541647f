// SPDX-License-Identifier: Apache-2.0
// Log-linear histogram of 64-bit values: exact below 64, then 64 buckets per power of two, so that a value read back is
// within 0.8 % of one that was added. Memory grows with the powers of two met (512 bytes each), never with the count.
// Counts are integers: merging is associative and commutative. Owned by whoever holds it; one thread.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace plumb::stats {

/// Bounds the blocks of many histograms together. Outlives them.
struct BlockBudget {
    std::size_t blocks_left = 0;
};

class Histogram {
  public:
    static constexpr unsigned precision_bits = 6;
    static constexpr std::size_t buckets_per_block = std::size_t{1} << precision_bits;
    static constexpr std::size_t block_count = 64 - precision_bits + 1;

    /// Without a budget only the machine's memory bounds it (at most 30 KiB).
    explicit Histogram(BlockBudget* budget = nullptr) : budget_(budget) {}

    void add(std::uint64_t value, std::uint64_t times = 1) {
        const std::size_t block = block_of(value);
        if (!blocks_[block] && !make_block(block)) {
            unplaced_ += times;
            return;
        }
        (*blocks_[block])[bucket_of(value, block)] += times;
        count_ += times;
    }

    void merge(const Histogram& other);

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    /// Values that found no memory: percentiles of such a histogram mean nothing.
    [[nodiscard]] std::uint64_t unplaced() const noexcept { return unplaced_; }
    /// The value of that rank, 1 to count(), to within 0.8 %. REQUIRES: count() > 0.
    [[nodiscard]] double value_at_rank(std::uint64_t rank) const noexcept;
    /// fn(value, times), from the least value on, each to within 0.8 %, until it returns true.
    template <class Function>
    void each(Function&& fn) const {
        for (std::size_t block = 0; block < block_count; ++block) {
            for (std::size_t i = 0; blocks_[block] && i < buckets_per_block; ++i) {
                const std::uint64_t times = (*blocks_[block])[i];
                if (times != 0 && fn(value_of(block, i), times)) {
                    return;
                }
            }
        }
    }

  private:
    using Block = std::array<std::uint64_t, buckets_per_block>;

    static std::size_t block_of(std::uint64_t value) noexcept {
        const auto width = static_cast<unsigned>(std::bit_width(value));
        return width <= precision_bits ? 0 : width - precision_bits;
    }
    static std::size_t bucket_of(std::uint64_t value, std::size_t block) noexcept {
        return block == 0 ? value : (value >> (block - 1)) & (buckets_per_block - 1);
    }
    /// The middle of the bucket; a bucket of one value is that value.
    static double value_of(std::size_t block, std::size_t bucket) noexcept {
        const double first = static_cast<double>(block == 0 ? bucket : buckets_per_block + bucket);
        return block <= 1 ? first : std::ldexp(first + 0.5, static_cast<int>(block) - 1) - 0.5;
    }
    bool make_block(std::size_t block);

    std::array<std::unique_ptr<Block>, block_count> blocks_;
    std::uint64_t count_ = 0;
    std::uint64_t unplaced_ = 0;
    BlockBudget* budget_;
};

} // namespace plumb::stats

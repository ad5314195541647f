// SPDX-License-Identifier: Apache-2.0
#include "stats/histogram.hpp"

namespace plumb::stats {

bool Histogram::make_block(std::size_t block) {
    if (budget_ != nullptr) {
        if (budget_->blocks_left == 0) {
            return false;
        }
        --budget_->blocks_left;
    }
    blocks_[block] = std::make_unique<Block>();
    return true;
}

void Histogram::merge(const Histogram& other) {
    unplaced_ += other.unplaced_;
    for (std::size_t block = 0; block < block_count; ++block) {
        if (!other.blocks_[block]) {
            continue;
        }
        std::uint64_t added = 0;
        for (const std::uint64_t times : *other.blocks_[block]) {
            added += times;
        }
        if (!blocks_[block] && !make_block(block)) {
            unplaced_ += added;
            continue;
        }
        for (std::size_t i = 0; i < buckets_per_block; ++i) {
            (*blocks_[block])[i] += (*other.blocks_[block])[i];
        }
        count_ += added;
    }
}

double Histogram::value_at_rank(std::uint64_t rank) const noexcept {
    std::uint64_t seen = 0;
    double last = 0;
    each([&](double value, std::uint64_t times) {
        seen += times;
        last = value;
        return seen >= rank;
    });
    return last;
}

} // namespace plumb::stats

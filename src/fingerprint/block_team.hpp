// SPDX-License-Identifier: Apache-2.0
// The blocks of a tensor on several threads, their results taken in the order of blocks: the same sums for any number.
// The threads live as long as the call; the caller's works too, and is all there is for small tensors.
#pragma once

#include <cstddef>
#include <functional>

#include "fingerprint/block_sums.hpp"

namespace plumb::fingerprint {

/// A thread is worth its start from so many blocks on (1 MiB of f32).
inline constexpr std::size_t blocks_of_thread = 4;

/// take(block, index) for each block in order, never two at once. Throws only what std::vector throws, before any thread runs.
void in_order(const Blocks& blocks, unsigned threads, const std::function<void(const BlockSums&, std::size_t)>& take);

} // namespace plumb::fingerprint

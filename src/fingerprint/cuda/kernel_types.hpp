// SPDX-License-Identifier: Apache-2.0
// What the host and the fingerprint kernels tell each other: parameters by value, results in slots of pinned memory.
// Plain C++17 data, compiled by nvcc too. Thread rule: a slot is written by the device and read by anybody, by SlotReader's
// protocol: its sequence is odd while it is written, and names the result that is complete otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fingerprint/definition.hpp"

namespace plumb::fingerprint {

inline constexpr unsigned kernel_threads = 256; // of a block: 8 warps
inline constexpr unsigned kernel_warps = kernel_threads / 32;
inline constexpr unsigned rows_of_turn = 8;  // of one warp, at once
inline constexpr unsigned most_blocks = 512; // of one check
inline constexpr std::uint32_t most_sites =
    65536; // of one context; a stream has one, and each check in a captured graph
inline constexpr std::uint32_t most_groups = 4096;       // captured graphs with checks
inline constexpr std::uint32_t scratch_words = 1u << 21; // 16 MiB of partial results, in the module
inline constexpr unsigned kernel_rank = 8;
inline constexpr unsigned kernel_buckets = 256;

/// Dimensions without gaps between them are one; elements are numbered as before.
struct KernelTensor {
    std::uint64_t data = 0; // device address of element 0
    std::uint64_t count = 0;
    std::uint64_t first_index = 0;
    std::uint64_t shape[kernel_rank] = {};
    std::int64_t strides[kernel_rank] = {};         // in elements
    std::uint64_t logits_begin = ~std::uint64_t{0}; // elements from here on are the last row of logits
    std::uint32_t rank = 0;
    std::uint32_t dtype = 0;
};

/// Where results go, and what orders them.
struct KernelSite {
    std::uint64_t slots = 0;          // device address
    std::uint64_t token = 0;          // eager: the number of the result; captured sites count replays themselves
    std::uint32_t slot_count = 1;     // captured: replay n goes to slot n mod that
    std::uint32_t site = 0;           // whose tickets are counted
    std::uint32_t group_plus_one = 0; // captured: whose tag is read; 0: eager
    std::uint32_t scratch = 0;        // first word of gridDim.x partial results; not used by a grid of one block
    std::uint32_t buckets = 32;
    std::uint32_t reserved = 0;
};

struct KernelParameters {
    KernelTensor tensor;
    KernelSite site;
};
static_assert(sizeof(KernelParameters) == 208, "by value, in the same layout on both sides");

/// Words of a slot, and of a partial result; the buckets follow. Doubles lie in words as their bits.
enum SlotWord : unsigned {
    word_sequence, // 2 * number + 1 while it is written, 2 * number + 2 when complete
    word_tag,      // of the launch that a replay belongs to, 0: nobody said
    word_nans,
    word_positive_infs,
    word_negative_infs,
    word_first_nonfinite,
    word_largest,
    word_hash,
    word_min,
    word_max,
    word_sum,
    word_squares,
    word_logit, // place in its row of the largest logit
    word_logit_value,
    word_logit_second,
    word_magnitude,
    words_before_buckets
};
PLUMB_HOST_DEVICE constexpr std::uint32_t words_of_slot(std::uint32_t buckets) noexcept {
    return words_before_buckets + buckets;
}

/// What the device keeps of a site between launches.
struct SiteState {
    std::uint64_t replays;
    std::uint64_t last_tag;
    std::uint32_t ticket; // blocks that have arrived; 0 between launches
    std::uint32_t reserved;
};

} // namespace plumb::fingerprint

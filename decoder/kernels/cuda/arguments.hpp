// SPDX-License-Identifier: Apache-2.0
// What the host tells the CUDA kernels: one struct by value for each, without gaps between members, so that two launches
// with the same values are the same bytes. Addresses are the device's. Plain data, compiled by nvcc too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decoder/kernels/type.hpp"

namespace plumb::decoder::cuda {

inline constexpr unsigned gemv_threads = 256;
inline constexpr unsigned gemv_rows = 4; // of the input, that a block of gemv_*_4 takes
inline constexpr unsigned tile_threads = 128;
inline constexpr unsigned tile_outputs = 64;
inline constexpr unsigned tile_rows = 32;
inline constexpr unsigned tile_depth = 32;
inline constexpr unsigned tile_pitch = tile_outputs + 4; // in shared memory: stores meet fewer banks twice
inline constexpr unsigned tile_row_pitch = tile_rows + 4;
inline constexpr unsigned tile_shared_bytes = tile_depth * (tile_pitch + tile_row_pitch) * 4;
inline constexpr unsigned attend_threads = 128;
inline constexpr unsigned attend_largest_head = 256;
inline constexpr unsigned element_threads = 256;
inline constexpr unsigned most_parts = 4; // products of one launch
inline constexpr unsigned largest_threads = 256;
inline constexpr unsigned most_experts = 1024; // one thread each
inline constexpr unsigned most_best = 64;      // values of a row that best() finds
inline constexpr unsigned bf16_pieces = 3;     // that hold every bit of a float
inline constexpr unsigned f16_pieces = 2;      // all but a float's last bit, down to 2^-39 of its row's largest

/// Rows of a multiple of 8 values. F32, BF16, F16 and Q4_K lie as in the file, 16-byte aligned; the others in planes, each
/// of all blocks: values first, scales behind (see packed.hpp).
struct Matrix {
    std::uint64_t data = 0;
    std::uint64_t blocks = 0; // of the whole matrix, where its type has blocks
    std::uint32_t rows = 0;
    std::uint32_t cols = 0;
};

struct EmbedArgs {
    Matrix table;
    std::uint64_t tokens = 0, out = 0;
};

struct NormArgs {
    std::uint64_t in = 0, weight = 0, out = 0;
    std::uint32_t cols = 0;
    float epsilon = 0;
};

/// out[row][o] = matrix[o] . in[row] + bias[o], for up to four matrices of one type and one input. With `offsets` the matrix
/// is a stack, and expert e has the rows offsets[e] … offsets[e + 1].
struct ProductPart {
    Matrix matrix;
    std::uint64_t bias = 0, out = 0; // bias 0: none
    std::uint32_t first_block = 0;   // of the grid's x
    std::uint32_t outputs = 0;       // rows of one matrix
};
struct ProductArgs {
    ProductPart parts[most_parts];
    std::uint64_t in = 0, offsets = 0;
    std::uint32_t count = 0;   // parts
    std::uint32_t rows = 0;    // of the input
    std::uint32_t split = 1;   // gemv: warps that share one output, 1 to 8
    std::uint32_t experts = 0; // with offsets
};

struct RopeArgs {
    std::uint64_t heads = 0, table = 0, positions = 0;
    std::uint32_t rows = 0, cols = 0, size = 0, pairs = 0, halves = 0, reserved = 0;
};

/// Where the caches of a step's sequences lie: `stride` floats from one to the next.
struct CacheArgs {
    std::uint64_t keys = 0, values = 0, stride = 0, context = 0;
    std::uint64_t positions = 0; // of each row of the step
    std::uint32_t rows_of_sequence = 1, size = 0;
};
struct AppendArgs {
    CacheArgs cache;
    std::uint64_t key = 0, value = 0;
    std::uint32_t rows = 0, cols = 0;
};
struct AttendArgs {
    CacheArgs cache;
    std::uint64_t queries = 0, out = 0;
    std::uint64_t partial =
        0; // [row][head][split][size + 2]: sum, then its largest score and weight; not used by one split
    std::uint32_t heads = 0, group = 0, splits = 1, window = 0;
};

struct ElementArgs {
    std::uint64_t a = 0, b = 0, out = 0;
    std::uint32_t count = 0;
    float factor = 0;
};

struct RouteArgs {
    std::uint64_t logits = 0, chosen = 0, weight = 0;
    std::uint32_t experts = 0, used = 0, normalise = 0;
    float scale = 1;
};
struct OrderArgs {
    std::uint64_t chosen = 0, slot = 0, offsets = 0;
    std::uint32_t experts = 0, choices = 0;
};
struct GatherArgs {
    std::uint64_t in = 0, slot = 0, out = 0;
    std::uint32_t cols = 0, used = 0, choices = 0, reserved = 0;
};
struct CombineArgs {
    std::uint64_t in = 0, slot = 0, weight = 0, out = 0;
    std::uint32_t cols = 0, used = 0, rows = 0, reserved = 0;
};

/// The best of each of `parts` stretches of a row, then the best of those.
struct LargestArgs {
    std::uint64_t values = 0, found = 0, out = 0; // found: [row][part], a value and its index
    std::uint32_t cols = 0, parts = 0;
};

/// The `wanted` best of each of `parts` stretches of a row, best first; then, of those, the best of all as one part.
struct BestArgs {
    std::uint64_t in = 0, out = 0; // in: [row][col], out: [row][part][wanted], a value and its index each
    std::uint32_t cols = 0, parts = 0, wanted = 0;
    std::uint32_t pairs = 0; // 1: the input is such an output, too
};

/// The rows of a product's input as pieces of 16 bits, [piece][row][col], that add up to them. `scales`: what each row's
/// pieces are to be multiplied by; split_f16 only.
struct SplitArgs {
    std::uint64_t in = 0, out = 0, scales = 0;
    std::uint32_t rows = 0, cols = 0;
};
/// out[r][o] = out[r][o] * scales[r] + bias[o]; either may be 0, none.
struct FinishArgs {
    std::uint64_t out = 0, scales = 0, bias = 0;
    std::uint32_t rows = 0, cols = 0;
};

/// A matrix, or a stack, of random values. `blocks` counts those of every type, of one value where it has none.
struct FillArgs {
    Matrix out;
    std::uint64_t key = 0;
    std::uint32_t type = 0;  // a Type
    std::uint32_t block = 1; // values of a block
    float unit = 0;          // values are odd multiples of it, of up to 65535
    std::uint32_t reserved = 0;
};

} // namespace plumb::decoder::cuda

/// X(name, arguments, threads): every kernel that is no product, with the type of its one parameter and the most threads of a block.
#define PLUMB_CUDA_PLAIN_KERNELS(X)                  \
    X(rms_norm, NormArgs, 1024)                      \
    X(rope, RopeArgs, element_threads)               \
    X(kv_append, AppendArgs, element_threads)        \
    X(attend_32, AttendArgs, attend_threads)         \
    X(attend_64, AttendArgs, attend_threads)         \
    X(attend_128, AttendArgs, attend_threads)        \
    X(attend_256, AttendArgs, attend_threads)        \
    X(attend_merge, AttendArgs, attend_threads)      \
    X(add, ElementArgs, element_threads)             \
    X(silu_multiply, ElementArgs, element_threads)   \
    X(gelu_multiply, ElementArgs, element_threads)   \
    X(scale, ElementArgs, element_threads)           \
    X(route, RouteArgs, 32)                          \
    X(order_by_expert, OrderArgs, most_experts)      \
    X(gather_rows, GatherArgs, element_threads)      \
    X(combine_experts, CombineArgs, element_threads) \
    X(largest_of_part, LargestArgs, largest_threads) \
    X(largest_of_parts, LargestArgs, 32)             \
    X(best_values, BestArgs, largest_threads)        \
    X(split_bf16, SplitArgs, element_threads)        \
    X(split_f16, SplitArgs, element_threads)         \
    X(finish_product, FinishArgs, element_threads)   \
    X(fill, FillArgs, element_threads)
/// X(type): what products and embed are made for, each by its type.
#define PLUMB_CUDA_TYPES(X) X(f32) X(bf16) X(f16) X(q8_0) X(q4_0) X(q4_k) X(q6_k)

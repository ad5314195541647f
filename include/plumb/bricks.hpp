// SPDX-License-Identifier: Apache-2.0
// The words of a forward pass: well-known bricks with fixed ids, categories, phases, work quantities, sources.
// Ids are append-only: they are written into recordings. Pure constants; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb {

/// What kind of computation a brick is. Values are part of the file format.
enum class Category : std::uint8_t {
    other = 0,
    norm = 1,
    attention = 2,
    ffn = 3,
    moe = 4,
    embedding = 5,
    output = 6, // lm_head and sampling
    cache = 7,
    collective = 8,
    transfer = 9,
};

/// PLUMB_WELL_KNOWN_BRICKS(X): X(name, id, category, aliases separated by spaces). Append only; ids below 256.
#define PLUMB_WELL_KNOWN_BRICKS(X)                         \
    X(rms_norm, 1, norm, "")                               \
    X(layer_norm, 2, norm, "")                             \
    X(qkv_projection, 3, attention, "qkv")                 \
    X(qk_norm, 4, norm, "")                                \
    X(rope_embedding, 5, attention, "rope")                \
    X(attention_score, 6, attention, "")                   \
    X(attention_softmax, 7, attention, "softmax")          \
    X(attention_output, 8, attention, "")                  \
    X(attention, 9, attention, "")                         \
    X(output_projection, 10, attention, "out_proj o_proj") \
    X(gate_projection, 11, ffn, "gate")                    \
    X(up_projection, 12, ffn, "up")                        \
    X(gate_up_projection, 13, ffn, "")                     \
    X(activation, 14, ffn, "silu gelu relu")               \
    X(down_projection, 15, ffn, "down")                    \
    X(residual_add, 16, other, "")                         \
    X(embedding, 17, embedding, "embed")                   \
    X(lm_head, 18, output, "head")                         \
    X(sampling, 19, output, "sample")                      \
    X(kv_append, 20, cache, "")                            \
    X(moe_router, 21, moe, "")                             \
    X(moe_dispatch, 22, moe, "")                           \
    X(moe_experts, 23, moe, "")                            \
    X(moe_combine, 24, moe, "")                            \
    X(linear_attention, 25, attention, "")                 \
    X(all_reduce, 26, collective, "")                      \
    X(all_gather, 27, collective, "")                      \
    X(reduce_scatter, 28, collective, "")                  \
    X(copy_h2d, 29, transfer, "")                          \
    X(copy_d2h, 30, transfer, "")                          \
    X(copy_d2d, 31, transfer, "")                          \
    X(all_to_all, 32, collective, "alltoall")              \
    X(broadcast, 33, collective, "bcast")                  \
    X(send, 34, collective, "")                            \
    X(recv, 35, collective, "receive")                     \
    X(kv_transfer, 36, transfer, "")

/// Well-known bricks. Any other name is interned once with Profiler::intern.
enum class Brick : std::uint16_t {
#define PLUMB_BRICK_ENUMERATOR(name, id, category, aliases) name = id,
    PLUMB_WELL_KNOWN_BRICKS(PLUMB_BRICK_ENUMERATOR)
#undef PLUMB_BRICK_ENUMERATOR
};

/// First id given to an interned name.
inline constexpr std::uint16_t first_interned_id = 256;
/// Names the registry holds at most, well-known ones included; beyond it a name is refused and counted.
inline constexpr std::uint16_t name_capacity = 16384;

enum class Phase : std::uint8_t { none = 0, prefill = 1, decode = 2, mixed = 3 };

/// The word that reports, traces and schemas use.
constexpr const char* phase_word(Phase phase) noexcept {
    constexpr const char* words[] = {"none", "prefill", "decode", "mixed"};
    const auto index = static_cast<std::size_t>(phase);
    return index < sizeof words / sizeof words[0] ? words[index] : words[0];
}

/// The same for a category.
constexpr const char* category_word(Category category) noexcept {
    constexpr const char* words[] = {"other",     "norm",   "attention", "ffn",        "moe",
                                     "embedding", "output", "cache",     "collective", "transfer"};
    const auto index = static_cast<std::size_t>(category);
    return index < sizeof words / sizeof words[0] ? words[index] : words[0];
}

/// A brick, interned name or label: 16 bits, valid for the life of the process. 0 is "no name".
struct Name {
    std::uint16_t id = 0;
    constexpr Name() = default;
    constexpr Name(Brick brick) : id(static_cast<std::uint16_t>(brick)) {} // NOLINT: implicit by design
    constexpr explicit Name(std::uint16_t value) : id(value) {}
    friend constexpr bool operator==(Name a, Name b) { return a.id == b.id; }
    friend constexpr bool operator!=(Name a, Name b) { return a.id != b.id; }
};

} // namespace plumb
